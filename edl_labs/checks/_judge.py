"""The judge: evidence against the reference's evidence. It never touches the student's objects and never raises."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from edl_labs.checks._exercise import RegisteredExercise
from edl_labs.checks.evidence_form import Misfit, fitted, plain_lists, shown
from edl_labs.checks.spec import AS_THE_REFERENCE, authors_order, finite_metrics
from edl_labs.errors import Sentence, Wrong
from edl_labs.values import Value

STATES = ("not attempted", "wrong", "partly", "passed")
# Templates of sentences that `check` says more to.
WRONG_TYPE = "wrong kind of answer: {problem}"
RAISED = "your code raised {type}: {message}"
READABLE = Sentence("return the numbers, lists or arrays that the text above the cell asks for")
_MOST_KEPT = 0.99  # what is wrong costs something, whatever it keeps
INCOMPARABLE = Sentence("the result could not be compared")


@dataclass(frozen=True, repr=False)
class Outcome(Value):
    """What one exercise came to. `case_index` and `case_text` are of the first case that was not right.

    Optional practice has 0 of 0 points, and its state says all. `entry` accompanies the mark of an exercise that is
    scored: numbers by name, for a leaderboard to read; `timelines` is plain data of what ran when, which a class run
    keeps for a leaderboard, and no student's copy has.
    """

    OMITTED = ("before_restart",)

    name: str
    lab: str
    state: str
    points: float
    max_points: float
    what: str = ""
    why: str = ""
    next: str = ""
    case_index: int | None = None
    case_text: str = ""
    cases_right: int = 0
    cases_total: int = 0
    trusting: bool = False
    printed: str = ""
    before_restart: bool = False
    """Whether the outcome is from an earlier kernel; this one has not checked the exercise."""
    entry: dict[str, float] = field(default_factory=dict, hash=False)
    timelines: dict[str, Any] = field(default_factory=dict, hash=False)

    @property
    def is_practice(self) -> bool:
        """Whether it is of an exercise that gives no points."""
        return bool(self.lab) and not self.max_points


def close(got: Any, want: Any, *, rtol: float = 1e-6, atol: float = 0.0) -> bool:
    """Whether two finite numbers agree within `rtol` of `want` or `atol`. NaN, infinity and non-numbers never do.

    >>> close(1.0000001, 1), close(float("nan"), float("nan")), close("1", 1), close(True, 1)
    (True, False, False, False)
    """
    if type(got) not in (int, float) or type(want) not in (int, float):
        return False
    try:
        got, want = float(got), float(want)
    except OverflowError:
        return False
    return math.isfinite(got) and math.isfinite(want) and abs(got - want) <= max(rtol * abs(want), atol)


def judge(exercise: RegisteredExercise, cases: list[Any], got: Any, want: list[Any], *, points: float) -> Outcome:
    """The outcome of `got` (records of `collect`, or anything at all) against `want` (the reference's values)."""
    records = got if isinstance(got, list) else []
    special = _not_attempted(exercise, records, points)
    if special is not None:
        return special
    order = authors_order(cases)
    complete = [*records, *({} for _ in cases[len(records) :])]
    drawn, found, wanted = ([every[at] for at in order] for every in (cases, complete, want))
    fractions: list[float] = []
    first: Wrong | None = None
    first_index: int | None = None
    for index, (case, record, expected) in enumerate(zip(drawn, found, wanted, strict=True)):
        fraction, wrong = judge_case(exercise, case, record, expected)
        fractions.append(fraction)
        # A case that says what is wrong comes before one that merely earned a part, and one that lost all before one
        # that keeps some: an efficiency is never all.
        if fraction < 1 and (
            first_index is None
            or (first is None and wrong is not None)
            or (wrong is not None and fraction == 0 < fractions[first_index])
        ):
            first, first_index = wrong, index
    if first is not None:
        first = (_diagnosed(exercise, drawn, found, wanted) if len(records) == len(cases) else None) or first
    asked = None if first_index is None else order[first_index]
    outcome = _outcome(exercise, drawn, found, fractions, first, first_index, points=points)
    return outcome if outcome.case_index is None else replace(outcome, case_index=asked)


def judge_case(exercise: RegisteredExercise, case: Any, record: Any, want: Any) -> tuple[float, Wrong | None]:
    """The fraction that one case earns, and what is wrong with it."""
    try:
        result = exercise.spec.compare(case, _formed(exercise, _value(exercise, case, record), want), want)
        return (1.0 if result is None or result is True else _award(result)), None
    except Wrong as wrong:
        return min(_award(wrong.keeps), _MOST_KEPT), wrong
    except Misfit as problem:
        return 0.0, _wrong(
            WRONG_TYPE,
            why="the type of an answer is checked before its value",
            next="compare what your function returns with what the text above the cell asks for",
            problem=problem,
        )
    except MemoryError:
        return 0.0, _wrong(INCOMPARABLE, why="comparing the results took too much memory", next="return less data")
    except Exception as error:
        return 0.0, _wrong(
            INCOMPARABLE,
            why="comparing the result raised {type}",
            next=READABLE,
            type=type(error).__name__,
        )


def _wrong(what: str, *, why: str, next: str, **values: object) -> Wrong:
    """A mistake in the engine's own words: templates, also where they have no values."""
    texts = [Sentence(text, **values) for text in (what, why, next)]
    return Wrong(texts[0], why=texts[1], next=texts[2])


def _diagnosed(exercise: RegisteredExercise, cases: list[Any], records: list[Any], want: list[Any]) -> Wrong | None:
    """The one mistake that explains the answers to all cases; None where there is none, or one has no answer."""
    try:
        got = [_formed(exercise, record["value"], right) for record, right in zip(records, want, strict=True)]
        found = exercise.spec.diagnose_all_cases(cases, got, want)
    except Exception:  # no answer to one of the cases, or one of another form: what that case is told stays
        return None
    return found if isinstance(found, Wrong) else None


def _formed(exercise: RegisteredExercise, value: Any, want: Any) -> Any:
    """`value` in the form that `compare` is written for; Misfit where it has another one."""
    spec = exercise.spec
    form = want if spec.answer_form is AS_THE_REFERENCE else spec.answer_form
    if not spec.skip_type_check:
        value = fitted(value, form)
    elif not _has_arrays(want):
        value = plain_lists(value)
    if form is not want or spec.skip_type_check:
        with suppress(Misfit):  # what a form cannot say, such as where an int is meant
            return fitted(value, want)
    return value


def _has_arrays(want: Any) -> bool:
    items = want.values() if isinstance(want, dict) else want if isinstance(want, list) else ()
    return hasattr(want, "ndim") or any(map(_has_arrays, items))


def is_of_form(exercise: RegisteredExercise, outcome: Outcome, got: list[Any], want: list[Any]) -> bool:
    """Whether the first case that was not right failed by its form (an exception, another type), not by its value."""
    index = outcome.case_index
    if index is None or outcome.what == INCOMPARABLE:
        return index is not None
    record = got[index] if index < len(got) else {}
    try:
        if "value" in record:
            _formed(exercise, record["value"], want[index])
        return "value" not in record
    except Misfit:
        return True


def _award(result: Any) -> float:
    """What `compare` returned as a fraction; anything but a number between 0 and 1 awards nothing."""
    return float(result) if type(result) in (int, float) and 0 <= result <= 1 else 0.0


def _value(exercise: RegisteredExercise, case: Any, record: Any) -> Any:
    """The value in a record; the mistake that a record without one tells of is raised."""
    if not isinstance(record, dict):
        record = {}
    if "value" in record:
        return record["value"]
    if isinstance(record.get("error"), dict):
        error = {key: str(record["error"].get(key, "")) for key in ("type", "message", "line")}
        known = exercise.spec.explain_exception(case, error["type"])
        if known is not None or "misfit" not in record:
            raise known or _raised(exercise, error)
    if "misfit" in record:
        raise Misfit(str(record["misfit"]))
    if "not_plain_data" in record:
        raise _not_plain_data(str(record["not_plain_data"]), str(record.get("kind", "")))
    if "interrupted" in record:
        raise _wrong(
            "the check was interrupted",
            why="it was stopped while your code was running",
            next="look for a loop that never ends, then run the check again",
        )
    if "too_long" in record:
        raise _wrong(
            "your code was still running after {limit} s and was stopped",
            why="this limit applies to all cases together; the cases after this one were not run",
            next="look for a loop or a wait that never ends; try your code on the inputs shown",
            limit=f"{exercise.timeout_s:g}",
        )
    why, then = "the check received nothing from your code for this case", "restart the kernel and run all cells"
    raise _wrong("there is no result for this case", why=why, next=then)


def _raised(exercise: RegisteredExercise, error: dict[str, str]) -> Wrong:
    """What an exception says itself."""
    message = error["message"].rstrip(": ")
    return _wrong(
        RAISED if message else "your code raised {type}",
        why="the exception was raised at `{line}`" if error["line"] else "the exception was raised in your code",
        next='run your code on the inputs shown, then run check("{exercise}") again',
        exercise=exercise.name,
        **{**error, "message": message},
    )


def _not_plain_data(text: str, kind: str) -> Wrong:
    if kind == "Exception" or kind.endswith("Error"):
        return _wrong(
            "your function returned an exception",
            why="the caller cannot tell that something failed",
            next="write `raise` instead of `return`",
        )
    return _wrong(
        "{text}",
        why="results are compared as plain numbers, text, lists, dicts, arrays or tensors",
        next="return these types instead of an object of your own class",
        text=text,
    )


def _not_attempted(exercise: RegisteredExercise, records: list[Any], points: float) -> Outcome | None:
    last = records[-1] if records and isinstance(records[-1], dict) else {}
    if "stub" in last:
        said = _wrong(
            "not attempted yet",
            why="the cell above still raises NotImplementedError",
            next='replace it with your code, run the cell, then check again; hint("{exercise}") helps',
            exercise=exercise.name,
        )
    elif "missing" in last:
        said = _wrong(
            "{name} is not defined in this notebook yet",
            why="the cell that defines it has not run since the kernel was started, or it defines a different name",
            next="run the cells above (menu Run, Run All Above Selected Cell), keep the names that they define, "
            "then check again",
            name=last["missing"],
        )
    else:
        return None
    place = (exercise.name, exercise.lab, "not attempted", 0.0, points)
    return Outcome(*place, what=said.what, why=said.why, next=said.next)


def _outcome(
    exercise: RegisteredExercise,
    cases: list[Any],
    records: list[Any],
    fractions: list[float],
    wrong: Wrong | None,
    index: int | None,
    *,
    points: float,
) -> Outcome:
    right = sum(f >= 1 for f in fractions)
    fraction = float(exercise.spec.combine(fractions))
    most = points or 1.0  # practice has no points, and is judged all the same
    earned = round(most * min(1.0, max(0.0, fraction if math.isfinite(fraction) else 0.0)), 4)
    outcome = Outcome(
        name=exercise.name,
        lab=exercise.lab,
        state="passed" if earned >= most else "partly" if earned > 0 else "wrong",
        points=earned if points else 0.0,
        max_points=points,
        cases_right=right,
        cases_total=len(fractions),
        trusting=exercise.trusting,
        entry=finite_metrics(exercise.spec, cases, records) if points and earned else {},
    )
    if outcome.state == "passed":
        return outcome
    said = wrong or _wrong(
        "partial credit",
        why="some cases are only partly right",
        next='call hint("{exercise}") to see where to look',
        exercise=exercise.name,
    )
    text = "" if index is None else shown(cases[index], exercise.spec.format_case)
    return replace(outcome, what=said.what, why=said.why, next=said.next, case_index=index, case_text=text)
