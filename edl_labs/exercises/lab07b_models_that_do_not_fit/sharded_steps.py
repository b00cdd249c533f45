"""sharded_step: layers that are gathered, used and let go, judged by memory, by time and by what is summed."""

from __future__ import annotations

from typing import Any, ClassVar

from edl_labs.checks import Exercise, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.cluster_programs import (
    bound_programs,
    case_programs,
    replayed_programs,
    require_end,
    written_programs,
)
from edl_labs.units import byte_count, byte_rate, seconds
from edl_labs.virtual.cluster import ClusterMachine, ClusterReplay, Rank, ShardedLayers, VirtualCluster

MOST_TIME = 1.05  # of the best step's, promised in the lab's text
_PASSES = ("forward", "backward", "update")


@exercise("sharded_step")
class ShardedStep(Exercise):
    """A training step of sharded layers within a memory, in nearly the least time.

    `sharded_step(layers)` runs on every rank, on ShardedLayers. The evidence is the program of every rank.
    """

    answers = "all"

    answer_form: ClassVar[Any] = {"programs": ""}

    def probe(self, student: Any, given: Any) -> Any:
        def program(dist: Any) -> None:
            student.sharded_step(_layers(given, dist))

        return {"programs": written_programs(VirtualCluster(_machine(given)).record(program))}

    def explain_exception(self, case: Any, error: str) -> Wrong | None:
        """What an index beyond the layers means."""
        if error != "IndexError":
            return None
        why = "your code raised IndexError; layers are numbered from 0 to layers.count - 1"
        return Wrong("your code uses an index that is out of range", why=why, next="check the bounds of your ranges")

    def public_want(self, case: Any, want: Any) -> Any:
        """The time of the best step: its program would be the answer."""
        return {"makespan_s": replayed_programs(want["programs"], _machine(case)).makespan_s}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        machine = _machine(case)
        fixed = case_programs(machine, lambda rank: _layers(case, rank), _call_all)
        run = bound_programs(got["programs"], machine, fixed)
        require_end(run)
        for rank, program in enumerate(run.programs):
            _judge_passes(case, rank, program)
        _judge_races(run)
        _judge_contents(case, run)
        if max(run.peak_bytes) > case["budget_bytes"] or _is_third_held(run):
            raise _peak_symptom(case, run)
        best_s = want["makespan_s"] if "makespan_s" in want else self.public_want(case, want)["makespan_s"]
        if run.makespan_s > MOST_TIME * best_s:
            raise _time_symptom(run, best_s)

    def format_case(self, case: Any) -> str:
        """The layers, the ranks and the memory."""
        layers = ", ".join(f"{n:,}" for n in case["elements"])
        return (
            f"{case['ranks']} ranks with links of {byte_rate(case['byte_per_s'])}, layers of {layers} parameters, "
            f"forward passes of {', '.join(seconds(one) for one in case['forward_s'])}; "
            f"{byte_count(case['budget_bytes'])} on each rank"
        )


def _machine(case: Any) -> ClusterMachine:
    return ClusterMachine.flat(case["ranks"], alpha_s=2e-6, byte_per_s=case["byte_per_s"])


def _layers(case: Any, rank: Rank) -> ShardedLayers:
    return ShardedLayers(rank, **{name: case[name] for name in ("elements", "forward_s", "backward_s")})


def _call_all(layers: ShardedLayers) -> None:
    for layer in range(layers.count):
        layers.all_gather(layer)
        layers.forward(layer)
        layers.backward(layer)
        layers.reduce_scatter(layer)
        layers.update(layer)


def _named(program: Any, *ops: str) -> list[str]:
    return [f"{entry['op']} {entry['name']}" for entry in program if entry["op"] in ops]


def _judge_passes(case: Any, rank: int, program: Any) -> None:
    """Every layer forward, back and updated once, in an order that can be."""
    count = len(case["elements"])
    took = {"forward": case["forward_s"], "backward": case["backward_s"], "update": [1e-6] * count}
    ran = [entry["name"] for entry in program if entry["op"] == "launch"]
    wanted = [f"{kind} {i}" for kind in _PASSES for i in range(count)]
    missing = [name for name in wanted if name not in ran]
    if missing:
        why = f"{missing[0]} never runs on rank {rank}"
        raise Wrong("your step is incomplete", why=why, next="run forward, backward and update for each layer")
    if len(ran) > len(wanted):
        twice = next((name for name in ran if ran.count(name) > 1), ran[-1])
        why = f"{twice} runs {ran.count(twice)} times on rank {rank}"
        then = "run forward, backward and update once each for every layer"
        raise Wrong("your step runs a pass or an update more than once", why=why, next=then)
    passes = [name for name in ran if not name.startswith("update")]
    due = [f"forward {i}" for i in range(count)] + [f"backward {i}" for i in reversed(range(count))]
    if passes != due:
        at = next(at for at, pair in enumerate(zip(passes, due, strict=True)) if pair[0] != pair[1])
        before = f"after {passes[at - 1]}, " if at else "at the start, "
        why = f"{before}rank {rank} runs {passes[at]}, but {due[at]} is due"
        raise Wrong(
            "your step runs layers in an impossible order",
            why=why,
            next="run forward passes from the first layer to the last, and backward passes in reverse order",
        )
    calls = _named(program, "launch", "reduce_scatter")
    for i in range(count):
        if f"reduce_scatter gradients {i}" not in calls:
            then = "call reduce_scatter, which adds the other ranks' gradients to the shard"
            never = [str(one) for one in range(count) if f"reduce_scatter gradients {one}" not in calls]
            which = "any layer" if len(never) == count else f"layer {', '.join(never)}"
            why = f"the gradients are not summed for {which}"
            raise Wrong("your step updates a shard without a sum over the ranks", why=why, next=then)
        if calls.index(f"launch update {i}") < calls.index(f"reduce_scatter gradients {i}"):
            why = f"update {i} is issued before the sum of layer {i}"
            raise Wrong(
                "your step updates a shard before the sum of its gradients has arrived",
                why=why,
                next="start the sum, wait for it, then update",
            )
    good = all(
        entry["duration_s"] == took[entry["name"].split()[0]][int(entry["name"].split()[1])]
        for entry in program
        if entry["op"] == "launch"
    )
    if not good or any(entry["op"] in ("add", "copy", "scale", "send", "recv", "all_reduce") for entry in program):
        why = "the record contains operations other than the layers' calls"
        raise Wrong(
            "your program was not recorded by the layers' calls alone", why=why, next="use only the calls of the layers"
        )


def _judge_races(run: ClusterReplay) -> None:
    for race in run.races:
        if race.tensor.startswith("whole weights"):
            then = "call wait() on the handle that all_gather returned before you run the pass"
            raise Wrong("your step runs a layer before its weights have arrived", why=str(race), next=then)
        if race.tensor.startswith("gradients"):
            then = "call wait() on the handle that reduce_scatter returned before the update"
            raise Wrong(
                "your step updates a shard before the sum of its gradients has arrived", why=str(race), next=then
            )
        then = "call wait() first: the memory may be used again only when the collective has finished"
        raise Wrong("your step uses memory again while it is still being sent", why=str(race), next=then)


def _judge_contents(case: Any, run: ClusterReplay) -> None:
    ranks = range(case["ranks"])
    for rank, program in enumerate(run.programs):
        names = [entry["name"] for entry in program if entry["op"] == "tensor"]
        for i in range(len(case["elements"])):
            for part in run.contents(rank, f"gradients {i}"):
                sources = sorted(term.source for term in part.terms if term.count == 1)
                starts = sorted(f"backward {i}(batch of rank {one}" for one in ranks)
                if len(sources) != len(starts) or not all(map(str.startswith, sources, starts)):
                    why = f"rank {rank}'s gradients of layer {i} contain only this sum: {str(part)[:120]}"
                    raise Wrong(
                        "your sum lacks some ranks' gradients", why=why, next="start the sum after the backward pass"
                    )
        for entry in program:
            if entry["op"] == "launch" and not entry["name"].startswith("update"):
                used = [names[part[0]] for part in entry.get("reads", ())]
                if f"whole weights {entry['name'].split()[1]}" not in used:
                    why = f"{entry['name']} on rank {rank} does not read its weights"
                    raise Wrong(
                        "your program was not recorded by the layers' calls alone",
                        why=why,
                        next="use only the calls of the layers",
                    )


def _held(program: Any, kind: str) -> tuple[int, int]:
    """The most whole tensors of a kind that are there at once, and how many are let go."""
    names = {entry["tensor"]: entry["name"] for entry in program if entry["op"] == "tensor"}
    now = most = freed = 0
    for entry in program:
        if entry["op"] == "tensor" and entry["name"].startswith(kind):
            now += 1
            most = max(most, now)
        elif entry["op"] == "free" and names[entry["tensor"]].startswith(kind):
            now -= 1
            freed += 1
    return most, freed


def _is_third_held(run: ClusterReplay) -> bool:
    """Whether three layers' weights, or three layers' gradients, are whole at once on a rank."""
    kinds = ("whole weights", "whole gradients")
    return any(_held(program, kind)[0] > 2 for program in run.programs for kind in kinds)


def _freed_going_forward(program: Any) -> int:
    """How many layers' weights are given back before the first backward pass."""
    ops = [str(entry.get("name", "")).startswith("backward") and entry["op"] == "launch" for entry in program]
    ahead = program[: ops.index(True)] if True in ops else program
    return _held(ahead, "whole weights")[1]


def _peak_symptom(case: Any, run: ClusterReplay) -> Wrong:
    program, count = run.programs[0], len(case["elements"])
    weights, freed = _held(program, "whole weights")
    gradients, _ = _held(program, "whole gradients")
    calls = [f"{entry['op']} {entry.get('name', '')}" for entry in program]
    why = f"up to {weights} of {count} layers have whole weights at once, and up to {gradients} have whole gradients"
    if max(run.peak_bytes) > case["budget_bytes"]:
        budget = byte_count(case["budget_bytes"])
        why = f"the peak is {byte_count(max(run.peak_bytes))}, but a rank has only {budget}; {why}"
    why += "; there is room for only two of each"
    if not freed:
        return Wrong(
            "your step never frees gathered weights",
            why=why,
            next="free weights after use: the shard stays, and the rest can be gathered again",
        )
    if weights == count and calls.index(f"all_gather weights {count - 1}") < calls.index("launch forward 0"):
        then = "gather a layer while the previous one runs"
        return Wrong("your step gathers all layers before the first layer runs", why=why, next=then)
    if weights == count and _freed_going_forward(program) >= count - 1:
        then = "call free(i) after backward(i): nothing reads these weights any more"
        return Wrong("your step keeps weights in memory after the backward pass", why=why, next=then)
    if weights == count:
        then = "free weights after the forward pass, and gather them again for the backward pass"
        return Wrong("your step keeps weights in memory from the forward to the backward pass", why=why, next=then)
    if gradients == count:
        then = "sum a layer's gradients as soon as they are ready, then update: the update frees them"
        return Wrong("your step keeps the gradients of all layers until the end", why=why, next=then)
    if gradients > 2:
        then = "update a layer as soon as its sum is done, right after the next backward pass"
        return Wrong("your step frees gradients too late", why=why, next=then)
    if weights > 2:
        return Wrong("your step gathers too many layers ahead", why=why, next="gather only one layer ahead")
    return Wrong(
        "your step frees weights too late", why=why, next="free a layer's weights before you gather the next layer"
    )


def _time_symptom(run: ClusterReplay, best_s: float) -> Wrong:
    program = run.programs[0]
    why = f"your step takes {seconds(run.makespan_s)}, but {seconds(best_s)} is possible"
    weights, _ = _held(program, "whole weights")
    gradients, _ = _held(program, "whole gradients")
    if weights == 1:
        then = "start gathering the next layer before you issue this one's pass"
        return Wrong("your step gathers nothing ahead, so computing waits for weights", why=why, next=then)
    bare = _bare_waits(program, "all_gather weights")
    early = [(layer, after) for layer, after in bare if after.partition(" ")[2] not in ("", layer)]
    if early:
        layer, after = early[0]
        why = f"{why}; your program waits for the gather of layer {layer} before it issues {after}"
        then = "wait for a layer's weights right before its own pass, so that the previous pass runs meanwhile"
        return Wrong("your step waits for a gather before the pass that could hide this gather", why=why, next=then)
    if len(bare) > 1:  # the first layer's has nothing to hide behind
        why = f"{why}; no pass is issued between the start of layer {bare[1][0]}'s gather and the wait for it"
        then = "issue the gather first: a collective starts after the operations issued before it in the stream"
        return Wrong("your step gathers the next layer after the pass that should hide this gather", why=why, next=then)
    if gradients == 1:
        then = "let each sum overlap the next layer's backward pass, and update afterwards"
        return Wrong("in your step, computing waits for every sum", why=why, next=then)
    bare = _bare_waits(program, "reduce_scatter gradients")
    if len(bare) > 1:  # the last layer's has nothing to hide behind
        why = f"{why}; no pass is issued between the start of layer {bare[0][0]}'s sum and the wait for it"
        return Wrong(
            "in your step, computing waits for sums", why=why, next="let a sum overlap the next layer's backward pass"
        )
    then = "in which order do sums and gathers start, and what does each wait() wait for?"
    return Wrong("your step takes longer than allowed", why=why, next=then)


def _bare_waits(program: Any, kind: str) -> list[tuple[str, str]]:
    """The layers whose collective is waited for with no pass issued since its start, each with the pass that follows.

    `kind` is an operation with the first word of its name.
    """
    works: list[list[Any]] = []
    bare: list[tuple[str, str]] = []
    for at, entry in enumerate(program):
        if entry.get("async"):
            works.append([f"{entry['op']} {entry['name']}", 0])
        elif _is_pass(entry):
            for one in works:
                one[1] += 1
        elif entry["op"] == "wait_work":
            name, passes = works[entry["work"]]
            if name.startswith(kind) and not passes:
                bare.append((name.split()[-1], next((one["name"] for one in program[at:] if _is_pass(one)), "")))
            works[entry["work"]][1] += 1  # a second wait is none
    return bare


def _is_pass(entry: Any) -> bool:
    return entry["op"] == "launch" and not entry["name"].startswith("update")
