"""stage_ladder and predict_workers: what each stage costs, and what a number of workers makes of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, ClassVar

from edl_labs.checks import close, exercise
from edl_labs.errors import Wrong
from edl_labs.units import byte_count, counted, seconds
from edl_labs.virtual import Disk, LoaderMachine, ReplayError, VirtualWorkers, WorkersReplay, replay_workers

TOLERANCE = 0.03  # promised in the lab's text
LIMITS = ("workers", "cores", "disk", "step")
PAGE = 4096  # bytes: Linux's page
_READINGS = 400  # all pairs of them are compared: 80,000


@exercise("stage_ladder", timeout_s=90)
class StageLadder:
    """What each stage of a pipeline costs alone and with all before it, from cold, by readings of a clock.

    `student.stage_ladder(vw, stages, samples=)` gives `(name, alone_s, cumulative_s)` for each stage, cold.
    """

    form: ClassVar[Any] = {"rungs": [["", 0.0, 0.0]], "program": ""}
    loose = True

    def probe(self, student: Any, case: Any) -> Any:
        vw = VirtualWorkers(_machine(case))
        stages = stages_of(vw, case)
        rungs = student.stage_ladder(vw, stages, samples=case["samples"])
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

    def compare(self, case: Any, got: Any, want: Any) -> None:
        run = _replayed(case, got.get("program"))
        rungs = got["rungs"]
        names = [stage["name"] for stage in case["stages"]]
        if [rung[0] for rung in rungs] != names:
            raise Wrong(
                "a ladder has one rung for each stage, in order",
                why=f"the stages are {', '.join(names)}",
                next="(name, alone_s, cumulative_s) for each",
            )
        if not any(reading.op == "now" for reading in run.readings):
            raise Wrong(
                "the machine's own clock was never read",
                why="time.perf_counter() and the like tell the time of this computer; the stages run on a modelled one",
                next="read the clock of `vw`, which was given, before and after a run",
            )
        before = [0.0, *(right[2] for right in want["rungs"])]
        for rung, right, without in zip(rungs, want["rungs"], before, strict=False):
            if close(rung[2], without, rtol=TOLERANCE) and not close(rung[2], right[2], rtol=TOLERANCE):
                raise Wrong(
                    "a stage was left out of the run that ends with it",
                    why=f"cumulative, {rung[0]} came out as what stands before it: {seconds(rung[2])} a sample",
                    next="with the stages counted from 0, which of them does stages[:k] hold?",
                )
            for which, mine, good in (("alone", rung[1], right[1]), ("cumulative", rung[2], right[2])):
                if not close(mine, good, rtol=TOLERANCE):
                    raise _wrong_rung(case, rung, which=which, mine=mine, right=right)
        _refuse_unmeasured(case, rungs, run)

    def yours(self, case: Any, got: Any) -> str:
        """The ladder."""
        rows = [
            f"{name}: alone {1e3 * own:.4g} ms, cumulative {1e3 * all_s:.4g} ms" for name, own, all_s in got["rungs"]
        ]
        return "; ".join(rows)

    def public(self, case: Any, want: Any) -> Any:
        """The ladder, without the program that measured it."""
        return {"rungs": want["rungs"]}

    def show(self, case: Any) -> str:
        rows = [f"  {stage['name']}: {_told(stage)}" for stage in case["stages"]]
        return "\n".join([f"{case['samples']} samples, a seek takes {seconds(case['seek_s'])}", *rows])


def _told(stage: Any) -> str:
    if stage["kind"] == "read":
        return f"read, {byte_count(stage['bytes'])} a sample"
    return f"cpu, {seconds(min(stage['cpu_s']), digits=2)} to {seconds(max(stage['cpu_s']), digits=2)} a sample"


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


def _replayed(case: Any, text: Any) -> WorkersReplay:
    try:
        return replay_workers(json.loads(text), _machine(case))
    except (ReplayError, TypeError, ValueError, RecursionError) as error:
        raise Wrong(
            "the recorded program is not what this machine would have done",
            why=str(getattr(error, "what", "it is not a program"))[:200],
            next="use the machine through its own calls, and leave its record alone",
        ) from None


def _wrong_rung(case: Any, rung: Any, *, which: str, mine: float, right: Any) -> Wrong:
    good = right[1] if which == "alone" else right[2]
    why = f"{which}, {rung[0]} takes {1e3 * good:.4g} ms a sample; yours is {1e3 * mine:.4g} ms"
    if close(mine, good * case["samples"], rtol=TOLERANCE):
        return Wrong("that is the time of all samples", why=why, next="seconds per sample: divide")
    if which == "alone" and close(mine, right[2], rtol=TOLERANCE):
        return Wrong("a stage alone was measured with those before it", why=why, next="run that stage only")
    stage = next(stage for stage in case["stages"] if stage["name"] == rung[0])
    if mine < good and stage["kind"] == "read" and (which == "alone" or stage is case["stages"][0]):
        return Wrong(
            "a warm figure is given for a cold one",
            why=why,
            next="an earlier run left the data in the page cache; what empties it?",
        )
    if mine < good and which == "cumulative":
        return Wrong(
            "the stages together take longer than that",
            why=why,
            next="start each run cold, and run the stages sample by sample: two of them may share a disk",
        )
    return Wrong("a rung of the ladder is wrong", why=why, next="between two readings: all samples, once, from cold")


def _refuse_unmeasured(case: Any, rungs: Any, run: WorkersReplay) -> None:
    readings = [reading.value for reading in run.readings if reading.op == "now"][:_READINGS]
    spans = sorted(later - earlier for i, earlier in enumerate(readings) for later in readings[i + 1 :])
    for name, *times_s in rungs:
        for time_s in times_s:
            if not any(close(span, time_s * case["samples"], rtol=1e-6, atol=1e-9) for span in spans):
                raise Wrong(
                    "a figure does not lie between any two readings of the clock",
                    why=f"{name}: {seconds(time_s)} a sample; no two readings are {case['samples']} times that apart",
                    next="one pair of readings around all samples, their difference divided by the samples",
                )


@exercise("predict_workers")
class PredictWorkers:
    """Batches per second for a number of workers, and which resource stops it there.

    `student.predict_workers(workers, machine)` gives `(batch_per_s, limit)`; asked for a sweep of workers.
    """

    loose = True  # `_pair` names what is asked for

    def probe(self, student: Any, case: Any) -> Any:
        return [student.predict_workers(workers, dict(case["machine"])) for workers in case["workers"]]

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if len(got) != len(want):
            raise Wrong("each number of workers has one answer", why="some are missing", next="return (rate, limit)")
        for workers, answer, (right, why) in zip(case["workers"], got, want, strict=True):
            rate, limit = _pair(workers, answer)
            if not close(rate, right, rtol=1e-6):
                raise _wrong_rate(case["machine"], workers, [rate, limit], right, why)
            if limit != why:
                known = limit if limit in LIMITS else f"{limit[:40]!r}"
                raise Wrong(
                    f"{known} is not what stops it there",
                    why=f"{counted(workers, 'worker')}, {right:.4g} batches/s; the answers are {', '.join(LIMITS)}",
                    next="the smallest of the bounds is the one that holds; without workers nothing else runs beside",
                )

    def throughout(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """The one slip that gives every rate of every machine; a single rate may fit several."""
        asked = [
            (case["machine"], workers, _pair(workers, answer)[0], right[0])
            for case, answers, rights in zip(cases, got, want, strict=True)
            for workers, answer, right in zip(case["workers"], answers, rights, strict=True)
        ]
        if all(close(rate, right) for *_, rate, right in asked):
            return None
        if all(close(rate, 1 / right) for *_, rate, right in asked):
            return Wrong(
                "seconds per batch came back, not batches per second",
                why="every answer is 1 over the right one",
                next="return the rate: how many batches come in a second?",
            )
        for what, then, bounds in _SLIPS:
            if all(_gives(bounds, machine, workers, rate, right) for machine, workers, rate, right in asked):
                return Wrong(what, why="all of your rates are what that gives", next=then)
        return None

    def show(self, case: Any) -> str:
        return f"workers {case['workers']}, machine = {case['machine']}"


def _pair(workers: int, answer: Any) -> tuple[float, str]:
    kinds = [type(part) for part in answer] if isinstance(answer, list) else []
    if kinds not in ([float, str], [int, str]):
        came = {list: "a list or a tuple", type(None): "None", str: "text", dict: "a dict"}.get(
            type(answer), "a number"
        )
        inside = f" of {', '.join(kind.__name__ for kind in kinds)}" if kinds else ""
        raise Wrong(
            "predict_workers gives two things",
            why=f"for {counted(workers, 'worker')} it returned {came}{inside}, not a number and a name",
            next="return batch_per_s, limit",
        )
    return answer[0], answer[1]


def _wrong_rate(machine: Any, workers: int, answer: Any, right: float, limit: str) -> Wrong:
    m, (rate, own) = machine, answer
    one = m["cpu_s"] + m["wait_s"] + m["disk_s"]
    yours = f"yours is {rate:.4g} (limit: {own[:20]})"
    why = f"with {counted(workers, 'worker')}, the rate is {right:.4g} batches/s (limit: {limit}); {yours}"
    alike = {
        "a step on cores was taken to cost the loader nothing": min(
            max(1, workers) / one, m["cores"] / m["cpu_s"], 1 / m["disk_s"], 1 / m["step_s"]
        ),
        "a step was taken to need one core only": min(
            max(1, workers) / one, m["cores"] / (m["cpu_s"] + m["step_s"]), 1 / m["disk_s"], 1 / m["step_s"]
        ),
        "the step's cores were taken away for the whole time": min(
            max(1, workers) / one,
            (m["cores"] - m["step_threads"]) / m["cpu_s"],
            1 / m["disk_s"],
            1 / m["step_s"],
        ),
        "the number of cores was left out": min(max(1, workers) / one, 1 / m["disk_s"], 1 / m["step_s"]),
        "the disk was taken to serve every worker at full speed": min(
            max(1, workers) / one, m["cores"] / (m["cpu_s"] + m["step_threads"] * m["step_s"]), 1 / m["step_s"]
        ),
        "the step was left out": min(
            max(1, workers) / one, m["cores"] / (m["cpu_s"] + m["step_threads"] * m["step_s"]), 1 / m["disk_s"]
        ),
    }
    if workers == 0:
        return Wrong(
            "without workers, nothing overlaps", why=why, next="the main process loads and steps in turn: times add up"
        )
    for told, value in alike.items():
        if close(rate, value) and not close(value, right):
            return Wrong(told, why=why, next="each resource has a rate of its own; which of them did you ask?")
    return Wrong(
        "the rate is wrong",
        why=why,
        next=f"work out the bound of {limit!r} again, and that of {own[:20]!r}: the smaller one holds"
        if own != limit
        else f"work out the bound of {limit!r} again",
    )


def _gives(slip: Callable[[Any, int], float], machine: Any, workers: int, rate: float, right: float) -> bool:
    """Whether a slip gives this rate. Without workers it may have been made, or not."""
    return close(rate, slip(machine, workers)) or (workers == 0 and close(rate, right))


def _slip(
    *,
    one: Callable[[Any], float] = lambda m: m["cpu_s"] + m["wait_s"] + m["disk_s"],
    on_cores: Callable[[Any], float] = lambda m: m["cpu_s"] + m["step_threads"] * m["step_s"],
    step: Callable[[Any], float] = lambda m: m["step_s"],
    held: Callable[[list[float]], float] = min,
) -> Callable[[Any, int], float]:
    """The rate, by a batch's time in one worker, its time on the cores, a step's time, and which bound holds."""

    def rate(m: Any, workers: int) -> float:
        if workers == 0:
            return 1 / (one(m) + step(m))
        return held([workers / one(m), m["cores"] / on_cores(m), 1 / m["disk_s"], 1 / step(m)])

    return rate


_IN_TURN = "a worker computes, waits and reads a batch, one after the other"
_WORKING = "which of cpu_s, wait_s and disk_s keep a core at work?"
_SLIPS: tuple[tuple[str, str, Callable[[Any, int], float]], ...] = (
    ("wait_s was left out of a worker's time", _IN_TURN, _slip(one=lambda m: m["cpu_s"] + m["disk_s"])),
    ("disk_s was left out of a worker's time", _IN_TURN, _slip(one=lambda m: m["cpu_s"] + m["wait_s"])),
    ("cpu_s was left out of a worker's time", _IN_TURN, _slip(one=lambda m: m["wait_s"] + m["disk_s"])),
    (
        "the longest part of a worker's time was taken for all of it",
        _IN_TURN,
        _slip(one=lambda m: max(m["cpu_s"], m["wait_s"], m["disk_s"])),
    ),
    (
        "a step was taken to need one core only",
        "it needs step_threads cores, each for step_s",
        _slip(on_cores=lambda m: m["cpu_s"] + (m["step_s"] if m["step_threads"] else 0.0)),
    ),
    (
        "a worker that waits was taken to keep a core busy",
        _WORKING,
        _slip(on_cores=lambda m: m["cpu_s"] + m["wait_s"] + m["step_threads"] * m["step_s"]),
    ),
    (
        "a worker that reads was taken to keep a core busy",
        _WORKING,
        _slip(on_cores=lambda m: m["cpu_s"] + m["disk_s"] + m["step_threads"] * m["step_s"]),
    ),
    (
        "a worker was taken to keep a core busy while it waits and reads",
        _WORKING,
        _slip(on_cores=lambda m: m["cpu_s"] + m["wait_s"] + m["disk_s"] + m["step_threads"] * m["step_s"]),
    ),
    (
        "the step's time was multiplied by its threads",
        "step_s is what a step takes with all of its threads; the threads count for the cores alone",
        _slip(step=lambda m: m["step_s"] * max(1, m["step_threads"])),
    ),
    (
        "the times of all resources were added up",
        "with workers, all resources work at the same time: the smallest bound is the rate",
        _slip(held=lambda bounds: 1 / sum(1 / bound for bound in bounds)),
    ),
)
