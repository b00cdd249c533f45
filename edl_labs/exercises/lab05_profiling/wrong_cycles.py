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
            return Wrong(what, why=f"{why}; that gives your states in all cases", next=then)
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


_CONFUSED = "a recording step and the one that ends a recording are confused"
# What is laid out otherwise, and how that is told: what, why, next.
_LAYOUTS: tuple[tuple[Callable[[Any], list[str]], tuple[str, str, str]], ...] = (
    (
        lambda case: _laid(case, count=lambda one: one["repeat"] and one["repeat"] + 1),
        (
            "there is one cycle more than `repeat`",
            "`repeat` was taken for the cycles after the first one",
            "`repeat` counts all cycles, and with 0 they go on",
        ),
    ),
    (
        lambda case: _laid(case, count=lambda one: one["repeat"] and max(one["repeat"] - 1, 1)),
        (
            "there is one cycle fewer than `repeat`",
            "the last cycle was left out",
            "`repeat` counts all cycles, and with 0 they go on",
        ),
    ),
    (
        lambda case: _laid(case, waits=lambda one, number: one["wait"] * one["stretch"] ** (number + 1)),
        (
            "the first cycle's wait was stretched already",
            "the first cycle waits `wait` steps",
            "only from the second cycle on is a wait `stretch` times the one before it",
        ),
    ),
    (
        lambda case: _laid(case, warms=_grown("warmup"), takes=_grown("active")),
        (
            "warm-up and recording were stretched with the wait",
            "only the wait grows from cycle to cycle",
            "each cycle has `warmup` steps of warm-up and `active` of recording, the later ones too",
        ),
    ),
    (
        lambda case: _laid(case, takes=_grown("active")),
        (
            "the recording was stretched with the wait",
            "only the wait grows from cycle to cycle",
            "each cycle records `active` steps, the later ones too",
        ),
    ),
    (
        lambda case: _laid(case, warms=_grown("warmup")),
        (
            "warm-up was stretched with the wait",
            "only the wait grows from cycle to cycle",
            "each cycle has `warmup` steps of warm-up, the later ones too",
        ),
    ),
    (
        lambda case: _laid(case, ends=lambda takes: [TAKE] * takes + [SAVE]),
        (
            f"{_CONFUSED}: a separate step was added for saving",
            "each cycle came out one step too long",
            "the last of the `active` steps is the one that records and saves",
        ),
    ),
    (
        lambda case: _laid(case, ends=lambda takes: [TAKE] * (takes - 1) + [TAKE if takes == 1 else SAVE]),
        (
            f"{_CONFUSED}: a cycle with a single active step never saves",
            "its only recording step is the first and also the last",
            "ask whether a step is the last active one before you ask whether it is the first",
        ),
    ),
    (
        lambda case: _laid(case, ends=lambda takes: [TAKE] * takes),
        (
            f"{_CONFUSED}: no step ever saves",
            "each cycle ends with a trace that is handed over",
            "the last of the `active` steps is the one that records and saves",
        ),
    ),
    (
        lambda case: _laid(case, skipped=lambda cycles: [REST] * case["skip_first"] + cycles[case["skip_first"] :]),
        (
            "the first cycle began before the skipped steps were over",
            "its states in the first skip_first steps were only overwritten with 'none'",
            "begin the first cycle, its wait included, at step skip_first",
        ),
    ),
)
