"""Mistakes in broken_timers that are known by the answers to all reports: each rule must give every one of them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby, product
from typing import Any

from edl_labs.errors import Wrong

TOO_FAST, TOO_SLOW = ("no sync", "wrong stream", "cache-warm"), ("sync per call", "cold first call")
_COARSE = "clock too coarse"
_ENOUGH = 3  # answers that fit an order of spans by luck are fewer than that
_PLAINLY_COLD = 2.0  # times the truth, in the run of one call: a plain report of a cold call says more

_Row = tuple[Any, Any, Any]  # a report, the student's answer and the right one


def known_timer_slip(cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
    """The one mistake that gives every answer that came back; None where none does."""
    rows = list(zip(cases, got, want, strict=True))
    if all(mine == right for _, mine, right in rows):
        return None
    return next((Wrong(what, why=why, next=then) for fits, what, why, then in _SLIPS if fits(rows)), None)


def _calls_instead(**others: tuple[str, ...]) -> Callable[[list[_Row]], bool]:
    """Whether the faults named in `others` were always called one of those names, and all else is right."""
    instead = {name.replace("_", " "): names for name, names in others.items()}

    def fits(rows: list[_Row]) -> bool:
        return all(mine in instead.get(right, (right,)) for _, mine, right in rows)

    return fits


def _all_that_waited(name: str) -> Callable[[list[_Row]], bool]:
    """Whether all that waited and is not coarse got this name, the sound reports too."""

    def fits(rows: list[_Row]) -> bool:
        known = {"no sync": ("no sync",), _COARSE: (_COARSE, name)}
        is_constant = all(mine == name for _, mine, _ in rows)
        return not is_constant and all(mine in known.get(right, (name,)) for _, mine, right in rows)

    return fits


def _counts_all_waits(rows: list[_Row]) -> bool:
    return all(mine == (_COARSE if right == _COARSE else "sync per call") for _, mine, right in rows)


def _coarse_the_other_way(rows: list[_Row]) -> bool:
    """Every report was called coarse, except those of a coarse clock."""
    return all((mine == _COARSE) != (right == _COARSE) for _, mine, right in rows)


def _one_name_a_side(rows: list[_Row]) -> bool:
    """Three names, of which the longest run alone decides: one for little, one for much, and "none" between them."""
    in_order = sorted(rows, key=lambda row: row[0]["seconds_per_call"][-1] / row[0]["true_seconds_per_call"])
    names = [name for name, _ in groupby(mine for _, mine, _ in in_order)]
    return len(names) == 3 and names[0] in TOO_FAST and names[1] == "none" and names[2] in TOO_SLOW


def _any_fall_is_cold(rows: list[_Row]) -> bool:
    """Cold wherever a single call takes longer than one of the longest run, and never sound."""
    falls = [(mine, report["seconds_per_call"]) for report, mine, right in rows if (mine, right) != (_COARSE, _COARSE)]
    if any(mine == "none" or (mine == "cold first call") != (said[0] > said[-1]) for mine, said in falls):
        return False
    return any(right == "none" for _, _, right in rows)


def _cold_from_the_longest_run(rows: list[_Row]) -> bool:
    """Every cold call was called sound, those too that the run of one call shows plainly."""
    if not _calls_instead(cold_first_call=("none",))(rows):
        return False
    cold = [report for report, mine, right in rows if mine != right]
    return any(one["seconds_per_call"][0] > _PLAINLY_COLD * one["true_seconds_per_call"] for one in cold)


def _list_is_in_order(rows: list[_Row]) -> bool:
    """The last of the list was taken for the last in time: of the readings, or of the kernels, or of both."""
    if sum(mine != right for _, mine, right in rows) < _ENOUGH:
        return False
    ways = list(product((True, False), repeat=2))[:-1]
    return any(all(_fits_the_list(*row, readings=one, kernels=other) for row in rows) for one, other in ways)


def _fits_the_list(report: Any, mine: Any, right: Any, *, readings: bool, kernels: bool) -> bool:
    """Whether an answer is right, or as wrong as it is for who takes `readings`, or `kernels`, as they are listed."""
    if right == _COARSE:
        return bool(mine == right)
    read = [span["start_s"] for span in report["timeline"] if span["name"] == "read clock"]
    ends = [span["end_s"] for span in report["timeline"] if (span["kind"], span["name"]) == ("kernel", "kernel")]
    read_s = read[-1] if readings else max(read)
    runs_on = (ends[-1] if kernels else max(ends)) > read_s
    is_unready = right in TOO_FAST[:2]
    if runs_on and is_unready and read_s == max(read):
        return bool(mine == right)
    if runs_on:
        return mine in TOO_FAST[:2]
    return mine not in TOO_FAST[:2] if is_unready else bool(mine == right)


# Each is (whether all answers fit, what is wrong, why, what to do).
_SLIPS: tuple[tuple[Callable[[list[_Row]], bool], str, str, str], ...] = (
    (
        _calls_instead(wrong_stream=("no sync",)),
        "your code overlooks a wait for another stream",
        "you called every 'wrong stream' timer 'no sync', and all other answers are right: in "
        "those reports the host did wait before "
        "its last reading, but timed kernels end after that reading",
        "look for that wait, not for two streams: in reports of correct timers, too, the loader's copy has its own "
        "row and overlaps the kernels",
    ),
    (
        _all_that_waited("wrong stream"),
        "apart from timers with a coarse clock, your answer is 'wrong stream' for every timer that waited",
        "you gave that answer even where all timed kernels end before the last reading; whatever the fault, every "
        "timeline has a 'check' and the loader's copy, which has a stream of its own",
        "look only at the timed spans, those named 'kernel': do any still run after the "
        "wait for a wrong stream is over?",
    ),
    (
        _all_that_waited("no sync"),
        "apart from timers with a coarse clock, your answer is 'no sync' for every timer that waited",
        "you gave that answer even where the host waits before the last reading and all timed kernels end before it; "
        "whatever the fault, every timeline has a 'check' and the loader's copy",
        "look only at the timed spans, those named 'kernel': is there a wait between the "
        "last call and the last 'read clock'?",
    ),
    (
        _counts_all_waits,
        "you called every report 'sync per call', except those of a coarse clock",
        "every timeline has the same number of waits in total; those after the last 'read clock' belong to the check "
        "of the results",
        "look at the waits before that reading: is one of them for another stream, so that timed kernels run after it?",
    ),
    (
        _coarse_the_other_way,
        "your code calls exactly those clocks coarse that are not coarse",
        "a clock is coarse if its step is longer than a call, but you answered 'clock too coarse' where it is shorter",
        "which of clock_resolution_s and true_seconds_per_call must be larger? Turn your comparison around",
    ),
    (
        _list_is_in_order,
        "your answers depend on the order of the spans in the list",
        "your answers are those of a function that takes the last 'read clock' or 'kernel' "
        "in the list as the last in time",
        "compare start_s and end_s of the spans, or sort them first: the list is in no particular order",
    ),
    (
        _cold_from_the_longest_run,
        "your code looks for a cold first call in the longest run, or not at all",
        "you called every 'cold first call' timer 'none', and all other answers are right: in "
        "those reports the run of one call reports clearly "
        "too much, while the longest run spreads the cost of the first call over all of its calls",
        "look at the shortest run, or at what was loaded between the two readings",
    ),
    (
        _any_fall_is_cold,
        "you answered 'cold first call' wherever longer runs report less per call",
        "you gave that answer wherever one call takes longer than a call of the longest "
        "run, and never answered 'none'; "
        "but in correct timers, too, a launch and a wait that each run pays once make short runs report more per call",
        "allow for that launch and that wait, and ask: was a kernel loaded between the readings?",
    ),
    (
        _one_name_a_side,
        "you used one name for all reports that are too fast, and one for all that are too slow",
        "you used only three names, and the longest run alone decides between them; but several faults make a report "
        "too small, and several make it too large",
        "use the timeline (waits, loads, ends of kernels) and the shorter runs to distinguish those faults",
    ),
)
