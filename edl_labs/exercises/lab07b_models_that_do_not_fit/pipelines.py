"""pipeline: micro-batches through stages that lie on several ranks, judged by time, memory and what reached what."""

from __future__ import annotations

import math
from collections.abc import Mapping
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
from edl_labs.units import byte_count, counted, seconds
from edl_labs.virtual.cluster import ClusterMachine, ClusterReplay, PipelineStage, Rank, VirtualCluster

MOST_TIME = 1.02  # of the schedule's own, promised in the lab's text
_SAME = 1e-6  # relative: sums in another order
_PASSES = ("forward_s", "backward_s")


@exercise("pipeline")
class Pipeline(Exercise):
    """A step of a pipeline by GPipe or 1F1B, and the seconds that a stage idles.

    `order(schedule, stage, stages, micro)` lists ("forward" or "backward", micro-batch), `run_stage(stage, schedule)`
    does them on a PipelineStage, and `idle_seconds(schedule, stages, micro, forward_s=, backward_s=, chunks=)` needs no
    program. The evidence is the program of every rank.
    """

    answers = "all"

    returns: ClassVar[Mapping[str, Any]] = {"idle_seconds": float}
    answer_form: ClassVar[Any] = {"programs": "", "idle_s": 0.0}

    def probe(self, student: Any, given: Any) -> Any:
        passes = {name: given[name] for name in _PASSES}
        idle_s = student.idle_seconds(
            given["schedule"], given["stages"], given["micro"], chunks=given["chunks"], **passes
        )
        if given["schedule"] == "interleaved":
            return {"programs": "", "idle_s": idle_s}

        def program(dist: Any) -> None:
            student.run_stage(_stage(given, dist), given["schedule"])

        return {"programs": written_programs(VirtualCluster(_machine(given)).record(program)), "idle_s": idle_s}

    def public_want(self, case: Any, want: Any) -> Any:
        """What the schedule takes: its program would be the answer."""
        if case["schedule"] == "interleaved":
            return {"idle_s": want["idle_s"]}
        run = replayed_programs(want["programs"], _machine(case))
        return {"makespan_s": run.makespan_s, "peak_bytes": list(run.peak_bytes), "idle_s": want["idle_s"]}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if case["schedule"] != "interleaved":
            machine = _machine(case)
            fixed = case_programs(machine, lambda rank: _stage(case, rank), _call_all)
            run = bound_programs(got["programs"], machine, fixed)
            best = want if "makespan_s" in want else self.public_want(case, want)
            _judge_waiting(case, run)
            _judge_passes(case, run)
            _judge_order(case, run)
            _judge_memory(case, run, best["peak_bytes"])
            if run.makespan_s > MOST_TIME * best["makespan_s"]:
                raise _time_symptom(case, run, best["makespan_s"])
        if not math.isclose(got["idle_s"], want["idle_s"], rel_tol=_SAME):
            raise _idle_symptom(case, got["idle_s"])

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """One part of the right time in all cases of 1F1B, where all else is right: passes alone differ in each."""
        parts: list[list[float]] = [[], []]  # of 1F1B, and of other schedules
        for case, mine, right in zip(cases, got, want, strict=True):
            parts[case["schedule"] != "1f1b"].append(mine["idle_s"] / right["idle_s"])
        part = parts[0][0]
        if not 0 < part < 1 - _SAME or not all(math.isclose(one, part, rel_tol=_SAME) for one in parts[0]):
            return None
        if not all(math.isclose(one, 1, rel_tol=_SAME) for one in parts[1]):
            return None
        for case, mine, right in zip(cases, got, want, strict=True):
            self.compare(case, {**mine, "idle_s": right["idle_s"]}, right)  # an order that is wrong comes first
        return _shrunk(
            "in all cases of 1F1B, you return the same fraction of the idle time; all other results are right"
        )

    def format_case(self, case: Any) -> str:
        """The schedule and the sizes."""
        chunks = f", {case['chunks']} chunks of layers per stage" if case["schedule"] == "interleaved" else ""
        return (
            f"{case['schedule']}: {case['stages']} stages, {case['micro']} micro-batches, "
            f"{seconds(case['forward_s'])} forward, {seconds(case['backward_s'])} backward{chunks}"
        )


def _machine(case: Any) -> ClusterMachine:
    return ClusterMachine.flat(case["stages"], alpha_s=5e-6, byte_per_s=50e9)


def _stage(case: Any, rank: Rank) -> PipelineStage:
    return PipelineStage(rank, **{name: case[name] for name in ("micro", "elements", "kept", *_PASSES)})


def _call_all(stage: PipelineStage) -> None:
    """Each call that the rank of a stage may make, one micro-batch after another: no schedule of the exercise."""
    after, before = stage.stage + 1 < stage.stages, stage.stage > 0
    for micro in range(stage.micro):
        if before:
            stage.recv_forward(micro)
        stage.forward(micro)
        if after:
            stage.send_forward(micro)
            stage.recv_backward(micro)
        stage.backward(micro)
        if before:
            stage.send_backward(micro)


def _judge_waiting(case: Any, run: ClusterReplay) -> None:
    if run.hang is not None and sum(wait.call.startswith("send") for wait in run.hang.waits) > 1:
        then = "use `isend`, which returns at once, so that the stage can reach its own `recv`"
        raise Wrong(
            "in your schedule, stages send at the same time, but none of them receives", why=run.hang.what, next=then
        )
    if run.hang is not None:
        _judge_whole(case, run)
        calls = {wait.rank: wait.call for wait in run.hang.waits}
        crossed = any("(backward" in calls.get(at, "") and "(forward" in calls.get(at + 1, "") for at in calls)
        if case["schedule"] == "1f1b" and crossed and _is_warmed_up_too_long(case, run):
            what = "in your schedule, a stage waits for a gradient while the next stage waits for more inputs"
            then = "warm up with one forward pass for each later stage; the last stage needs no warm-up"
            raise Wrong(what, why=run.hang.what, next=then)
    require_end(run)


def _judge_whole(case: Any, run: ClusterReplay) -> None:
    """Every micro-batch forward and back on every stage."""
    for stage, program in enumerate(run.programs):
        passes = {entry["name"] for entry in program if entry["op"] == "launch"}
        wanted = {f"{kind} {i} of stage {stage}" for kind in ("forward", "backward") for i in range(case["micro"])}
        missing = sorted(wanted - passes)
        if missing:
            then = "run one forward and one backward pass of every micro-batch on every stage"
            raise Wrong("your step is incomplete", why=f"{missing[0]} never runs", next=then)


def _judge_passes(case: Any, run: ClusterReplay) -> None:
    """Each pass once, on its stage, as long as it takes, and from what its neighbour has sent."""
    _judge_whole(case, run)
    for stage, program in enumerate(run.programs):
        passes = {entry["name"]: entry for entry in program if entry["op"] == "launch"}
        wanted = {f"{kind} {i} of stage {stage}" for kind in ("forward", "backward") for i in range(case["micro"])}
        if len(passes) > len(wanted) or sum(entry["op"] == "launch" for entry in program) > len(wanted):
            why = f"stage {stage} runs more than {len(wanted)} passes"
            raise Wrong(
                "your schedule runs a pass more than once",
                why=why,
                next="run each forward pass once and each backward pass once",
            )
        _judge_forgery(case, stage, program, run)
        for name, entry in passes.items():
            _judge_reads(case, stage, name, entry, run)


def _judge_forgery(case: Any, stage: int, program: Any, run: ClusterReplay) -> None:
    took = {"forward": case["forward_s"], "backward": case["backward_s"]}
    written = [part[0] for entry in program for part in entry.get("writes", ())]
    good = len(set(written)) == len(written) and not any(entry["op"] in ("add", "copy", "scale") for entry in program)
    for entry in program:
        if entry["op"] == "launch":
            good = good and entry.get("duration_s") == took[entry["name"].split()[0]]
    if not good or run.races:
        then = "use only the stage's forward, backward, and calls that send or receive"
        raise Wrong(
            "your program was not recorded by the stage's calls alone",
            why=f"stage {stage}'s program contains other operations",
            next=then,
        )


def _judge_reads(case: Any, stage: int, name: str, entry: Any, run: ClusterReplay) -> None:
    kind, number = name.split()[:2]
    needed = [f"{kind} {number} of stage {stage - 1 if kind == 'forward' else stage + 1}("]
    if not 0 <= stage + (-1 if kind == "forward" else 1) < case["stages"]:
        needed = []
    if kind == "backward":
        needed.append(f"forward {number} of stage {stage}(")
    found = [
        term.source for part in entry.get("reads", ()) for one in run.contents(stage, part[0]) for term in one.terms
    ]
    for text in needed:
        if not any(source.startswith(text) for source in found):
            _judge_turns(case, run)
            read = ", ".join(source.partition("(")[0] for source in found)
            why = f"{name} reads the result of: {read or 'no pass'}"
            raise Wrong(
                "in your schedule, a pass does not read the data of its own micro-batch",
                why=why,
                next="send and receive in the same order",
            )


def _judge_turns(case: Any, run: ClusterReplay) -> None:
    """Stages that go back in another order than they went forward, each in its own."""
    for stage, program in enumerate(run.programs):
        names = [entry["name"].split() for entry in program if entry["op"] == "launch"]
        held: list[str] = []
        for kind, number, *_ in names:
            if kind == "forward":
                held.append(number)
            elif number in held:
                if held[0] != number and case["schedule"] == "1f1b":
                    why = f"stage {stage} runs backward pass {number}, but has held micro-batch {held[0]} for longer"
                    then = "run the backward pass of the oldest micro-batch first: gradients come back in order"
                    raise Wrong("your schedule runs a backward pass for the wrong micro-batch", why=why, next=then)
                held.remove(number)


def _judge_order(case: Any, run: ClusterReplay) -> None:
    for stage, program in enumerate(run.programs):
        kinds = [entry["name"].split()[0] for entry in program if entry["op"] == "launch"]
        if case["schedule"] == "gpipe" and kinds != sorted(kinds, reverse=True):
            why = f"stage {stage} runs a backward pass before its last forward pass"
            then = "run all forward passes first: only 1F1B runs backward passes earlier"
            raise Wrong("your schedule runs a backward pass too early for GPipe", why=why, next=then)


def _in_flight(program: Any) -> int:
    """The most micro-batches that are held at once."""
    held = most = 0
    for entry in program:
        if entry["op"] == "launch":
            held += 1 if entry["name"].startswith("forward") else -1
            most = max(most, held)
    return most


def _is_warmed_up_too_long(case: Any, run: ClusterReplay) -> bool:
    """Whether a stage has more forward passes before its first backward pass than there are stages from it on."""
    for stage, program in enumerate(run.programs):
        kinds = [entry["name"].split()[0] for entry in program if entry["op"] == "launch"]
        if "backward" in kinds and kinds.index("backward") > min(case["micro"], case["stages"] - stage):
            return True
    return False


def _judge_memory(case: Any, run: ClusterReplay, best: list[int]) -> None:
    for stage, (mine, right) in enumerate(zip(run.peak_bytes, best, strict=True)):
        if mine <= right:
            continue
        flying, fewest = _in_flight(run.programs[stage]), min(case["micro"], case["stages"] - stage)
        why = f"stage {stage} holds {byte_count(mine)} with {counted(flying, 'micro-batch')} in flight; "
        why += f"{byte_count(right)} with {fewest} in flight would be enough"
        if case["schedule"] == "1f1b" and flying == case["micro"]:
            then = "run a backward pass as soon as its gradient arrives, so that forward and backward passes alternate"
            raise Wrong("in your schedule, all micro-batches are in flight at once, as in GPipe", why=why, next=then)
        if case["schedule"] == "1f1b" and stage and flying >= min(case["micro"], case["stages"]):
            then = "how many stages come after this one?"
            raise Wrong("in your schedule, every stage warms up as long as the first stage", why=why, next=then)
        if case["schedule"] == "1f1b" and flying > fewest:
            then = "end the warm-up earlier: from then on, alternate one forward pass and one backward pass"
            raise Wrong("your warm-up is too long", why=why, next=then)
        raise Wrong(
            "in your schedule, a stage holds more than the data of its micro-batches in flight",
            why=why,
            next="receive data right before the pass that needs it",
        )


def _time_symptom(case: Any, run: ClusterReplay, best_s: float) -> Wrong:
    why = f"your step takes {seconds(run.makespan_s)}, but this schedule needs only {seconds(best_s)}"
    flying = [_in_flight(program) for program in run.programs]
    if max(flying) == 1:
        then = "warm up with several micro-batches: while later stages work on one, the first stage can begin the next"
        return Wrong("in your schedule, micro-batches go through the whole pipeline one at a time", why=why, next=then)
    if case["schedule"] == "1f1b" and any(
        one < min(case["micro"], case["stages"] - stage) for stage, one in enumerate(flying)
    ):
        then = "how many micro-batches can go forward before the first gradient comes back?"
        return Wrong("your warm-up is too short", why=f"{why}; micro-batches in flight by stage: {flying}", next=then)
    return Wrong("in your schedule, stages wait for each other", why=why, next="in which order do gradients come back?")


def _shrunk(why: str) -> Wrong:
    then = "GPipe and 1F1B fill and drain in the same way: what does 1F1B reduce instead?"
    return Wrong("your answer shrinks the bubble of 1F1B, but 1F1B does not shrink the bubble", why=why, next=then)


def _idle_symptom(case: Any, said: float) -> Wrong:
    stages, micro, pair_s = case["stages"], case["micro"], case["forward_s"] + case["backward_s"]
    right_s = (stages - 1) * pair_s / case["chunks"]
    why = f"for {case['schedule']} with {stages} stages and {micro} micro-batches, idle_seconds() returned {said:.4g}"
    if math.isclose(said, (stages - 1) * case["forward_s"] / case["chunks"], rel_tol=_SAME):
        return Wrong(
            "your result leaves out the time in which the pipeline drains",
            why=why,
            next="count both: filling takes p - 1 forward passes, draining takes p - 1 backward passes",
        )
    if math.isclose(said, (stages - 1) / (micro + stages - 1) * micro * pair_s / case["chunks"], rel_tol=_SAME):
        then = (
            "use the length of the whole step, which includes the bubble: m + p - 1 forward and backward passes, not m"
        )
        return Wrong("your result applies the bubble's share to the work, not to the whole step", why=why, next=then)
    if math.isclose(said, right_s * stages, rel_tol=_SAME):
        then = "count the idle time of a single stage: p - 1 forward and p - 1 backward passes"
        if stages == micro:
            return Wrong("your result counts the bubble several times", why=why, next=then)
        return Wrong("your result is the idle time of all stages together", why=why, next=then)
    if case["schedule"] == "1f1b" and any(
        math.isclose(said, right_s * part, rel_tol=_SAME) for part in (0, 1 / stages, 1 / micro, stages / micro)
    ):
        return _shrunk(why)
    if case["schedule"] == "interleaved" and math.isclose(said, right_s * case["chunks"], rel_tol=_SAME):
        then = "with v chunks per stage, after what part of a pass does a micro-batch reach the last stage?"
        return Wrong("your result ignores that interleaved chunks shrink the bubble", why=why, next=then)
    if math.isclose(said, (stages - 1) / (micro + stages - 1), rel_tol=_SAME):
        then = "return seconds: of which time is your result a share?"
        return Wrong("your result is a share of the step, not a time", why=why, next=then)
    if math.isclose(said, stages * pair_s / case["chunks"], rel_tol=_SAME):
        return Wrong(
            "your result counts a stage's own pass as idle time",
            why=why,
            next="how many other stages are there?",
        )
    if said > right_s * 1.5 and math.isclose(said, right_s * micro, rel_tol=_SAME):
        then = "how often does the pipeline fill and drain in a step?"
        return Wrong("your result counts the bubble several times", why=why, next=then)
    then = "how long does a stage wait before its first pass and after its last one?"
    return Wrong("your idle time of a stage is wrong", why=f"{why}, expected {right_s:.4g}", next=then)
