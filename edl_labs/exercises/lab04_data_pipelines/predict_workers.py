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
            raise Wrong(
                "answers are missing", why="each number of workers needs one answer", next="return (rate, limit)"
            )
        for workers, answer, (right, why) in zip(case["workers"], got, want, strict=True):
            rate, limit = _pair(workers, answer)
            if not close(rate, right, rtol=1e-6):
                raise _wrong_rate(workers, [rate, limit], right, why)
            if limit != why:
                known = limit if limit in LIMITS else f"{limit[:40]!r}"
                raise Wrong(
                    f"{known} is not the limit here",
                    why=f"with {counted(workers, 'worker')}, the rate is {right:.4g} batches/s; possible limits are "
                    f"{', '.join(LIMITS)}",
                    next="find the resource with the smallest bound; without workers, nothing overlaps",
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
                "your function returned seconds per batch, not batches per second",
                why="every answer is the reciprocal of the right one",
                next="return the rate: how many batches are finished per second?",
            )
        for what, then, bounds in _SLIPS:
            if all(_gives(bounds, machine, workers, rate, right) for machine, workers, rate, right in asked):
                return Wrong(
                    what, why="your rates are exactly those that this mistake produces, in all cases", next=then
                )
        return None

    def format_case(self, case: Any) -> str:
        return f"workers {case['workers']}, machine = {case['machine']}"


def _pair(workers: int, answer: Any) -> tuple[float, str]:
    kinds = [type(part) for part in answer] if isinstance(answer, list) else []
    if kinds in ([str, float], [str, int]):
        raise Wrong(
            "your function returned the limit first, and the rate second",
            why=f"for {counted(workers, 'worker')}, the first value is {answer[0][:40]!r}",
            next="return batch_per_s, limit",
        )
    if kinds not in ([float, str], [int, str]):
        came = {list: "a list or a tuple", type(None): "None", str: "text", dict: "a dict"}.get(
            type(answer), "a number"
        )
        inside = f" of {', '.join(kind.__name__ for kind in kinds)}" if kinds else ""
        raise Wrong(
            "predict_workers must return two values",
            why=f"for {counted(workers, 'worker')}, it returned {came}{inside}, not a number and a name",
            next="return batch_per_s, limit",
        )
    return answer[0], answer[1]


def _wrong_rate(workers: int, answer: Any, right: float, limit: str) -> Wrong:
    rate, own = answer
    yours = f"yours is {rate:.4g} (limit: {own[:20]})"
    why = f"with {counted(workers, 'worker')}, the rate is {right:.4g} batches/s (limit: {limit}); {yours}"
    if workers == 0:
        then = "add up the times: without workers, the main process loads and steps in turn, and nothing overlaps"
        return Wrong("your rate without workers is wrong", why=why, next=then)
    return Wrong(
        "your rate is wrong",
        why=why,
        next=f"work out the bounds of {limit!r} and {own[:20]!r} again: the smaller one is the rate"
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
_EACH = "work out a rate for each resource (workers, cores, disk and step), and return the smallest"
_IN_TURN = "add up what a worker does for a batch: it computes, waits and reads, one after the other"
_WORKING = "which of cpu_s, wait_s and disk_s keep a core busy?"
_SLIPS: tuple[tuple[str, str, Callable[[Any, int], float]], ...] = (
    ("your code leaves wait_s out of a worker's time", _IN_TURN, _slip(one=lambda m: m["cpu_s"] + m["disk_s"])),
    ("your code leaves disk_s out of a worker's time", _IN_TURN, _slip(one=lambda m: m["cpu_s"] + m["wait_s"])),
    ("your code leaves cpu_s out of a worker's time", _IN_TURN, _slip(one=lambda m: m["wait_s"] + m["disk_s"])),
    (
        "your code counts only the longest part of a worker's time",
        _IN_TURN,
        _slip(one=lambda m: max(m["cpu_s"], m["wait_s"], m["disk_s"])),
    ),
    (
        "your code overlaps loading and stepping, but there are no workers",
        "add up the times: without workers, the main process loads and steps in turn",
        _like_one,
    ),
    (
        "your code counts a step on the cores as free for the loader",
        "count the step's core time too: it needs step_threads cores, each for step_s",
        _slip(on_cores=lambda m: m["cpu_s"]),
    ),
    (
        "your code counts a step on a device as using a core",
        "count no core time for the step if step_threads is 0",
        _slip(on_cores=lambda m: m["cpu_s"] + max(1, m["step_threads"]) * m["step_s"]),
    ),
    (
        "your code counts every step as using one core",
        "count step_threads cores, each for step_s; if step_threads is 0, count none",
        _slip(on_cores=lambda m: m["cpu_s"] + m["step_s"]),
    ),
    (
        "your code subtracts the step's cores for the whole time",
        "subtract these cores only for step_s of each batch: during the rest of the time, workers can use them",
        _slip(on_cores=lambda m: m["cpu_s"], cores=lambda m: m["cores"] - m["step_threads"]),
    ),
    ("your code leaves out the number of cores", _EACH, _slip(on_cores=lambda m: _NONE_S)),
    ("your code assumes that the disk serves every worker at full speed", _EACH, _slip(disk=lambda m: _NONE_S)),
    ("your code leaves out the step", _EACH, _slip(step=lambda m: _NONE_S)),
    (
        "your code counts a step on the cores as using only one core",
        "count step_threads cores, each for step_s",
        _slip(on_cores=lambda m: m["cpu_s"] + (m["step_s"] if m["step_threads"] else 0.0)),
    ),
    (
        "your code counts a worker that waits as keeping a core busy",
        _WORKING,
        _slip(on_cores=lambda m: m["cpu_s"] + m["wait_s"] + m["step_threads"] * m["step_s"]),
    ),
    (
        "your code counts a worker that reads as keeping a core busy",
        _WORKING,
        _slip(on_cores=lambda m: m["cpu_s"] + m["disk_s"] + m["step_threads"] * m["step_s"]),
    ),
    (
        "your code counts a worker as keeping a core busy while it waits and reads",
        _WORKING,
        _slip(on_cores=lambda m: m["cpu_s"] + m["wait_s"] + m["disk_s"] + m["step_threads"] * m["step_s"]),
    ),
    (
        "your code multiplies the step's time by its threads",
        "use step_s as it is, the time of a step with all of its threads: the threads count only for the cores",
        _slip(step=lambda m: m["step_s"] * max(1, m["step_threads"])),
    ),
    (
        "your code divides the step's time by its threads",
        "use step_s as it is, the time of a step with all of its threads: the threads count only for the cores",
        _slip(step=lambda m: m["step_s"] / max(1, m["step_threads"])),
    ),
    (
        "your code adds up the times of all resources",
        "return the smallest bound: with workers, all resources work at the same time",
        _slip(held=lambda bounds: 1 / sum(1 / bound for bound in bounds)),
    ),
    (
        "your function returned the largest of the bounds, not the smallest",
        "return the smallest bound: a loop cannot be faster than its slowest part",
        _slip(held=max),
    ),
)
