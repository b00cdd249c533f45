"""By which other rule the states of a scheduled profiler were laid out: one that gives the states of all cases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from edl_labs.errors import Wrong

REST, WARM, TAKE, SAVE = STATES = ("none", "warmup", "record", "record and save")


def known_layout(cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
    """The other rule that gives the states of all cases; None where there is none, or all are right."""
    if got == want:
        return None
    for layout, (what, why, then) in _LAYOUTS:
        if all(list(mine) == layout(case)[: case["steps"]] for case, mine in zip(cases, got, strict=True)):
            return Wrong(
                what, why=f"{why}; your states are exactly those that this mistake produces, in all cases", next=then
            )
    return None


def _laid(case: Any, **changed: Callable[..., Any]) -> list[str]:
    """The states with a part of each cycle changed: `waits`, `warms`, `takes`, `ends`, `skipped`, or their `count`."""
    steps: int = case["steps"]
    cycles: list[str] = []
    parts: dict[str, Callable[..., Any]] = {
        "waits": _grown("wait"),
        "warms": lambda one, number: one["warmup"],
        "takes": lambda one, number: one["active"],
        "ends": lambda takes: [TAKE] * (takes - 1) + [SAVE],
        "skipped": lambda later: [REST] * case["skip_first"] + later,
        "count": lambda one: one["repeat"],
    }
    if not changed:
        raise ValueError("a wrong layout changes some part")
    parts |= changed
    number = 0
    while len(cycles) < steps + case["skip_first"] and number < (parts["count"](case) or steps):
        waits, warms, takes = (int(parts[part](case, number)) for part in ("waits", "warms", "takes"))
        cycles += [REST] * waits + [WARM] * warms + parts["ends"](takes)
        number += 1
    return list(parts["skipped"](cycles + [REST] * (steps + case["skip_first"])))


def _grown(name: str) -> Callable[[Any, int], int]:
    return lambda case, number: int(case[name] * case["stretch"] ** number)


_CONFUSED = "your code confuses recording steps with the step that ends a recording"
# What is laid out otherwise, and how that is told: what, why, next.
_LAYOUTS: tuple[tuple[Callable[[Any], list[str]], tuple[str, str, str]], ...] = (
    (
        lambda case: _laid(case, count=lambda one: one["repeat"] and one["repeat"] + 1),
        (
            "your list has one cycle more than `repeat` says",
            "your code applies `repeat` only to the cycles after the first one",
            "run `repeat` cycles in all; if it is 0, continue without end",
        ),
    ),
    (
        lambda case: _laid(case, count=lambda one: one["repeat"] and max(one["repeat"] - 1, 1)),
        (
            "your list has one cycle fewer than `repeat` says",
            "the last cycle is missing",
            "run `repeat` cycles in all; if it is 0, continue without end",
        ),
    ),
    (
        lambda case: _laid(case, waits=lambda one, number: one["wait"] * one["stretch"] ** (number + 1)),
        (
            "your code already stretches the first cycle's wait",
            "the first cycle should wait `wait` steps",
            "start stretching with the second cycle: each wait is then `stretch` times the previous one",
        ),
    ),
    (
        lambda case: _laid(case, warms=_grown("warmup"), takes=_grown("active")),
        (
            "your code stretches warm-up and recording too",
            "only the wait should grow from cycle to cycle",
            "give every cycle `warmup` steps of warm-up and `active` steps of recording",
        ),
    ),
    (
        lambda case: _laid(case, takes=_grown("active")),
        (
            "your code stretches the recording too",
            "only the wait should grow from cycle to cycle",
            "record `active` steps in every cycle",
        ),
    ),
    (
        lambda case: _laid(case, warms=_grown("warmup")),
        (
            "your code stretches the warm-up too",
            "only the wait should grow from cycle to cycle",
            "give every cycle `warmup` steps of warm-up",
        ),
    ),
    (
        lambda case: _laid(case, ends=lambda takes: [TAKE] * takes + [SAVE]),
        (
            f"{_CONFUSED}: it adds a separate step for saving",
            "each cycle is one step too long",
            "make the last of the `active` steps the one that records and saves",
        ),
    ),
    (
        lambda case: _laid(case, ends=lambda takes: [TAKE] * (takes - 1) + [TAKE if takes == 1 else SAVE]),
        (
            f"{_CONFUSED}: a cycle with a single active step never saves",
            "its only active step is both the first and the last one",
            "check whether a step is the last active one before you check whether it is the first",
        ),
    ),
    (
        lambda case: _laid(case, ends=lambda takes: [TAKE] * takes),
        (
            f"{_CONFUSED}: no step ever saves",
            "each cycle should end by saving its trace",
            "make the last of the `active` steps the one that records and saves",
        ),
    ),
    (
        lambda case: _laid(case, skipped=lambda cycles: [REST] * case["skip_first"] + cycles[case["skip_first"] :]),
        (
            "in your list, the first cycle begins before the skipped steps are over",
            "your code only overwrites its first skip_first states with 'none'",
            "begin the first cycle, including its wait, at step skip_first",
        ),
    ),
)
