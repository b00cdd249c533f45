"""predict_workers: what a number of workers makes of a loader, and what stops it there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from edl_labs.checks import Exercise, close, exercise
from edl_labs.errors import Wrong
from edl_labs.units import counted

LIMITS = ("workers", "cores", "disk", "step")


@exercise("predict_workers")
class PredictWorkers(Exercise):
    """Batches per second for a number of workers, and which resource stops it there.

    `student.predict_workers(workers, machine)` gives `(batch_per_s, limit)`; called for a sweep of workers.
    """

    answers = "all"

    skip_type_check = True  # `_pair` names what is asked for

    def probe(self, student: Any, given: Any) -> Any:
        return [student.predict_workers(workers, dict(given["machine"])) for workers in given["workers"]]

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if len(got) != len(want):
            raise Wrong("each number of workers has one answer", why="some are missing", next="return (rate, limit)")
        for workers, answer, (right, why) in zip(case["workers"], got, want, strict=True):
            rate, limit = _pair(workers, answer)
            if not close(rate, right, rtol=1e-6):
                raise _wrong_rate(workers, [rate, limit], right, why)
            if limit != why:
                known = limit if limit in LIMITS else f"{limit[:40]!r}"
                raise Wrong(
                    f"{known} is not what stops it there",
                    why=f"{counted(workers, 'worker')}, {right:.4g} batches/s; the answers are {', '.join(LIMITS)}",
                    next="the smallest of the bounds is the one that holds; without workers nothing overlaps",
                )

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
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

    def format_case(self, case: Any) -> str:
        return f"workers {case['workers']}, machine = {case['machine']}"


def _pair(workers: int, answer: Any) -> tuple[float, str]:
    kinds = [type(part) for part in answer] if isinstance(answer, list) else []
    if kinds in ([str, float], [str, int]):
        raise Wrong(
            "the limit came first, and the rate second",
            why=f"for {counted(workers, 'worker')} the first of the two is {answer[0][:40]!r}",
            next="return batch_per_s, limit",
        )
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


def _wrong_rate(workers: int, answer: Any, right: float, limit: str) -> Wrong:
    rate, own = answer
    yours = f"yours is {rate:.4g} (limit: {own[:20]})"
    why = f"with {counted(workers, 'worker')}, the rate is {right:.4g} batches/s (limit: {limit}); {yours}"
    if workers == 0:
        then = "without workers nothing overlaps: the main process loads and steps in turn, so their times add up"
        return Wrong("the rate without workers is wrong", why=why, next=then)
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
    disk: Callable[[Any], float] = lambda m: m["disk_s"],
    cores: Callable[[Any], float] = lambda m: m["cores"],
    held: Callable[[list[float]], float] = min,
) -> Callable[[Any, int], float]:
    """The rate, by a batch's time in one worker, its time on the cores, a step's time, and which bound holds."""

    def rate(m: Any, workers: int) -> float:
        if workers == 0:
            return 1 / (one(m) + step(m))
        return held([workers / one(m), cores(m) / on_cores(m), 1 / disk(m), 1 / step(m)])

    return rate


def _like_one(machine: Any, workers: int) -> float:
    return _slip()(machine, max(1, workers))


_NONE_S = 1e-12  # of a resource that was left out: its bound never holds
_EACH = "each resource has a rate of its own: workers, cores, disk and step; the smallest holds"
_IN_TURN = "a worker computes, waits and reads a batch, one after the other"
_WORKING = "which of cpu_s, wait_s and disk_s keep a core at work?"
_SLIPS: tuple[tuple[str, str, Callable[[Any, int], float]], ...] = (
    ("wait_s was left out of a worker's time", _IN_TURN, _slip(one=lambda m: m["cpu_s"] + m["disk_s"])),
    ("disk_s was left out of a worker's time", _IN_TURN, _slip(one=lambda m: m["cpu_s"] + m["wait_s"])),
    ("cpu_s was left out of a worker's time", _IN_TURN, _slip(one=lambda m: m["wait_s"] + m["disk_s"])),
    (
        "the longest part of a worker's time was taken as its whole time",
        _IN_TURN,
        _slip(one=lambda m: max(m["cpu_s"], m["wait_s"], m["disk_s"])),
    ),
    (
        "without workers, nothing overlaps",
        "the main process loads and steps in turn: times add up",
        _like_one,
    ),
    (
        "a step on cores was taken to cost the loader nothing",
        "it needs step_threads cores, each for step_s",
        _slip(on_cores=lambda m: m["cpu_s"]),
    ),
    (
        "a step on a device was taken to need a core too",
        "with step_threads 0 the step takes no core",
        _slip(on_cores=lambda m: m["cpu_s"] + max(1, m["step_threads"]) * m["step_s"]),
    ),
    (
        "every step was taken to need one core",
        "it needs step_threads cores, each for step_s; with step_threads 0, none",
        _slip(on_cores=lambda m: m["cpu_s"] + m["step_s"]),
    ),
    (
        "the step's cores were taken away for the whole time",
        "a step has its cores for step_s of each batch, and workers have them for the rest",
        _slip(on_cores=lambda m: m["cpu_s"], cores=lambda m: m["cores"] - m["step_threads"]),
    ),
    ("the number of cores was left out", _EACH, _slip(on_cores=lambda m: _NONE_S)),
    ("the disk was taken to serve every worker at full speed", _EACH, _slip(disk=lambda m: _NONE_S)),
    ("the step was left out", _EACH, _slip(step=lambda m: _NONE_S)),
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
        "step_s is what a step takes with all of its threads; the threads count only for the cores",
        _slip(step=lambda m: m["step_s"] * max(1, m["step_threads"])),
    ),
    (
        "the step's time was divided by its threads",
        "step_s is what a step takes with all of its threads; the threads count only for the cores",
        _slip(step=lambda m: m["step_s"] / max(1, m["step_threads"])),
    ),
    (
        "the times of all resources were added up",
        "with workers, all resources work at the same time: the smallest bound is the rate",
        _slip(held=lambda bounds: 1 / sum(1 / bound for bound in bounds)),
    ),
    (
        "the largest of the bounds was taken, not the smallest",
        "what one resource could do is of no use where another one cannot: a loop keeps the pace of its slowest part",
        _slip(held=max),
    ),
)
