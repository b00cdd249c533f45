"""read_a_sampler: what all rows that came back have in common, where a table was read or counted another way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from edl_labs.checks import close
from edl_labs.errors import Wrong

Rows = dict[str, list[float]]  # own, total, own_s, total_s of each frame


def known_reading(cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
    """The one mistake in _READINGS that all rows show; None where there is none, or the rows are right."""
    mine, rights = _by_frame(got), _by_frame(want)
    if any(type(value) not in (int, float) for rows in mine for row in rows.values() for value in row):
        return None
    if all(_agree(*pair) for pair in zip(mine, rights, strict=True)):
        return None
    for fits, what, why, then in _READINGS:
        if all(fits(*one) for one in zip(cases, mine, rights, strict=True)):
            return Wrong(what, why=f"{why}; all of your rows show this mistake", next=then)
    return None


def _by_frame(tables: list[Any]) -> list[Rows]:
    return [{row[0]: row[1:] for row in one["rows"]} for one in tables]


def header_of_the_window(cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
    """All rows are right, and both shares of the header are those of the window, in every case."""

    def share(samples: list[Any]) -> Rows:
        active, gil = (
            sum(map(bool, flags)) for flags in zip(*((not s["idle"], s["gil"]) for s in samples), strict=True)
        )
        return {"header": [active / len(samples), gil / len(samples)]}

    mine, rights = ([{"header": [one["active"], one["gil"]]} for one in side] for side in (got, want))
    of_windows = [share(case["samples"][-case["window"] :]) for case in cases]
    pairs = [*zip(mine, of_windows, strict=True), *zip(_by_frame(got), _by_frame(want), strict=True)]
    if mine == rights or not all(_agree(*pair) for pair in pairs):
        return None
    return Wrong(
        "your header covers only the window",
        why="in every case, your shares 'active' and 'gil' are those of the samples in the window",
        next="the header describes the whole run: count over all samples, and divide by their number",
    )


def _agree(mine: Rows, other: Rows) -> bool:
    return set(mine) == set(other) and all(
        close(value, right, rtol=1e-6, atol=1e-12)
        for frame, row in other.items()
        for value, right in zip(mine[frame], row, strict=True)
    )


def _of_the_window(case: Any, mine: Rows, right: Rows) -> bool:
    tick_s = case["window"] / case["rate_hz"]
    short = {frame: [own, total, own * tick_s, total * tick_s] for frame, (own, total, _, _) in right.items()}
    return _agree(mine, short) or _agree(mine, {frame: row for frame, row in short.items() if row[1]})


def _rows_of_the_window(case: Any, mine: Rows, right: Rows) -> bool:
    return _agree(mine, {frame: row for frame, row in right.items() if row[1]})


def _without_own(case: Any, mine: Rows, right: Rows) -> bool:
    return _agree(
        mine, {f: [own, total - own, own_s, total_s - own_s] for f, (own, total, own_s, total_s) in right.items()}
    )


def _whole_run_over_the_window(case: Any, mine: Rows, right: Rows) -> bool:
    ticks = case["rate_hz"] / case["window"]
    return _agree(
        mine, {f: [own_s * ticks, total_s * ticks, own_s, total_s] for f, (_, _, own_s, total_s) in right.items()}
    )


def _with_idle(case: Any, mine: Rows, right: Rows) -> bool:
    """Each frame's total_s counts every sample that has it, also those in which the thread waited."""
    frames = {frame for sample in case["samples"] for frame in sample["stack"]}
    stacks = [sample["stack"] for sample in case["samples"]]
    waits = any(sample["idle"] for sample in case["samples"])
    return (
        waits
        and set(mine) == frames
        and all(close(mine[f][3], sum(f in stack for stack in stacks) / case["rate_hz"], rtol=1e-6) for f in frames)
    )


def _twice(case: Any, mine: Rows, right: Rows) -> bool:
    """Only frames that are on a stack twice are wrong, and have too much."""
    again = {f for sample in case["samples"] for f in sample["stack"] if sample["stack"].count(f) > 1}
    if set(mine) != set(right):
        return False
    off = {
        f: [a - b for a, b in zip(mine[f], row, strict=True)]
        for f, row in right.items()
        if not _agree({f: mine[f]}, {f: row})
    }
    return set(off) <= again and all(by > -1e-9 for row in off.values() for by in row)


# Each is (whether a case's rows fit, what is wrong, why, what to do).
_READINGS: list[tuple[Callable[[Any, Rows, Rows], bool], str, str, str]] = [
    (
        _rows_of_the_window,
        "your table has no row for frames that occur only before the window",
        "`own_s` and `total_s` cover the whole run, so each frame of the run needs a row",
        "make a row for every frame of all active samples; its shares of the window may be 0",
    ),
    (
        _of_the_window,
        "your seconds cover only the window, not the whole run",
        "`own` and `total` are shares of the window, but `own_s` and `total_s` are seconds of the whole run",
        "compute `own_s` and `total_s` from all active samples of the run",
    ),
    (
        _without_own,
        "your totals leave out the samples in which the frame itself was running",
        "a frame that is running is on the stack as well",
        "count in its total every sample that has the frame on its stack, even if the frame is the last one there",
    ),
    (
        _whole_run_over_the_window,
        "your shares count the samples of the whole run",
        "your code divides this count by `window`, so a share may exceed 1",
        "count only the last `window` samples for `own` and `total`: `window` is a number of samples, not of seconds",
    ),
    (
        _with_idle,
        "your rows include samples in which the thread was only waiting",
        "a row counts active samples; idle samples count only in the denominator",
        "leave out idle samples before you go through the stacks",
    ),
    (
        _twice,
        "your code counts a frame twice if it is on a stack twice",
        "a frame that calls itself is on the stack twice, but the sample is still only one tick",
        "count a sample once for each different frame on its stack",
    ),
]
