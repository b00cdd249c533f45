"""What most_to_gain returned instead of a speed-up, or for which other step: found by running that step."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from edl_labs.checks import close
from edl_labs.errors import Wrong
from edl_labs.virtual import VirtualMachine
from edl_labs.virtual.loop import step_s

Step = list[dict[str, Any]]
Gains = dict[str, float]

_ONE_TIME = 1e-6  # a simulated time is what it is; goldens keep nine digits of the right ones
_MAKES = {"launch": {"kernels", "launch"}, "copy": {"copy"}, "item": {"synchronisation"}, "sync": {"synchronisation"}}


def known_slip(cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
    """The one slip that gives the speed-ups of all cases; None where none does."""
    steps = [(case["step"], VirtualMachine(**case["machine"])) for case in cases]
    mine, rights = ([dict(map(tuple, one["gains"])) for one in side] for side in (got, want))
    causes = list(rights[0])
    wrong = [c for c in causes if any(not _same(a[c], b[c]) for a, b in zip(mine, rights, strict=True))]
    if not wrong:
        return None
    times_s = [step_s(*one) for one in steps]
    return (
        _another_number(mine, rights, times_s)
        or ("kernels" in wrong and _from_shares(mine, steps, times_s))
        or _the_step_changed(got, wrong)
        or _first(_another_step(cause, mine, steps, times_s) for cause in wrong)
    )


def _same(said: Any, right: float, *, rtol: float = 1e-4) -> bool:
    return close(said, right, rtol=rtol)


def _first(found: Iterable[Wrong | None]) -> Wrong | None:
    return next((one for one in found if one is not None), None)


def _another_number(mine: list[Gains], rights: list[Gains], times_s: list[float]) -> Wrong | None:
    """Another measure of the gain than the speed-up, which gives every number of every case."""
    told = [
        (said[cause], right[cause], now_s)
        for said, right, now_s in zip(mine, rights, times_s, strict=True)
        for cause in right
    ]
    for what, number in _NUMBERS:
        if all(
            close(said, number(right, now_s), rtol=1e-4, atol=1e-5 * number(2, now_s)) for said, right, now_s in told
        ):
            then = "divide the seconds of the unchanged step by those of the step without the cause"
            return Wrong(
                what, why=f"apart from this mistake, all {len(told)} numbers are right; 1.0 means no gain", next=then
            )
    return None


# Each with the number for a speed-up and the seconds of the step as it is.
_NUMBERS: tuple[tuple[str, Callable[[float, float], float]], ...] = (
    ("your function returned the seconds saved, not speed-ups", lambda gain, now_s: now_s * (1 - 1 / gain)),
    ("your function returned the seconds without the cause, not speed-ups", lambda gain, now_s: now_s / gain),
    ("your function returned the share of the time saved, not a speed-up", lambda gain, now_s: 1 - 1 / gain),
    ("your function returned the time saved in percent, not a speed-up", lambda gain, now_s: 100 * (1 - 1 / gain)),
    ("your speed-ups are inverted", lambda gain, now_s: 1 / gain),
    ("your function subtracts 1 from each speed-up", lambda gain, now_s: gain - 1),
    ("your speed-ups are percentages", lambda gain, now_s: 100 * gain),
    ("your speed-ups are percentages, with 100 subtracted", lambda gain, now_s: 100 * (gain - 1)),
)


def _from_shares(mine: list[Gains], steps: list[tuple[Step, VirtualMachine]], times_s: list[float]) -> Wrong | None:
    """Whether the kernels' share of the step, or half of it, gives what removing them is said to gain."""
    shares = [_kernels_s(step) / now_s for (step, _), now_s in zip(steps, times_s, strict=True)]
    for part, formula in ((1.0, "1 / (1 - share)"), (0.5, "1 / (1 - share / 2)")):
        bounds = [(said["kernels"], 1 - part * share) for said, share in zip(mine, shares, strict=True)]
        if all(left < 0.01 or close(said, 1 / left, rtol=1e-3) for said, left in bounds):
            return Wrong(
                "your speed-ups come from shares, without simulating the changed step",
                why=f"for the kernels, your answer is {formula} in every case, which is only an upper bound",
                next="run step_s on the changed step: part of the removed time was hidden, and other work then becomes "
                "visible",
            )
    return None


def _kernels_s(step: Step) -> float:
    return sum(float(one["duration_s"]) for one in step if one["op"] == "launch")


def _the_step_changed(got: list[Any], wrong: list[str]) -> Wrong | None:
    """Whether the step that was given is another one afterwards, and causes suffer that did not change it."""
    changed = sorted({op for one in got for op in one["changed"]})
    made = set().union(*(_MAKES.get(op, {"data"}) for op in changed))
    if not changed or len(set(wrong) - made) < 2:
        return None
    return Wrong(
        "your function modifies the given step, so later causes are removed from a changed step",
        why=f"after the call, some operations differ ({' and '.join(changed)}); your speed-ups of {', '.join(wrong)} "
        "are wrong",
        next="leave the step and its dicts unchanged: make new dicts, {**operation, ...}, in a new list for each cause",
    )


def _another_step(
    cause: str, mine: list[Gains], steps: list[tuple[Step, VirtualMachine]], times_s: list[float]
) -> Wrong | None:
    """The wrong way to remove a cause that gives what came back for it in every case."""
    for what, then, removed in _REMOVALS[cause]:
        if all(
            _gives(removed(step), machine, now_s, said[cause])
            for said, (step, machine), now_s in zip(mine, steps, times_s, strict=True)
        ):
            why = f"in all {len(steps)} cases, this mistake gives exactly your speed-up for {cause!r}"
            return Wrong(what, why=why, next=then)
    return None


def _gives(step: Step, machine: VirtualMachine, now_s: float, said: Any) -> bool:
    after_s = step_s(step, machine)
    return after_s > 0 and close(said, now_s / after_s, rtol=_ONE_TIME)


def _without(*gone: str) -> Callable[[Step], Step]:
    return lambda step: [one for one in step if one["op"] not in gone]


def _times(factor: float, *of: str) -> Callable[[Step], Step]:
    def scaled(step: Step) -> Step:
        return [
            {**one, "duration_s": factor * one["duration_s"]} if one["op"] in of and "duration_s" in one else one
            for one in step
        ]

    return scaled


def _copies(**fields: Any) -> Callable[[Step], Step]:
    return lambda step: [{**one, **fields} if one["op"] == "copy" else one for one in step]


def _rows(pattern: str, put: Callable[[Step], Step]) -> Callable[[Step], Step]:
    """The removal that puts something in the place of each row; the pattern has L for launches, P for Python."""

    def removed(step: Step) -> Step:
        letters = "".join({"launch": "L", "python": "P"}.get(one["op"], ".") for one in step)
        kept, reached = [], 0
        for row in re.finditer(pattern, letters):
            kept += [*step[reached : row.start()], *put(step[row.start() : row.end()])]
            reached = row.end()
        return [*kept, *step[reached:]]

    return removed


def _one(
    lasts: Callable[[list[float]], float], *, before: bool = False, behind: bool = False
) -> Callable[[Step], Step]:
    """A row as one launch, with the row's Python before or behind it where that stays."""

    def put(row: Step) -> Step:
        launches = [one for one in row if one["op"] == "launch"]
        python = [one for one in row if one["op"] == "python"]
        joined = {**launches[0], "duration_s": lasts([one["duration_s"] for one in launches])}
        return [*(python if before else ()), joined, *(python if behind else ())]

    return put


def _one_for_the_step(*gone: str, last: bool = False) -> Callable[[Step], Step]:
    """All launches of a step as one, where the first or the last of them stands; `gone` is Python that goes."""

    def removed(step: Step) -> Step:
        found = [number for number, one in enumerate(step) if one["op"] == "launch"]
        if not found:
            return step
        place = found[-1] if last else found[0]
        lost = set(found) - {place}
        for number in range(found[0], found[-1]):
            follows = next((one["op"] for one in step[number:] if one["op"] != "python"), "")
            if step[number]["op"] == "python" and ("all" in gone or ("next" in gone and follows == "launch")):
                lost.add(number)
        joined = {**step[place], "duration_s": _kernels_s(step)}
        return [joined if n == place else one for n, one in enumerate(step) if n not in lost]

    return removed


_ROW = "L(?:P*L)+"
_TOGETHER = "replace launches in a row by one launch that lasts as long as all of them together"
_APART = "end a row at anything other than `launch` and `python`: an `item`, `sync`, `copy` or `load` stays where it is"
_ENDS = "remove only the Python between two launches of a row; keep the Python before the first and after the last"
_HALVED = "for kernels, halve the `duration_s` of each launch, and leave all other operations unchanged"
_NO_WAITS = "for synchronisation, remove both `item` and `sync`, and leave all other operations unchanged"
_NO_LOADS = "for data, remove each `load`, and leave all other operations unchanged"
_PINNED = 'for copy, keep each copy on its stream, with "pinned": True, and leave all other operations unchanged'
Removal = tuple[str, str, Callable[[Step], Step]]
_REMOVALS: dict[str, tuple[Removal, ...]] = {
    "kernels": (
        (
            "loads and Python were halved as well, not only the kernels",
            _HALVED,
            _times(0.5, "launch", "load", "python"),
        ),
        ("loads were halved as well, not only the kernels", _HALVED, _times(0.5, "launch", "load")),
        ("Python was halved as well, not only the kernels", _HALVED, _times(0.5, "launch", "python")),
        (
            "the kernels were removed, but they should take half of their time",
            _HALVED,
            _without("launch"),
        ),
        (
            "your code gives the kernels no time at all, but they should take half of their time",
            _HALVED,
            _times(0.0, "launch"),
        ),
        ("the kernels were not halved: nothing was changed", _HALVED, _without()),
        ("your code gives the kernels twice their time, not half of it", _HALVED, _times(2.0, "launch")),
        ("the kernels were halved twice: they take a quarter of their time", _HALVED, _times(0.25, "launch")),
    ),
    "launch": (
        ("the kernels were removed with their launches", _TOGETHER, _without("launch")),
        ("the kernels and Python were removed with the launches", _TOGETHER, _without("launch", "python")),
        ("your merged launch lasts only as long as its longest kernel", _TOGETHER, _rows(_ROW, _one(max))),
        ("your merged launch lasts only as long as its first kernel", _TOGETHER, _rows(_ROW, _one(lambda s: s[0]))),
        ("your merged launch lasts only as long as its last kernel", _TOGETHER, _rows(_ROW, _one(lambda s: s[-1]))),
        ("the Python between the merged launches was kept", _ENDS, _rows(_ROW, _one(sum, before=True))),
        ("the Python between the merged launches was kept", _ENDS, _rows(_ROW, _one(sum, behind=True))),
        ("your code merges only adjacent launches, not those with Python between them", _ENDS, _rows("LL+", _one(sum))),
        (
            "only launches with Python between them were merged, not adjacent ones",
            _ENDS,
            _rows("L(?:P+L)+", _one(sum)),
        ),
        ("all Python of the step was removed", _ENDS, lambda step: _rows("LL+", _one(sum))(_without("python")(step))),
        ("Python was removed, but no launches were merged", _TOGETHER, _without("python")),
        (
            "the Python between launches was removed, but they were not merged",
            _TOGETHER,
            _rows(_ROW, _without("python")),
        ),
        ("Python before the first launch of a row was removed too", _ENDS, _rows("P*L(?:P*L)*", _one(sum))),
        ("Python after the last launch of a row was removed too", _ENDS, _rows("L(?:P*L)*P*", _one(sum))),
        ("Python before and after a row was removed too", _ENDS, _rows("P*L(?:P*L)*P*", _one(sum))),
        ("the Python at the end of the step was removed", _ENDS, lambda step: _rows(_ROW, _one(sum))(_no_tail(step))),
        *(
            ("all launches of the step were merged, even across items, syncs and copies", _APART, one)
            for one in (
                _one_for_the_step("next"),
                _one_for_the_step("next", last=True),
                _one_for_the_step("all"),
                _one_for_the_step("all", last=True),
                _one_for_the_step(),
                _one_for_the_step(last=True),
            )
        ),
        ("nothing was merged: the step was not changed", _TOGETHER, _without()),
    ),
    "synchronisation": (
        ("only `item` was removed, but `sync` was kept", _NO_WAITS, _without("item")),
        ("only `sync` was removed, but `item` was kept", _NO_WAITS, _without("sync")),
        ("Python was removed together with the waits", _NO_WAITS, _without("item", "sync", "python")),
        ("the copies were removed together with the waits", _NO_WAITS, _without("item", "sync", "copy")),
        (
            "the copies were also pinned when the waits were removed",
            _NO_WAITS,
            lambda step: _copies(pinned=True)(_without("item", "sync")(step)),
        ),
        ("no wait was removed: the step was not changed", _NO_WAITS, _without()),
    ),
    "data": (
        ("the copies were removed together with the loads", _NO_LOADS, _without("load", "copy")),
        ("Python was removed together with the loads", _NO_LOADS, _without("load", "python")),
        ("loads were halved instead of removed", _NO_LOADS, _times(0.5, "load")),
        ("copies were removed instead of loads", _NO_LOADS, _without("copy")),
        ("no load was removed: the step was not changed", _NO_LOADS, _without()),
    ),
    "copy": (
        ("the copies were removed, but they should only be pinned", _PINNED, _without("copy")),
        ("pageable copies were removed, but they should only be pinned", _PINNED, lambda step: _only_pinned(step)),
        ("the copies were moved to a separate stream", _PINNED, _copies(pinned=True, stream=1)),
        ("the copies were moved to stream 0", _PINNED, _copies(pinned=True, stream=0)),
        ("the copies were made pageable instead of pinned", _PINNED, _copies(pinned=False)),
        ("no copy was pinned: the step was not changed", _PINNED, _without()),
    ),
}


def _no_tail(step: Step) -> Step:
    last = max((n for n, one in enumerate(step) if one["op"] != "python"), default=-1)
    return step[: last + 1]


def _only_pinned(step: Step) -> Step:
    return [one for one in step if one["op"] != "copy" or one["pinned"]]
