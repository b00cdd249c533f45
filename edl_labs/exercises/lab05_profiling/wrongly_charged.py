"""name_the_pattern: what all wrong charges, or all wrong names with right charges, have in common."""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import Any

from edl_labs.checks import close
from edl_labs.errors import Wrong
from edl_labs.units import seconds

Place = tuple[str, str]
Charges = dict[Place, float]
_NOTHING_S = 5e-9  # as where charges are compared
_SYNC = "synchronisation"


def known_charge(cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
    """The one mistake that all charges show, or all names where the charges are right."""
    mine, rights = ([_charges(one) for one in side] for side in (got, want))
    if any(type(value) not in (int, float) for one in mine for value in one.values()):
        return None
    off = [_off(*pair) for pair in zip(mine, rights, strict=True)]
    if not any(off):
        return _known_name(got, want, rights)
    spans = [case["spans"] for case in cases]
    if all(_agree(one, _shares(right, of)) for one, right, of in zip(mine, rights, spans, strict=True)):
        why = "each of your charges is the right one divided by the length of the window"
        return Wrong(
            "your charges are shares of the window, not seconds",
            why=why,
            next="return the seconds without dividing them by the length of the window",
        )
    for pattern, kind, names in ((_SYNC, "wait", "waits"), ("data", "load", "loads")):
        wrong = {of for one in off for of, _ in one}
        # A wait named "copy" is charged to copies.
        if wrong - {"copy" if kind == "wait" else ""} == {pattern} and all(
            _is_whole(one, of, pattern, kind) for one, of in zip(mine, spans, strict=True)
        ):
            why = f"it charges the {names} of every line from start to end, even while the device works"
            then = "charge only the time in a gap, where the device has nothing to do: the rest costs the step nothing"
            return Wrong(f"your code charges the whole duration of {names}", why=why, next=then)
    return _moved(off, spans) or _left_out(off, spans) or _replaced(off, mine)


def _known_name(got: list[Any], want: list[Any], rights: list[Charges]) -> Wrong | None:
    rows = [(one["name"], right["name"], by) for one, right, by in zip(got, want, rights, strict=True)]
    if all(name == right for name, right, _ in rows) or any(name not in {of for of, _ in by} for name, _, by in rows):
        return None
    name, right, by = next(row for row in rows if row[0] != row[1])
    sums = _sums(by)
    why = (
        f"the charges of {name} add up to {seconds(sums.get(name, 0.0))}, and those of {right} to "
        f"{seconds(sums[right])}"
    )
    if all(name == max(by, key=by.__getitem__)[0] for name, _, by in rows):
        then = "add up the charges of all lines for each pattern, then choose the largest sum"
        return Wrong("your answer is the pattern of the largest single charge", why=why, next=then)
    if all(name == max(of for of, _ in by) for name, _, by in rows):
        then = "pass key=… to `max()`, so that it compares the seconds: `max()` of a dict compares its keys"
        return Wrong("your answer is the pattern that comes last in alphabetical order", why=why, next=then)
    return None


def _moved(off: list[Charges], spans: list[Any]) -> Wrong | None:
    """Seconds that went from one pattern to another, or to another line of the same."""
    wrong = [one for one in off if one]
    kinds = [
        ({of for (of, _), by in one.items() if by < 0}, {of for (of, _), by in one.items() if by > 0}) for one in wrong
    ]
    if any(not close(sum(one.values()), 0.0, atol=len(one) * _NOTHING_S) for one in wrong):
        return None
    place, by = max(wrong[0].items(), key=lambda item: item[1])
    why = f"{place[1]} is charged {seconds(by)} too much for {place[0]}"
    overlap = all(_overlap(of) for one, of in zip(off, spans, strict=True) if one)
    if overlap and all(lost == more == {"gpu"} for lost, more in kinds):
        then = "go through the kernels in order of their start: where two overlap, the time belongs to the earlier one"
        return Wrong("your code charges the time of overlapping kernels to the wrong lines", why=why, next=then)
    if all((lost, more) == ({"data"}, {_SYNC}) for lost, more in kinds):
        then = "charge a gap piece by piece: loading always counts as `data`, even if a wait began the gap"
        return Wrong("your code charges loading in a gap to the wait that began the gap", why=why, next=then)
    if all((lost, more) == ({"launch"}, {_SYNC}) for lost, more in kinds):
        then = "charge a gap to a wait only if that wait ended when the gap began"
        return Wrong("your code charges a gap to an earlier wait, but no wait began this gap", why=why, next=then)
    return None


def _left_out(off: list[Charges], spans: list[Any]) -> Wrong | None:
    """Less in gaps alone, and never more than Python takes: the host's Python is charged to nobody."""
    for one, of in zip(off, spans, strict=True):
        python_s = sum(span["end_s"] - span["start_s"] for span in of if span["kind"] == "python")
        if any(by > 0 or kind in ("gpu", "data") for (kind, _), by in one.items()):
            return None
        if -sum(one.values()) > python_s + len(one) * _NOTHING_S:
            return None
    place, by = min(next(one for one in off if one).items(), key=lambda item: item[1])
    why = f"{place[1]} is charged {seconds(-by)} too little for {place[0]}; kernels and loads are right"
    then = "charge both calls and Python in a gap: both keep the device waiting"
    return Wrong("your code does not charge the Python in gaps to any line", why=why, next=then)


def _replaced(off: list[Charges], mine: list[Charges]) -> Wrong | None:
    """Right places with less than their pieces add up to, kernels' too."""
    rows = [
        (place, by, charged.get(place, 0.0))
        for one, charged in zip(off, mine, strict=True)
        for place, by in one.items()
    ]
    if any(by > 0 or left <= _NOTHING_S for _, by, left in rows) or len({of for (of, _), *_ in rows}) < 2:
        return None
    place, by, _ = min(rows, key=lambda row: row[1])
    why = f"your charges have the right keys, but {place[1]} is charged {seconds(-by)} too little for {place[0]}"
    then = "add to the previous value, as charged[place] += … does: a key may be charged more than once"
    return Wrong("in your code, a later charge of a line replaces an earlier one", why=why, next=then)


def _overlap(spans: Any) -> bool:
    kernels = sorted((span["start_s"], span["end_s"]) for span in spans if span["kind"] == "kernel")
    return any(after[0] < before[1] for before, after in itertools.pairwise(kernels))


def _charges(one: Any) -> Charges:
    return {(pattern, line): spent for pattern, line, spent in one["charges"]}


def _off(mine: Charges, right: Charges) -> Charges:
    """What is charged too much, or too little, by place."""
    found = {place: mine.get(place, 0.0) - right.get(place, 0.0) for place in sorted({*mine, *right})}
    return {place: by for place, by in found.items() if abs(by) > _NOTHING_S + 1e-6 * abs(right.get(place, 0.0))}


def _agree(mine: Charges, other: Charges) -> bool:
    return all(close(mine.get(place, 0.0), other.get(place, 0.0), rtol=1e-4, atol=1e-4) for place in {*mine, *other})


def _shares(right: Charges, spans: Any) -> Charges:
    window_s = max(span["end_s"] for span in spans) - min(span["start_s"] for span in spans)
    return {place: spent / window_s for place, spent in right.items()}


def _is_whole(mine: Charges, spans: Any, pattern: str, kind: str) -> bool:
    """Whether each line is charged by this pattern with all of its spans of that kind."""
    whole: dict[str, float] = defaultdict(float)
    for span in spans:
        if span["kind"] == kind and span["name"] != "copy":
            whole[span["line"]] += span["end_s"] - span["start_s"]
    charged = {line: spent for (name, line), spent in mine.items() if name == pattern}
    return all(
        close(charged.get(line, 0.0), whole.get(line, 0.0), rtol=1e-4, atol=_NOTHING_S) for line in {*charged, *whole}
    )


def _sums(charged: Charges) -> dict[str, float]:
    sums: dict[str, float] = defaultdict(float)
    for (pattern, _), spent in charged.items():
        sums[pattern] += spent
    return sums
