"""What a student calls in a notebook: `check` and `hint`."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any

from edl_labs.checks.evidence import collect
from edl_labs.checks.exercise import load_lab
from edl_labs.checks.judge import Outcome, judge
from edl_labs.checks.progress import remember
from edl_labs.checks.public import LabFacts, lab_of
from edl_labs.checks.quiet import quiet
from edl_labs.checks.score import Score
from edl_labs.errors import EdlError

_HINTS_SHOWN: dict[str, int] = {}


def check(name: str, namespace: dict[str, Any] | None = None) -> Score:
    """Checks one exercise of this notebook and shows what came of it; returns the points as a number.

    Never raises and never stops a notebook. `namespace` is the calling notebook's own unless given.
    """
    names = namespace if namespace is not None else _callers_names()
    with quiet() as printed:
        outcome = _outcome(name, names)
    outcome = replace(outcome, printed=printed.text)
    remember(outcome)
    _show(outcome)
    return outcome.score


def hint(name: str, number: int | None = None) -> Any:
    """The next hint of an exercise, each a little closer to the answer; `number` (from 1) shows that one again."""
    from edl_labs.ui.outcome import Hint

    try:
        hints = lab_of(name).exercise(name).hints
    except EdlError as error:
        return Hint(str(name), 0, 0, str(error))
    if not hints:
        return Hint(name, 0, 0, f"{name} has no hints")
    asked = _HINTS_SHOWN.get(name, 0) + 1 if number is None else number
    shown = min(max(1, asked), len(hints)) if isinstance(asked, int) else 1
    if number is None:
        _HINTS_SHOWN[name] = shown
    return Hint(name, shown, len(hints), hints[shown - 1])


def _outcome(name: str, names: dict[str, Any]) -> Outcome:
    try:
        lab = lab_of(name)
        return _judged(lab, name, names)
    except EdlError as error:
        return Outcome(str(name), "", "not attempted", 0.0, 0.0, error.what, error.why, error.next)
    except BaseException as error:  # a check must never stop a notebook, whatever is broken
        return Outcome(
            str(name),
            "",
            "not attempted",
            0.0,
            0.0,
            "the check itself failed",
            f"{type(error).__name__}: {error}",
            "restart the kernel and run all; if it stays, send your instructor this message",
        )


def _judged(lab: LabFacts, name: str, names: dict[str, Any]) -> Outcome:
    known = lab.exercise(name)
    if known.kind == "explain":
        return Outcome(
            *(name, lab.lab, "not attempted", 0.0, known.points),
            what="this one is marked by hand",
            why="it asks for an explanation in words",
            next="write it in the cell; your instructor reads it",
        )
    exercise = next(e for e in load_lab(lab.lab) if e.name == name)
    cases, wants = lab.golden(name)
    outcome = judge(exercise, cases, collect(exercise, names, cases), wants, points=known.points)
    return _builds_on(lab, outcome, exercise.uses, names)


def _builds_on(lab: LabFacts, outcome: Outcome, uses: tuple[str, ...], names: dict[str, Any]) -> Outcome:
    """Says so when an exercise that this one builds on is not right: its mistake is not this one's."""
    if outcome.state in ("passed", "not attempted"):
        return outcome
    broken = [used for used in uses if _outcome(used, names).state != "passed"]
    if not broken:
        return outcome
    first = broken[0]
    return replace(
        outcome,
        why=f"{outcome.why}; it builds on {first}, which is not right yet".lstrip("; "),
        next=f'mend {first} first (when this is graded, a right {first} takes its place): check("{first}")',
    )


def _callers_names() -> dict[str, Any]:
    try:
        from IPython import get_ipython

        shell = get_ipython()
    except ImportError:
        shell = None
    if shell is not None and hasattr(shell, "user_ns"):
        return shell.user_ns
    frame = inspect.currentframe()
    caller = frame.f_back.f_back if frame is not None and frame.f_back is not None else None
    return caller.f_globals if caller is not None else {}


def _show(outcome: Outcome) -> None:
    from edl_labs.ui.outcome import show_outcome

    show_outcome(outcome)
