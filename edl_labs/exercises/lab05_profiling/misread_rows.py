"""Why self times or devices are wrong: the same rows without one of their difficulties, and other rules for devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from edl_labs.checks import close
from edl_labs.errors import Wrong

Rows = list[dict[str, Any]]

_APART_S = 1e-10  # a tenth of the nanosecond in which rows are given


def easier(rows: Rows) -> dict[str, Rows]:
    """The rows without one difficulty each; who has right answers for those alone has not met it."""
    depths = [_depth(row, rows) for row in rows]
    far_s = 1.0 + max(row["end_s"] for row in rows)
    places = {thread: place for place, thread in enumerate(sorted({row["thread"] for row in rows}))}
    pairs = list(zip(rows, depths, strict=True))
    return {
        "threads": [_moved(row, far_s * places[row["thread"]], far_s * places[row["thread"]]) for row in rows],
        "touching": [_moved(row, 0.0, -_APART_S * (depth + 1)) for row, depth in pairs],
        "together": [_moved(row, _APART_S * depth, 0.0) for row, depth in pairs],
        "order": sorted(rows, key=lambda row: (row["thread"], row["start_s"], -row["end_s"])),
        "recursion": [{**row, "name": f"{row['name']}, {depth} deep"} for row, depth in pairs],
        "names": [{**row, "name": f"{row['name']} {number}"} for number, row in enumerate(rows)],
    }


def tried(student: Any, rows: Rows) -> dict[str, list[list[Any]]]:
    """What self_times gives for easier rows; nothing where it gives no dict of numbers."""
    answers = {}
    for difficulty, others in easier(rows).items():
        try:
            found = student.self_times([dict(row) for row in others])
            answers[difficulty] = sorted([str(name), float(found[name])] for name in found)
        except Exception:  # it only explains what is wrong with the rows as they are
            answers[difficulty] = []
    return answers


def _depth(row: dict[str, Any], rows: Rows) -> int:
    """In how many rows of its thread a row lies."""
    same = (one for one in rows if one is not row and one["thread"] == row["thread"])
    return sum(one["start_s"] <= row["start_s"] and row["end_s"] <= one["end_s"] for one in same)


def _moved(row: dict[str, Any], start_s: float, end_s: float) -> dict[str, Any]:
    return {**row, "start_s": row["start_s"] + start_s, "end_s": row["end_s"] + end_s}


def known_difficulty(cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
    """What keeps self times from being right in all cases: the one difficulty without which they are."""
    if all(_alike(mine["self"], right["self"]) for mine, right in zip(got, want, strict=True)):
        return None
    if all(_alike(mine["self"], _all_inside_off(case["rows"])) for case, mine in zip(cases, got, strict=True)):
        return Wrong(
            "your code also subtracted the rows inside callees",
            why="in all cases, your code subtracted from each row all the rows inside it, including grandchildren",
            next="subtract only the rows directly inside: their time already includes all deeper rows",
        )
    for difficulty, what, why, then in _DIFFICULTIES:
        if all(_alike(m["tried"][difficulty], r["tried"][difficulty]) for m, r in zip(got, want, strict=True)):
            return Wrong(what, why=f"your self times are right in all cases {why}", next=then)
    return None


def _alike(mine: Any, rights: Any) -> bool:
    """Whether two lists of names and seconds say the same; far from 0, clocks have fewer digits."""
    return len(mine) == len(rights) and all(
        one[0] == other[0] and close(one[1], other[1], rtol=1e-6, atol=1e-11)
        for one, other in zip(mine, sorted(rights), strict=True)
    )


def _all_inside_off(rows: Rows) -> list[list[Any]]:
    """By name, what is left of its rows without all rows of their threads that lie in them."""
    left: dict[str, float] = {}
    for row in rows:
        same = (one for one in rows if one is not row and one["thread"] == row["thread"])
        inside = (one for one in same if row["start_s"] <= one["start_s"] and one["end_s"] <= row["end_s"])
        left[row["name"]] = left.get(row["name"], 0.0) + _lasts_s(row) - sum(map(_lasts_s, inside))
    return sorted([name, spent_s] for name, spent_s in left.items())


def _lasts_s(row: dict[str, Any]) -> float:
    return float(row["end_s"] - row["start_s"])


_DIFFICULTIES = (
    (
        "threads",
        "your code treats rows of a different thread as nested",
        "if the threads run one after the other",
        "keep a separate stack for each thread: a row can only be inside rows of its own thread",
    ),
    (
        "touching",
        "if one row ends exactly when another begins, your code puts the second inside the first",
        "if there is a gap between such rows",
        "compare with <=, not <: if one row ends exactly when another one begins, it has already ended",
    ),
    (
        "together",
        "if two rows begin together, your code counts the shorter one as the caller",
        "if no two rows begin together",
        "sort by start, and for equal starts by descending end: the longer row is the caller",
    ),
    (
        "order",
        "your code goes through the rows in the order of the list, which is arbitrary",
        "if the same rows are sorted by their start",
        "sort the rows first, by start, and longer ones first",
    ),
    (
        "recursion",
        "in your answer, an operator that calls itself has too much or too little time",
        "if no row has the same name as a row around it",
        "subtract a row from its parent even if both have the same name, and add the self times of both to that name",
    ),
    (
        "names",
        "your code does not add up rows with the same name",
        "if each row has its own name",
        "add each row to the time that its name already has, instead of replacing that time",
    ),
)


def known_rule(cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
    """The other rule for ran_on that gives every answer of all cases."""
    asked = [
        (entry, case["cpu_flop_per_s"], said, right)
        for case, mine, rights in zip(cases, got, want, strict=True)
        for entry, said, right in zip(case["entries"], mine["ran"], rights["ran"], strict=True)
    ]
    wrong = sum(said != right for *_, said, right in asked)
    for what, then, rule in _RULES if wrong else ():
        if all(said == ("cpu" if rule(entry, peak) else "gpu") for entry, peak, said, _ in asked):
            why = (
                f"all of your {len(asked)} answers are those that this mistake produces, and {wrong} of them are wrong"
            )
            return Wrong(what, why=why, next=then)
    return None


def _fast(entry: Any, peak: float, seconds: str = "cuda_s") -> bool:
    """Whether the work is too much for the CPU in that time."""
    return bool(entry["flop"] > peak * entry[seconds])


def _apart(entry: Any) -> float:
    """How far the columns are apart, in parts of cpu_s: below 0 where cuda_s is the smaller one."""
    return float(entry["cuda_s"] / entry["cpu_s"] - 1)


_TWO = (
    "use two tests in this order: an operator that the CPU cannot finish within cuda_s, even at its peak, ran on the "
    "GPU; otherwise, compare the columns"
)
_EITHER = "compare abs(cuda_s - cpu_s): two readings of one clock differ by at most 5 % of cpu_s, up or down"
_RULES: tuple[tuple[str, str, Callable[[Any, float], bool]], ...] = (
    (
        "your answers depend only on the columns: your code ignores the CPU's peak, or tests it too late",
        _TWO,
        lambda e, p: abs(_apart(e)) <= 0.05,
    ),
    (
        "your answers depend only on the CPU's peak: your code never compares the columns",
        _TWO,
        lambda e, p: not _fast(e, p),
    ),
    ("your `ran_on()` always returned the GPU", "a CUDA column alone proves nothing: " + _TWO, lambda e, p: False),
    ("your `ran_on()` always returned the CPU", _TWO, lambda e, p: True),
    (
        "your code accepts every cuda_s below cpu_s as a reading of the same clock",
        _EITHER,
        lambda e, p: not _fast(e, p) and _apart(e) <= 0.05,
    ),
    (
        "your code accepts every cuda_s above cpu_s as a reading of the same clock",
        _EITHER,
        lambda e, p: not _fast(e, p) and _apart(e) >= -0.05,
    ),
    (
        "your code compares the work with what the CPU can do at its peak within cpu_s",
        "use cuda_s, the time that the work is said to take: could the CPU have been that fast?",
        lambda e, p: not _fast(e, p, "cpu_s") and abs(_apart(e)) <= 0.05,
    ),
    (
        "your code assigns an operator with 0 FLOPs to the CPU without comparing its columns",
        "compare the columns in this case: 0 FLOPs never exceed a peak",
        lambda e, p: not e["flop"] or (not _fast(e, p) and abs(_apart(e)) <= 0.05),
    ),
    (
        "your code assigns an operator with 0 FLOPs to the GPU without comparing its columns",
        "compare the columns in this case: 0 FLOPs never exceed a peak",
        lambda e, p: bool(e["flop"]) and not _fast(e, p) and abs(_apart(e)) <= 0.05,
    ),
    (
        "your code accepts only columns that are (almost) equal as readings of one clock",
        _EITHER,
        lambda e, p: not _fast(e, p) and abs(_apart(e)) <= 1e-6,
    ),
    (
        "your comparison with the peak is reversed",
        _TWO,
        lambda e, p: _fast(e, p) and abs(_apart(e)) <= 0.05,
    ),
    (
        "your answers swap the two devices",
        _TWO,
        lambda e, p: _fast(e, p) or abs(_apart(e)) > 0.05,
    ),
)
