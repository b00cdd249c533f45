"""whose_fault: is a training loop bound by its data, its computation, or neither? From drawn timelines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from edl_labs.checks import Exercise, exercise, score_above_chance
from edl_labs.errors import Wrong
from edl_labs.units import seconds

VERDICTS = ("data-bound", "compute-bound", "balanced")
CLOSE = 1.1  # promised in the lab's text
_UNSURE = 0.02  # a side misread comes out a little different by another way to average
_CLOCK_S = 1e-9  # what timelines are rounded to


@exercise("whose_fault")
class WhoseFault(Exercise):
    """Whether a loop is bound by its data, its computation or neither, from its timeline.

    `student.whose_fault(timeline)` gives one of VERDICTS; nine loops of each, corrected for chance.
    """

    answers = "all"

    def probe(self, student: Any, given: Any) -> Any:
        return student.whose_fault(given["timeline"])

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if got not in VERDICTS:
            raise Wrong(
                f"{got[:40]!r} is not one of the three verdicts",
                why=f"the verdicts are {', '.join(VERDICTS)}",
                next="return one of these verdicts",
            )
        if got == want:
            return
        if _FASTER.get(want) == got and _seconds_are_slow(case["timeline"]):
            raise Wrong(
                "your code seems to leave a slow batch out of a worker's rate",
                why="each worker's second batch takes over 1.5 times as long as any later one, but "
                "counts like all others",
                next="leave out only each worker's first batch, and count all the others",
            )
        host = _billed(case["timeline"])
        raise Wrong(
            f"this loop is not {got}",
            why=f"number of workers: {_workers(case['timeline'])}; the first batch of each does not count; "
            f"the host spent {seconds(host['next'])} in `next` and "
            f"{seconds(host['else'])} elsewhere",
            next=_NEXT[got],
        )

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """The sides, or the rule, by which every loop got its verdict."""
        return _misread_rule(cases, got, want) or _misread_sides(cases, got)

    def combine(self, fractions: list[float]) -> float:
        """The share of right answers beyond those that luck can bring."""
        return score_above_chance(fractions, answers=len(VERDICTS))

    def format_case(self, case: Any) -> str:
        spans = case["timeline"]
        rows = [
            f"  {span['row']:<9} {span['kind']:<6} {seconds(span['start_s']):>8} to {seconds(span['end_s'])}"
            for span in spans[:12]
        ]
        return "\n".join([f"{len(spans)} spans, the first of them:", *rows])


_NEXT = {
    "data-bound": "without the first batches, is the loader (all its workers together) clearly slower than the device?",
    "compute-bound": "what would the loader's rate be if steps were free? Workers run in parallel: their rates add up",
    "balanced": "compare the two rates without the first batches: how close must they be to be balanced?",
}


# What a loop is taken for whose loader seems faster than it is.
_FASTER = {"data-bound": "balanced", "balanced": "compute-bound"}


def _seconds_are_slow(timeline: Any) -> bool:
    """Whether the second batch of each worker takes more than half as long again as any later one of its own."""
    taken: dict[str, list[float]] = {}
    for span in timeline:
        if span["row"].startswith("worker"):
            taken.setdefault(span["row"], []).append(span["end_s"] - span["start_s"])
    return all(len(times) > 2 and times[1] > 1.5 * max(times[2:]) for times in taken.values())


def _workers(timeline: Any) -> int:
    return len({span["row"] for span in timeline if span["row"].startswith("worker")})


def _billed(timeline: Any) -> dict[str, float]:
    """Where the host's own clock says that the time went."""
    billed = {"next": 0.0, "else": 0.0}
    for span in timeline:
        if span["row"] == "host":
            billed["next" if span["kind"] == "next" else "else"] += span["end_s"] - span["start_s"]
    return billed


def _misread_rule(cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
    """The rates are right, and the rule that compares them is not."""
    turned = {"data-bound": "compute-bound", "compute-bound": "data-bound"}
    if got == [turned.get(right, right) for right in want]:
        return Wrong(
            "your code confuses data-bound and compute-bound",
            why="your verdicts on balanced loops are right, and all others are the opposite of the right one",
            next="a data-bound loop waits for its data: which of the two rates is the lower one there?",
        )
    for bound, slow in (("data-bound", "a slower loader"), ("compute-bound", "a slower device")):
        if got == ["balanced" if right == bound else right for right in want]:
            return Wrong(
                f"your function always answers 'balanced' for {slow}, however slow it is",
                why=f"your function never returned {bound}, and every other verdict is right",
                next="use one limit for both sides: a loop is balanced if the faster side's rate is at "
                "most 1.1 times the slower side's",
            )
    return _difference_as_rule(cases, got)


def _difference_as_rule(cases: list[Any], got: list[Any]) -> Wrong | None:
    """A limit to the rates' difference, or to that of the times, gives all answers, and none to their ratio does."""
    rates = [(_rate(case["timeline"], "load", skip=1), _rate(case["timeline"], "step")) for case in cases]
    if any(
        a != "balanced" and (a == "data-bound") != (one < other) for a, (one, other) in zip(got, rates, strict=True)
    ):
        return None

    def parts(distance: Callable[[float, float], float]) -> bool:
        apart = [distance(*pair) for pair in rates]
        far = [value for value, answer in zip(apart, got, strict=True) if answer != "balanced"]
        near = [value for value, answer in zip(apart, got, strict=True) if answer == "balanced"]
        return bool(far) and max(near, default=0.0) < min(far)

    if parts(lambda one, other: max(one, other) / min(one, other)):
        return _another_limit(rates, got)
    kinds = {
        "batches per second": lambda one, other: abs(one - other),
        "seconds per batch": lambda one, other: abs(1 / one - 1 / other),
    }
    for unit, distance in kinds.items():
        if parts(distance):
            return Wrong(
                "your code decides 'balanced' by a difference, not by a ratio",
                why=f"a fixed limit on the difference in {unit} explains all of your verdicts, but the same difference "
                "means more in one loop than in another",
                next="divide the faster side's rate by the slower side's rate: the loop is balanced up "
                "to a quotient of 1.1",
            )
    return None


def _another_limit(rates: list[tuple[float, float]], got: list[Any]) -> Wrong | None:
    """Loops that are close are told from those that are not, elsewhere than asked."""
    ratios = [max(pair) / min(pair) for pair in rates]
    close = max((ratio for ratio, answer in zip(ratios, got, strict=True) if answer == "balanced"), default=1.0)
    far = min(ratio for ratio, answer in zip(ratios, got, strict=True) if answer != "balanced")
    if close <= CLOSE < far:
        return None
    drawn, seen = ("narrow", far) if far <= CLOSE else ("wide", close)
    was = "not called 'balanced'" if far <= CLOSE else "called 'balanced'"
    return Wrong(
        f"your range for 'balanced' is too {drawn}",
        why=f"a loop whose two rates differ by a factor of {seen:.4g} was {was}: either your limit is not 1.1, or it "
        "limits the difference of the rates instead of their ratio",
        next="divide the faster side's rate by the slower side's rate: the loop is balanced up to a quotient of 1.1",
    )


def _misread_sides(cases: list[Any], got: list[Any]) -> Wrong | None:
    """The one way of misreading a side's rate that gives every verdict, loops near a limit aside."""
    if len(set(got)) == 1:
        return None
    rates = [dict(_rates(case["timeline"])) for case in cases]
    for told, (what, why, then) in _SIDES.items():
        if all(_allows(*each[told], answer) for each, answer in zip(rates, got, strict=True)):
            return Wrong(what, why=why, next=then)
    return None


def _allows(loader: float, trainer: float, answer: str) -> bool:
    def verdict(ratio: float) -> str:
        return "balanced" if 1 / CLOSE <= ratio <= CLOSE else "data-bound" if ratio < 1 else "compute-bound"

    ratio = loader / trainer
    return answer in {verdict(ratio * (1 + off)) for off in (-_UNSURE, 0.0, _UNSURE)}


def _rates(timeline: Any) -> Iterator[tuple[str, tuple[float, float]]]:
    """The loader's rate and the device's, by each way to misread one or both."""
    loader, trainer = _rate(timeline, "load", skip=1), _rate(timeline, "step")
    yield "whole time", (_through(timeline, "load"), _through(timeline, "step"))
    taken = _taken(timeline, "load")
    yield "first batches", (_rate(timeline, "load"), trainer)
    yield "first batches, mean", (_of_mean(taken, without=0), trainer)
    yield "one first batch", (_of_mean(taken, without=1), trainer)
    yield "one first batch, row by row", (_row_by_row(taken, without=1), trainer)
    yield "worker by worker", (_through_rows(timeline, "load", skip=1), trainer)
    yield "worker by worker, all", (_through_rows(timeline, "load"), trainer)
    yield "worker by worker, after the first", (_through_rows(timeline, "load", skip=1, after_s=True), trainer)
    yield "one worker", (loader / _workers(timeline), trainer)
    yield "one worker, first batches", (_rate(timeline, "load") / _workers(timeline), trainer)
    yield "step to step", (loader, _from_start_to_start(timeline))
    yield "host's step", (loader, _rate(timeline, "launch", "item"))
    yield "host's launch", (loader, _rate(timeline, "launch"))
    yield "host's next", (_rate(timeline, "next"), trainer)
    yield "host's next, later", (_rate(timeline, "next", skip=1), trainer)
    yield "host's two", (_rate(timeline, "next"), _rate(timeline, "launch", "item"))
    rows = [times for times in taken.values() if times[1:]]
    yield "no bracket", (sum(len(times) - 1 / max(sum(times[1:]), _CLOCK_S) for times in rows), trainer)


def _of_mean(taken: dict[str, list[float]], *, without: int) -> float:
    """Batches per second by the mean of all workers' batches, without the first few of the first worker."""
    times = [time_s for row in taken.values() for time_s in row][without:]
    return len(taken) * len(times) / max(sum(times), _CLOCK_S)


def _row_by_row(taken: dict[str, list[float]], *, without: int) -> float:
    """Batches per second, the workers' rates added up, without the first few of the first worker."""
    first, *others = taken.values()
    return sum(len(times) / max(sum(times), _CLOCK_S) for times in (first[without:], *others) if times)


_SPANS = "divide the number of spans by the sum of their durations, for each worker and for the device"
_LOADS = "how fast could the workers load? Use their own spans, not those of the host"
_STEPS = "how long does a step take? Use the spans of the device, without the gaps between them"
_ONE = (
    "your code uses one worker's rate as the loader's rate",
    "several workers load at the same time",
    "what is the rate of all workers together?",
)
_COUNTED = (
    "your code counts each worker's first batch",
    "your verdicts fit rates over all batches, but a worker's first batch includes its start and imports",
    "leave out each worker's first batch, and no other",
)
_ONE_LEFT_OUT = (
    "your code leaves out only a single first batch, instead of one for each worker",
    "your verdicts fit rates without the very first batch, but with the first batches of the other workers",
    "leave out the first batch of every worker: it includes that worker's start and imports",
)
_WITH_WAITS = (
    "your code computes a worker's rate over the time from its first load to its last, including waits",
    "between two loads, a worker may wait at a full queue, and that time is not loading time",
    "add up only the durations of the loads, without each worker's first",
)
_SIDES = {
    "worker by worker": _WITH_WAITS,
    "worker by worker, all": _WITH_WAITS,
    "worker by worker, after the first": _WITH_WAITS,
    "whole time": (
        "your code computes rates over the whole time, including waits",
        "that time includes waits for the other side, pauses and the start of the workers",
        _SPANS,
    ),
    "first batches": _COUNTED,
    "first batches, mean": _COUNTED,
    "one first batch": _ONE_LEFT_OUT,
    "one first batch, row by row": _ONE_LEFT_OUT,
    "one worker": _ONE,
    "one worker, first batches": _ONE,
    "step to step": (
        "your code uses the time from one step to the next as the time of a step",
        "the device may wait for data in between, and that time is not part of the step",
        _STEPS,
    ),
    "host's step": (
        "your code uses the host's time outside `next` as the time of a step",
        "`launch` and `item` are spans of the host: they include its pauses, and miss work for which it does not wait",
        _STEPS,
    ),
    "host's launch": (
        "your code uses the host's launch as the time of a step",
        "a launch only starts the step",
        _STEPS,
    ),
    "host's next": (
        "your code uses the host's time in `next` as the loader's time",
        "the host's time includes waits and copies, too",
        _LOADS,
    ),
    "host's next, later": (
        "your code uses the host's time in `next` as the loader's time",
        "the host's time includes waits and copies, too",
        _LOADS,
    ),
    "host's two": (
        "your code computes both rates from the host's spans",
        "these include the host's waits for data and for steps",
        _SPANS,
    ),
    "no bracket": (
        "your loader's rate is not batches divided by time: parentheses are missing",
        "for a worker that loads n batches in the time t, a rate of n - 1 / t explains all of your verdicts",
        "put the difference in parentheses: divide n - 1, the batches that count, by their time",
    ),
}


def _taken(timeline: Any, *kinds: str) -> dict[str, list[float]]:
    """The lengths of the spans of these kinds, row by row."""
    taken: dict[str, list[float]] = {}
    for span in timeline:
        if span["kind"] in kinds:
            taken.setdefault(span["row"], []).append(span["end_s"] - span["start_s"])
    return taken


def _rate(timeline: Any, *kinds: str, skip: int = 0) -> float:
    """Batches per second by the spans' own lengths, those of all rows added up; without each row's first `skip`."""
    spans = sum(span["kind"] == kinds[0] for span in timeline) / sum(span["kind"] in kinds for span in timeline)
    rows = [times[skip:] for times in _taken(timeline, *kinds).values() if times[skip:]]
    return sum(len(times) * spans / max(sum(times), _CLOCK_S) for times in rows)


def _through_rows(timeline: Any, kind: str, *, skip: int = 0, after_s: bool = False) -> float:
    """The rows' rates added up, each from its first span to its last, waits and all; without its first `skip`.

    With `after_s` a row's time begins with its first span, which does not count itself.
    """
    rows: dict[str, list[Any]] = {}
    for span in timeline:
        if span["kind"] == kind:
            rows.setdefault(span["row"], []).append(span)
    total = 0.0
    for spans in rows.values():
        counted = spans[skip:]
        if counted:
            total += len(counted) / max(counted[-1]["end_s"] - (spans if after_s else counted)[0]["start_s"], _CLOCK_S)
    return total


def _through(timeline: Any, kind: str) -> float:
    """Batches per second from the first span of a kind to its last."""
    spans = [span for span in timeline if span["kind"] == kind]
    return len(spans) / (max(span["end_s"] for span in spans) - min(span["start_s"] for span in spans))


def _from_start_to_start(timeline: Any) -> float:
    starts = sorted(span["start_s"] for span in timeline if span["kind"] == "step")
    return (len(starts) - 1) / (starts[-1] - starts[0])
