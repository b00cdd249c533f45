"""What a student calls in a notebook: `check` and `hint`."""

from __future__ import annotations

import inspect
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from edl_labs.checks._exercise import RegisteredExercise
from edl_labs.checks._judge import RAISED, WRONG_TYPE, Outcome, is_of_form, judge
from edl_labs.checks.caught_output import Printed, caught_output
from edl_labs.checks.evidence import LAST, collect
from edl_labs.checks.evidence_form import yours
from edl_labs.checks.known_mistakes import named
from edl_labs.checks.lab_cells import RUN_ABOVE, defining_cell, expected_signature
from edl_labs.checks.lab_facts import LabFacts, lab_of
from edl_labs.checks.outcome_display import Hint, show_outcome, show_running, shown_hint
from edl_labs.checks.progress import failing_case, remember
from edl_labs.checks.progress_store import STATE_DIR, files_beside
from edl_labs.checks.score import Score
from edl_labs.checks.spec import Case, given_halves, read_here
from edl_labs.checks.time_limit import TookTooLong, notify_if_slow, time_limit
from edl_labs.errors import EdlError, UsageError

_REFUSED = re.compile(r"(\w+)\(\) ((?:got|takes|missing) .*argument.*)", re.DOTALL)  # Python's words for a wrong call
_HINTS_SHOWN: dict[str, int] = {}
_SLOW_S = 10.0  # most checks take less than 1 s; after so long people wonder
_MAX_LINES = 20  # half a screen
_clock_s = time.monotonic


def check(name: str = "", namespace: dict[str, Any] | None = None) -> Score:
    """Checks one exercise of this notebook and shows the result; returns the points as a number.

    Never raises and never stops a notebook. `namespace` is the calling notebook's own unless given.
    """
    names = namespace if namespace is not None else _callers_names()
    with caught_output() as printed, notify_if_slow(_SLOW_S, lambda: show_running(name, _SLOW_S)):
        outcome = _outcome(name, names, printed)
    try:
        remember(outcome)
    except Exception as error:  # what was checked counts, whatever becomes of the picture of it
        print(
            f"Could not save your progress: {type(error).__name__}: {error}. Delete {STATE_DIR} next to this notebook."
        )
    show_outcome(outcome)
    return Score(outcome.points, outcome=outcome)


def hint(name: str = "", number: int | None = None) -> Any:
    """The next hint of an exercise, each a little closer to the answer; `number` (from 1) shows that one again.

    A notebook shows it at once, wherever in a cell the call is.
    """
    try:
        hints = lab_of(name, verb="hint").exercise(name).hints
    except EdlError as error:
        return shown_hint(Hint(str(name), 0, 0, str(error)))
    if not hints:
        return shown_hint(Hint(name, 0, 0, f"{name} has no hints"))
    asked = _HINTS_SHOWN.get(name, 0) + 1 if number is None else number
    shown = min(max(1, asked), len(hints)) if isinstance(asked, int) else 1
    if number is None:
        _HINTS_SHOWN[name] = shown
    return shown_hint(Hint(name, shown, len(hints), hints[shown - 1]))


def case(name: str, number: int | None = None) -> Any:
    """The inputs of case `number` (from 1) of an exercise's public check, to try your own code on.

    Without a number: the first that was not right when it was last checked, else the first. Where a check makes tensors
    from a few numbers, such as a seed, the tensors come. Each call gives a new copy. UsageError where the exercise has
    no such case.
    """
    known = lab_of(name, verb="case")
    exercise, cases, _ = known.public(name)
    chosen = number if number is not None else (failing_case(name) or 0) + 1
    if not isinstance(chosen, int) or not 1 <= chosen <= len(cases):
        numbers = f"the cases of {name} are numbered from 1 to {len(cases)}"
        raise UsageError(f"{name} has no case {chosen}", why=numbers, next=f'for example, call case("{name}", 1)')
    return exercise.spec.student_inputs(cases[chosen - 1])


def _outcome(name: str, names: dict[str, Any], printed: Printed, *, alone: bool = False) -> Outcome:
    """What an exercise comes to; `alone` leaves out what it builds on, so that a chain of them stays bounded."""
    try:
        return _judged(name, names, printed, alone=alone)
    except EdlError as error:
        return Outcome(str(name or "check()"), "", "not attempted", 0.0, 0.0, error.what, error.why, error.next)
    except BaseException as error:  # a check must never stop a notebook, whatever is broken
        return Outcome(
            str(name),
            "",
            "not attempted",
            0.0,
            0.0,
            "the check itself failed",
            f"{type(error).__name__}: {error}",
            "restart the kernel and run all cells; if it happens again, send this message to your instructor",
        )


def _judged(name: str, names: dict[str, Any], printed: Printed, *, alone: bool) -> Outcome:
    lab = lab_of(name)
    known = lab.exercise(name)
    if known.kind == "explain":
        return Outcome(
            *(name, lab.lab, "not attempted", 0.0, known.points),
            what="this exercise is marked by hand",
            why="this question asks for an explanation in words",
            next="write your explanation in the cell; your instructor will read it",
        )
    exercise, cases, wants = lab.public(name)
    records, texts = _collected(exercise, names, cases, printed)
    above = _cell_above(lab, records, names)
    if above:
        what, why, then = above
        return Outcome(*(name, lab.lab, "not attempted", 0.0, known.points), what=what, why=why, next=then)
    handed_in = files_beside(exercise.spec.hand_ins, Path.cwd())
    outcome = judge(exercise, read_here(exercise.spec, cases, handed_in), records, wants, points=known.points)
    outcome = named(outcome, lab.known_mistakes(name), records, wants)
    outcome = replace(outcome, printed=_printed(texts, outcome.case_index))
    index = outcome.case_index
    if index is not None and index < len(records):
        answer = yours(exercise.spec.format_answer, cases[index], records[index])
        outcome = replace(outcome, case_text="\n".join(filter(None, (outcome.case_text, answer))))
    outcome = _with_signature(outcome)
    if alone or outcome.state in ("passed", "not attempted") or is_of_form(exercise, outcome, records, wants):
        return outcome
    broken = [used for used in exercise.uses if _is_broken(lab, used, names, printed)]
    return _builds_on(outcome, broken[0]) if broken else outcome


def _is_broken(lab: LabFacts, used: str, names: dict[str, Any], printed: Printed) -> bool:
    """Whether a mistake may come from the exercise that was built on; practice that nobody has begun made none."""
    state = _outcome(used, names, printed, alone=True).state
    return state != "passed" and not (lab.exercise(used).optional and state == "not attempted")


def _with_signature(outcome: Outcome) -> Outcome:
    """An answer of another kind, and a function that takes other arguments, are told by what the cell asks for."""
    template, values = getattr(outcome.what, "template", ""), getattr(outcome.what, "values", {})
    if template == WRONG_TYPE:
        asked = expected_signature(outcome.lab, outcome.name)
        return replace(outcome, next=f"return what the cell describes: {asked}") if asked else outcome
    called = _REFUSED.match(values["message"]) if template == RAISED and values["type"] == "TypeError" else None
    asked = expected_signature(outcome.lab, outcome.name) if called else ""
    if not called or f"`{called[1]}(" not in asked:
        return outcome
    what = f"the arguments of {called[1]} do not match the call"
    return replace(outcome, what=what, why=called[2], next=f"keep the `def` line unchanged: {asked}")


def _collected(
    exercise: RegisteredExercise, names: dict[str, Any], cases: list[Case], printed: Printed
) -> tuple[list[dict[str, Any]], list[str]]:
    """The records of the cases, and what each of them printed. All together have `timeout_s`, as in grading."""
    records: list[dict[str, Any]] = []
    texts: list[str] = []
    printed.take()
    end_s = _clock_s() + exercise.timeout_s
    for case in cases:
        records += _collected_in_time(exercise, names, case, end_s - _clock_s())
        texts.append(printed.take())
        if records[-1].keys() & LAST:
            break
    return records, texts


def _cell_above(lab: LabFacts, records: list[dict[str, Any]], names: dict[str, Any]) -> tuple[str, str, str] | None:
    """What, why and next where the code needs a name that another cell of the lab defines, and that is not there."""
    error: dict[str, str] = next((record["error"] for record in records if "error" in record), {})
    name = error.get("name", "")
    cell = defining_cell(lab.lab, name) if name and name not in names else ""
    what = f"{name} is undefined: {cell} defines it but has not run"
    why = "the kernel was restarted, or a cell was skipped; your code is not the cause"
    return (what, why, RUN_ABOVE) if cell else None


def _collected_in_time(
    exercise: RegisteredExercise, names: dict[str, Any], case: Case, left_s: float
) -> list[dict[str, Any]]:
    """The record of one case; of one that has reached the limit, and was stopped, only that."""
    found: list[dict[str, Any]] = []
    if left_s <= 0:
        return [{"too_long": True}]
    try:
        with time_limit(left_s) as limit:
            found = collect(exercise, names, given_halves([case]))
    except TookTooLong:
        pass
    return [{"too_long": True}] if limit.reached else found


def _printed(texts: list[str], failing: int | None) -> str:
    """What the failing case printed; when none failed, the first lines of all."""
    if failing is not None:
        return texts[failing] if failing < len(texts) else ""
    lines = "".join(texts).splitlines(keepends=True)
    return "".join(lines[:_MAX_LINES]) + ("…" if len(lines) > _MAX_LINES else "")


def _builds_on(outcome: Outcome, first: str) -> Outcome:
    """Says that `first`, which this exercise builds on, is not right: its mistake is not this one's."""
    mend = f'first make check("{first}") pass (grading uses a correct {first} instead of yours)'
    return replace(
        outcome,
        why=f"{outcome.why}; this exercise builds on {first}, which is not right yet".lstrip("; "),
        next=f"{outcome.next}; but {mend}" if outcome.next else mend,
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
