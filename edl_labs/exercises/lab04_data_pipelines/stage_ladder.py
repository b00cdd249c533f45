"""stage_ladder: what each stage of a pipeline costs."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, ClassVar

from edl_labs.checks import Exercise, close, exercise
from edl_labs.errors import Wrong
from edl_labs.units import byte_count, seconds
from edl_labs.virtual import Disk, LoaderMachine, ReplayError, VirtualWorkers, WorkersReplay, replay_workers
from edl_labs.virtual.case_program import CaseProgram, require_case
from edl_labs.virtual.errors import ProgramChanged
from edl_labs.virtual.loader.program import PROGRAM

PAGE = 4096  # bytes: Linux's page
TOLERANCE = 0.03  # promised in the lab's text
_DICT = "a dict, and no list"  # what stands for one in evidence
_READINGS = 400  # all pairs of them are compared: 80,000


@exercise("stage_ladder", timeout_s=90)
class StageLadder(Exercise):
    """What each stage of a pipeline costs alone and with all before it, from cold, by readings of a clock.

    `student.stage_ladder(vw, stages, samples=)` gives `(name, alone_s, cumulative_s)` for each stage, cold.
    """

    answers = "all"

    answer_form: ClassVar[Any] = {"rungs": [["", 0.0, 0.0]], "program": ""}
    skip_type_check = True

    def probe(self, student: Any, given: Any) -> Any:
        vw = VirtualWorkers(_machine(given))
        stages = stages_of(vw, given)
        rungs = student.stage_ladder(vw, stages, samples=given["samples"])
        if isinstance(rungs, dict):
            return {"rungs": [[_DICT, 0.0, 0.0]], "program": "[]"}
        try:
            # A text enum is the text that it stands for: str() would give the enum's own name.
            plain = [
                [str.__str__(name) if isinstance(name, str) else str(name), float(alone_s), float(cumulative_s)]
                for name, alone_s, cumulative_s in rungs
            ]
        except (TypeError, ValueError):
            # No list of triples: judged as a ladder without rungs.
            plain = []
        return {"rungs": plain, "program": json.dumps(vw.program, separators=(",", ":"))}

    def explain_exception(self, case: Any, error: str) -> Wrong | None:
        """A stage that was called for a sample that there is not: reading is all that raises this."""
        if error != "VirtualWorkersError":
            return None
        return Wrong(
            "your code called a stage with a sample that does not exist",
            why=f"there are {case['samples']} samples, 0 to {case['samples'] - 1}; the file ends after the last one",
            next="count the samples from 0",
        )

    def compare(self, case: Any, got: Any, want: Any) -> None:
        rungs = got["rungs"]
        if rungs and rungs[0][0] == _DICT:
            raise Wrong(
                "your function returned a dict instead of a list",
                why="each rung of a ladder has three values: the stage's name and its two times",
                next="return a list of (name, alone_s, cumulative_s), in the order of the stages",
            )
        run = _replayed(case, got.get("program"))
        names = [stage["name"] for stage in case["stages"]]
        if [rung[0] for rung in rungs] != names:
            raise Wrong(
                "a ladder must have one rung for each stage, in order",
                why=f"the stages are {', '.join(names)}",
                next="return (name, alone_s, cumulative_s) for each stage",
            )
        if not any(reading.op == "now" for reading in run.readings):
            raise Wrong(
                "your code never read the machine's own clock",
                why="the stages run on a modelled machine; time.perf_counter() and similar clocks measure this "
                "computer",
                next="read the clock of `vw` before and after each run",
            )
        _refuse_other_columns(rungs, want["rungs"])
        if not _alike(rungs, want["rungs"]):
            _refuse_one_sample(case, json.loads(got["program"]))
        before = [0.0, *(right[2] for right in want["rungs"])]
        for rung, right, without in zip(rungs, want["rungs"], before, strict=False):
            if close(rung[2], without, rtol=TOLERANCE) and not close(rung[2], right[2], rtol=TOLERANCE):
                raise Wrong(
                    "your code left out a stage in the run that ends with this stage",
                    why=f"your cumulative time of {rung[0]!r}, {seconds(rung[2])} per sample, is the time without that "
                    "stage",
                    next="if the stages are counted from 0, which of them are in stages[:k]?",
                )
            for which, mine, good in (("alone", rung[1], right[1]), ("cumulative", rung[2], right[2])):
                if not close(mine, good, rtol=TOLERANCE):
                    raise _wrong_rung(case, rung, which=which, mine=mine, right=right)
        _refuse_unmeasured(case, rungs, run)

    def format_answer(self, case: Any, got: Any) -> str:
        """The ladder; a dict is described, not shown."""
        if got["rungs"] and got["rungs"][0][0] == _DICT:
            return ""
        rows = [
            f"{name}: alone {1e3 * own:.4g} ms, cumulative {1e3 * all_s:.4g} ms" for name, own, all_s in got["rungs"]
        ]
        return "; ".join(rows)

    def public_want(self, case: Any, want: Any) -> Any:
        """The ladder, without the program that measured it."""
        return {"rungs": want["rungs"]}

    def format_case(self, case: Any) -> str:
        rows = [f"  {stage['name']}: {_told(stage)}" for stage in case["stages"]]
        return "\n".join([f"{case['samples']} samples, a seek takes {seconds(case['seek_s'])}", *rows])


def _refuse_other_columns(rungs: Any, right: Any) -> None:
    """The two columns of a ladder changed places, or the second one was divided once more."""
    if len(right) < 2 or _alike(rungs, right):
        return
    if _alike([(name, all_s, own_s) for name, own_s, all_s in rungs], right):
        raise Wrong(
            "in your answer, alone_s and cumulative_s are in the wrong order",
            why=f"for {rungs[1][0]!r}, the first time that your function returned includes all stages before it",
            next="return (name, alone_s, cumulative_s)",
        )
    if _alike([(name, own_s, all_s * place) for place, (name, own_s, all_s) in enumerate(rungs, 1)], right):
        raise Wrong(
            "your code divides the cumulative time by the number of stages, too",
            why=f"for {rungs[1][0]!r}, the second stage, you returned half of the right value: {seconds(rungs[1][2])}",
            next="divide only by the number of samples: cumulative is the time in all of these stages together",
        )


def _refuse_one_sample(case: Any, program: Any) -> None:
    """Of all samples one alone was ever read; the first stage of all reads."""
    seen = {entry["offset"] // entry["bytes"] for entry in program if entry["op"] == "read"}
    if len(seen) == 1 < case["samples"]:
        raise Wrong(
            "your code ran only one sample, but each figure must be the mean over all samples",
            why=f"sample {seen.pop()} was read, but the other {case['samples'] - 1} were not",
            next="between two clock readings, run all samples once, from cold; divide the difference by their number",
        )


def _alike(rungs: Any, right: Any) -> bool:
    return all(
        close(mine, good, rtol=TOLERANCE)
        for (_, *times_s), (_, *good_s) in zip(rungs, right, strict=True)
        for mine, good in zip(times_s, good_s, strict=True)
    )


def _told(stage: Any) -> str:
    if stage["kind"] == "read":
        return f"read, {byte_count(stage['bytes'])} per sample"
    return f"cpu, {seconds(min(stage['cpu_s']), digits=2)} to {seconds(max(stage['cpu_s']), digits=2)} per sample"


def _machine(case: Any) -> LoaderMachine:
    return LoaderMachine(
        disks=(Disk("disk", seek_s=case["seek_s"], read_byte_per_s=case["byte_per_s"]),),
        cache_bytes=1 << 40,
        memory_byte_per_s=10e9,
        open_s=case["open_s"],
        clock_resolution_s=1e-5,
        clock_read_cost_s=1e-6,
    )


def stages_of(vw: VirtualWorkers, case: Any) -> list[tuple[str, Callable[[int], None]]]:
    """The stages of a case as functions of a sample's number, on `vw`."""
    files: dict[int, Any] = {}

    def stage(spec: Any, place: int) -> Callable[[int], None]:
        if spec["kind"] == "cpu":
            return lambda sample: vw.work(spec["name"], spec["cpu_s"][sample])
        file = files[place] = vw.file(spec["bytes"] * case["samples"], name=spec["name"])
        return lambda sample: vw.read(file, offset=sample * spec["bytes"], nbytes=spec["bytes"])

    return [(spec["name"], stage(spec, place)) for place, spec in enumerate(case["stages"])]


def _case_program(case: Any) -> CaseProgram:
    """The files of the stages, and each stage on each sample."""
    vw = VirtualWorkers(_machine(case))
    stages = stages_of(vw, case)
    first = len(vw.program)
    for _, stage in stages:
        for sample in range(case["samples"]):
            stage(sample)
    return CaseProgram(vw.program[:first], vw.program[first:])


def _replayed(case: Any, text: Any) -> WorkersReplay:
    try:
        run = replay_workers(json.loads(text), _machine(case))
        require_case(PROGRAM, run.program, _case_program(case))
        return run
    except ProgramChanged as error:
        raise Wrong(error.what, why=error.why, next=error.next) from None
    except (ReplayError, TypeError, ValueError, RecursionError) as error:
        raise Wrong(
            "the recorded program cannot be replayed on this machine",
            why=str(getattr(error, "what", "it is not a program"))[:200],
            next="use only the calls of `vw`, and do not change its record",
        ) from None


def _wrong_rung(case: Any, rung: Any, *, which: str, mine: float, right: Any) -> Wrong:
    good = right[1] if which == "alone" else right[2]
    why = f"for {rung[0]!r}, {which}: expected {1e3 * good:.4g} ms per sample, got {1e3 * mine:.4g} ms"
    if close(mine, good * case["samples"], rtol=TOLERANCE):
        return Wrong("your time is that of all samples together", why=why, next="divide by the number of samples")
    if which == "alone" and close(mine, right[2], rtol=TOLERANCE):
        return Wrong(
            "your time of a stage alone includes the stages before it",
            why=why,
            next="run only that stage between the two clock readings",
        )
    stage = next(stage for stage in case["stages"] if stage["name"] == rung[0])
    if mine < good and stage["kind"] == "read" and (which == "alone" or stage is case["stages"][0]):
        return Wrong(
            "your code measured a stage warm instead of cold",
            why=why,
            next="an earlier run left the data in the page cache: what empties it?",
        )
    if mine < good and which == "cumulative":
        return Wrong(
            "your cumulative time is too short",
            why=why,
            next="start each run cold, and run the stages sample by sample: two of them may share a disk",
        )
    return Wrong(
        "one of your rungs is wrong",
        why=why,
        next="between two clock readings, run all samples once, from cold",
    )


def _refuse_unmeasured(case: Any, rungs: Any, run: WorkersReplay) -> None:
    readings = [reading.value for reading in run.readings if reading.op == "now"][:_READINGS]
    spans = sorted(later - earlier for i, earlier in enumerate(readings) for later in readings[i + 1 :])
    for name, *times_s in rungs:
        for time_s in times_s:
            if not any(close(span, time_s * case["samples"], rtol=1e-6, atol=1e-9) for span in spans):
                raise Wrong(
                    "one of your figures is not the difference of any two clock readings",
                    why=f"for {name!r}, your time is {seconds(time_s)} per sample; no two readings differ by "
                    f"{case['samples']} times that",
                    next="take one pair of readings around all samples, and divide their difference by the number of "
                    "samples",
                )
