"""buckets: which gradients travel together, and when; judged by a replay of all ranks' backward pass."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

from edl_labs.checks import Exercise, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.cluster_programs import (
    ISSUED,
    bound_programs,
    case_programs,
    replayed_programs,
    require_calls,
    require_end,
    written_programs,
)
from edl_labs.exercises.lab07_many_gpus.bucket_slips import in_common
from edl_labs.units import byte_count, byte_rate, seconds
from edl_labs.virtual.cluster import ClusterMachine, ClusterReplay, Rank, RankTensor, VirtualCluster
from edl_labs.virtual.errors import VirtualClusterError

MOST_TIME = 1.03  # of the best groups', promised in the lab's text
_ITEM_BYTES = 4  # of fp32, as gradients are summed
_SLOWER = "your groups are not the fastest"
_LARGE_LAST = "your last bucket is too large"
_ONE = "you use a single bucket, so no backward kernel is left to hide its sum"
_MANY = "your code sums each layer on its own, so every layer pays for its own rounds"
_GRADIENTS = 1  # the number of the tensor that holds them, after the batch


class ModelOnRank:
    """A rank's model: the gradients of all layers in one buffer, those of the last layer first."""

    def __init__(self, dist: Rank, case: Any) -> None:
        self._dist, self._layers = dist, case["layers"]
        self._update_s = case["update_s"]
        sizes = [layer["gradient_bytes"] // _ITEM_BYTES for layer in self._layers]
        self._starts = [sum(sizes[number + 1 :]) for number in range(len(sizes))]
        self._batch = dist.tensor(1, name="batch")
        self._gradients = dist.empty(sum(sizes), name="gradients")
        self._weights = dist.empty(sum(sizes), name="weights")

    def backward(self, number: int) -> None:
        """Issue the kernel that computes the gradients of a layer."""
        layer = self._layers[number]
        self._dist.launch(
            f"backward {number}", duration_s=layer["backward_s"], reads=self._batch, writes=self.bucket([number])
        )

    def bucket(self, numbers: Any) -> RankTensor:
        """The gradients of neighbouring layers, as one tensor."""
        wanted = sorted(numbers, reverse=True)
        if not wanted or wanted != list(range(wanted[0], wanted[-1] - 1, -1)):
            raise VirtualClusterError(
                f"layers {str(list(numbers))[:60]} are not neighbours",
                why="all gradients are in one buffer, the last layer's first: a bucket is a contiguous part of it",
                next="put only neighbouring layers into a bucket",
            )
        size = self._layers[wanted[-1]]["gradient_bytes"] // _ITEM_BYTES
        return self._gradients[self._starts[wanted[0]] : self._starts[wanted[-1]] + size]

    def update(self) -> None:
        """Issue the kernel that updates all weights from all gradients."""
        self._dist.launch("update", duration_s=self._update_s, reads=self._gradients, writes=self._weights)


def _issue_all(case: Any, model: ModelOnRank) -> None:
    for layer in range(len(case["layers"])):
        model.backward(layer)
    model.update()


@exercise("buckets")
class Buckets(Exercise):
    """Groups of layers in the order in which they are sent, and the backward pass that sends them.

    `plan_buckets(layers, link)` gives the groups, `run_step(dist, model, groups)` issues a rank's step. The evidence is
    the groups and the ranks' programs.
    """

    answers = "all"

    returns: ClassVar[Mapping[str, Any]] = {"plan_buckets": list[list[int]]}
    answer_form: ClassVar[Any] = {"groups": "", "programs": ""}

    def probe(self, student: Any, given: Any) -> Any:
        groups = student.plan_buckets([{**layer} for layer in given["layers"]], {**given["link"]})

        def program(dist: Any) -> None:
            student.run_step(dist, ModelOnRank(dist, given), [list(one) for one in groups])

        programs = VirtualCluster(_machine(given)).record(program)
        return {"groups": json.dumps(groups), "programs": written_programs(programs)}

    def public_want(self, case: Any, want: Any) -> Any:
        """The time of the best groups: they would be the answer."""
        return {"makespan_s": replayed_programs(want["programs"], _machine(case)).makespan_s}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        machine = _machine(case)
        groups = _read_groups(case, got["groups"])
        fixed = case_programs(machine, lambda rank: ModelOnRank(rank, case), partial(_issue_all, case), own=ISSUED)
        run = bound_programs(got["programs"], machine, fixed)
        require_calls(run, ("all_reduce",))
        require_end(run)
        _judge_kernels(case, run)
        _judge_order(case, run)
        _judge_sums(case, run)
        best_s = want["makespan_s"] if "makespan_s" in want else replayed_programs(want["programs"], machine).makespan_s
        if run.makespan_s > MOST_TIME * best_s:
            raise _time_symptom(case, run, groups, best_s)

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """The rule behind groups that are too slow, where everything else is right."""
        slow = []
        for case, mine, right in zip(cases, got, want, strict=True):
            try:
                self.compare(case, mine, right)
            except Wrong as wrong:
                slow.append(wrong)
        if not slow or any(one.what not in (_SLOWER, _LARGE_LAST, _ONE, _MANY) for one in slow):
            return None
        groups = [_read_groups(case, mine["groups"]) for case, mine in zip(cases, got, strict=True)]
        return in_common(cases, groups, slow[0].why)

    def format_answer(self, case: Any, got: Any) -> str:
        """The groups."""
        return f"groups {got['groups']}"

    def format_case(self, case: Any) -> str:
        """The layers and the links."""
        link = case["link"]
        lines = [
            f"  {number}: {byte_count(layer['gradient_bytes'])} of gradients, {seconds(layer['backward_s'])} backward"
            for number, layer in enumerate(case["layers"])
        ]
        head = f"{link['ranks']} ranks, links of {seconds(link['alpha_s'])} and {byte_rate(link['byte_per_s'])}"
        return "\n".join([head, *lines])


def _machine(case: Any) -> ClusterMachine:
    link = case["link"]
    return ClusterMachine.flat(link["ranks"], alpha_s=link["alpha_s"], byte_per_s=link["byte_per_s"])


def _read_groups(case: Any, text: Any) -> list[list[int]]:
    try:
        groups = json.loads(text)
        named = [number for one in groups for number in one]
    except (TypeError, ValueError, RecursionError):
        groups, named = [], []
    if not all(type(number) is int for number in named):
        then = "return lists such as [[5, 4], [3], [2, 1, 0]]"
        raise Wrong("your groups are not lists of layer numbers", why=f"got {str(text)[:80]}", next=then)
    if sorted(named) != list(range(len(case["layers"]))):
        why = f"your groups have {len(named)} numbers for {len(case['layers'])} layers: {str(text)[:80]}"
        then = "list each layer once, from the last to the first"
        raise Wrong("your groups do not contain every layer exactly once", why=why, next=then)
    return groups


def _judge_kernels(case: Any, run: ClusterReplay) -> None:
    last = len(case["layers"]) - 1
    names = [f"backward {number}" for number in range(last, -1, -1)] + ["update"]
    lasts = [layer["backward_s"] for layer in reversed(case["layers"])] + [case["update_s"]]
    for rank, program in enumerate(run.programs):
        kernels = [entry for entry in program if entry["op"] == "launch"]
        found = [entry["name"] for entry in kernels]
        if found.count("update") > 1 and [name for name in found if name != "update"] == names[:-1]:
            why = f"rank {rank} calls update() {found.count('update')} times"
            then = "call update() once, when all buckets have been summed"
            raise Wrong("your step updates the weights more than once", why=why, next=then)
        if found != names:
            why = (
                f"rank {rank} issues the kernels {', '.join(found[:4])}, …, {found[-1]}"
                if found
                else f"rank {rank} issues nothing"
            )
            then = "call backward(i) once for every layer, from the last to the first, then update() once"
            what = (
                "your step leaves out some kernels"
                if set(names) - set(found)
                else "your step does not issue each kernel once, in the right order"
            )
            raise Wrong(what, why=why, next=then)
        plain = [entry.get("duration_s") for entry in kernels] == lasts and {entry["stream"] for entry in kernels} == {
            0
        }
        if not plain or any(entry["op"] in ("copy", "scale", "add", "stream") for entry in program):
            then = (
                "use only backward(i), bucket(numbers) and update() of the model, all_reduce, and wait() of its handles"
            )
            raise Wrong("your run_step() does more than issue the step", why=f"this happens on rank {rank}", next=then)


def _judge_order(case: Any, run: ClusterReplay) -> None:
    """The bucket was whole when it was sent, and the update came after all sums."""
    for race in run.races[:1]:
        if "update" in race.calls:
            then = "wait for every handle before update()"
            raise Wrong("your update reads gradients that are still being summed", why=str(race), next=then)
        then = "call all_reduce only after backward(i) of the bucket's last layer"
        raise Wrong("your step sends a bucket before all of its gradients are ready", why=str(race), next=then)
    for rank, program in enumerate(run.programs):
        ops = [(entry["op"], entry.get("name")) for entry in program]
        at = ops.index(("launch", "update"))
        if any(op == "all_reduce" for op, _ in ops[at:]):
            why = f"rank {rank} calls all_reduce after update()"
            raise Wrong("your step updates weights before gradients are summed", why=why, next="call update() last")


def _judge_sums(case: Any, run: ClusterReplay) -> None:
    ranks = case["link"]["ranks"]
    for part in run.contents(ranks - 1, _GRADIENTS):
        counts = [term.count for term in part.terms]
        if len(counts) == ranks and set(counts) == {1.0}:
            continue
        why = f"on rank {ranks - 1}, this happens to elements {part.start} to {part.stop} of {part.terms[0].source}"
        if len(counts) == ranks:
            raise Wrong(
                "your step sums some gradients more than once", why=why, next="put each layer into only one bucket"
            )
        then = "what happens to the layers after the last full bucket?"
        raise Wrong("your step never sums the gradients of some layers", why=why, next=then)


def _time_symptom(case: Any, run: ClusterReplay, groups: list[list[int]], best_s: float) -> Wrong:
    program, last = run.programs[0], len(case["layers"]) - 1
    why = f"your step takes {seconds(run.makespan_s)}; with the best groups it takes {seconds(best_s)}"
    ops = [entry["op"] for entry in program]
    if not any("async" in entry for entry in program if entry["op"] == "all_reduce"):
        then = "call all_reduce with async_op=True, so that the stream continues, and wait() later"
        return Wrong("your step blocks the backward pass during each all-reduce", why=why, next=then)
    first_wait = ops.index("wait_work") if "wait_work" in ops else len(ops)
    end = max(at for at, entry in enumerate(program) if entry.get("name") == "backward 0")
    if first_wait < end:
        then = "keep the returned handles in a list, and wait for them before update()"
        return Wrong("your step waits for a bucket's sum while there is still something to compute", why=why, next=then)
    if len(groups) == 1:
        then = (
            "what could be sent while the first layers' gradients are computed? If you search for groups: a sum "
            "begins only after the backward pass of the bucket's last layer"
        )
        return Wrong(_ONE, why=why, next=then)
    if 0 in groups[0] or (groups[0][0] != last and last not in groups[0]):
        then = "start with the last layer: its gradients are ready first"
        return Wrong("your first bucket is the last one to be ready", why=why, next=then)
    if _calls_late(program):
        then = "call all_reduce right after the last backward(i) of the bucket"
        return Wrong("your step does not send buckets as soon as they are ready", why=why, next=then)
    link = case["link"]
    rounds = 2 * (link["ranks"] - 1)
    if len(groups) == last + 1:
        why += f"; each of the {len(groups)} sums costs at least {rounds} rounds of {seconds(link['alpha_s'])}"
        then = (
            "put several small layers into one bucket. If you search for groups: a sum begins when the previous sum "
            "has ended, and takes summing_s(link, bytes), the time of all its rounds"
        )
        return Wrong(_MANY, why=why, next=then)
    compute_s = sum(layer["backward_s"] for layer in case["layers"]) + case["update_s"]
    size = sum(case["layers"][number]["gradient_bytes"] for number in groups[-1])
    alone_s = rounds * (link["alpha_s"] + size / link["ranks"] / link["byte_per_s"])
    if len(groups[-1]) > 1 and alone_s > best_s - compute_s + (MOST_TIME - 1) * best_s:
        why += f"; the last bucket has {byte_count(size)}, and nothing is computed while it is sent"
        return Wrong(_LARGE_LAST, why=why, next="send less at the end: nothing hides the last sum")
    return Wrong(_SLOWER, why=why, next="for each last layer of a bucket, try every first layer")


def _calls_late(program: list[dict[str, Any]]) -> bool:
    """Whether layers outside of a bucket run backward between its last layer and its all_reduce."""
    for at, entry in enumerate(program):
        if entry["op"] != "all_reduce":
            continue
        start, stop = entry["reads"][0][1:]
        before = next((one for one in reversed(program[:at]) if one["op"] == "launch"), None)
        if before is None or not start <= before["writes"][0][1] < stop:
            return True
    return False
