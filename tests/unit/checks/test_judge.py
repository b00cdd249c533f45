"""The judge gives a sentence and a number for any evidence, and never raises."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edl_labs.checks import Case, Exercise, RegisteredExercise, close, judge
from edl_labs.checks.evidence import collect
from edl_labs.errors import Wrong


@dataclass
class Spec(Exercise):
    """A spec whose compare is given."""

    compare_with: Any = None

    def cases(self, rng) -> list[Case]:
        return CASES

    def probe(self, student, given) -> Any:
        return {"y": student.f(given["x"]), "n": [1, 2]}

    def compare(self, case, got, want) -> Any:
        if self.compare_with is not None:
            return self.compare_with(case, got, want)
        if not close(got["y"], want["y"]):
            raise Wrong("y is off", why="it differs", next="look")
        return None


def exercise(**kwargs: Any) -> RegisteredExercise:
    return RegisteredExercise("ex", "lab90_x", Spec(**kwargs))


GIVEN = [{"x": 1.0}, {"x": 2.0}]
CASES = [Case(given=one) for one in GIVEN]
WANT = [{"y": 2.0, "n": [1, 2]}, {"y": 4.0, "n": [1, 2]}]
RIGHT = [{"value": want} for want in WANT]


def test_right_evidence_passes_with_full_points() -> None:
    outcome = judge(exercise(), CASES, RIGHT, WANT, points=3)

    assert ("passed", 3, "", 2, 2) == (
        *(outcome.state, outcome.points, outcome.what),
        *(outcome.cases_right, outcome.cases_total),
    )


def test_one_wrong_case_costs_the_exercise_and_shows_its_inputs() -> None:
    outcome = judge(exercise(), CASES, [RIGHT[0], {"value": {"y": 5.0, "n": [1]}}], WANT, points=3)

    assert ("wrong", 0.0, "y is off", "it differs", "look") == (
        *(outcome.state, outcome.points),
        *(outcome.what, outcome.why, outcome.next),
    )
    assert (1, "x = 2.0") == (outcome.case_index, outcome.case_text)


@dataclass
class Doubled(Spec):
    """A spec that knows a mistake by all cases together."""

    def diagnose_all_cases(self, cases, got, want) -> Wrong | None:
        return Wrong("y is doubled") if all(g["y"] == 2 * w["y"] for g, w in zip(got, want, strict=True)) else None


@pytest.mark.parametrize(
    ("last", "told"),
    [
        ({"value": {"y": 8.0, "n": [1, 2]}}, "y is doubled"),
        ({"value": {"y": 4.0, "n": [1, 2]}}, "y is off"),
        ({"value": {"n": [1, 2]}}, "y is off"),
        ({"value": None}, "y is off"),
        ({"error": {"type": "ValueError"}}, "y is off"),
    ],
)
def test_a_mistake_is_told_throughout_only_where_every_answer_fits_it(last, told) -> None:
    spec = RegisteredExercise("ex", "lab90_x", Doubled())

    assert told == judge(spec, CASES, [{"value": {"y": 4.0, "n": [1, 2]}}, last], WANT, points=1).what
    assert "y is off" == judge(spec, CASES, [{"value": {"y": 4.0, "n": [1, 2]}}], WANT, points=1).what
    assert "passed" == judge(spec, CASES, RIGHT, WANT, points=1).state


def test_a_case_that_says_what_is_wrong_is_shown_before_one_that_only_earned_a_part() -> None:
    def second_is_wrong(case, got, want):
        if case["x"] == 2.0:
            raise Wrong("too slow", why="it waits", next="look", keeps=0.5)
        return 0.9

    outcome = judge(exercise(compare_with=second_is_wrong), CASES, RIGHT, WANT, points=10)

    assert ("partly", "too slow") == (outcome.state, outcome.what)
    assert 1 == outcome.case_index


def test_fractions_are_averaged_and_called_partly() -> None:
    half = exercise(compare_with=lambda case, got, want: 0.5 if case["x"] > 1 else None)

    outcome = judge(half, CASES, RIGHT, WANT, points=4)

    assert ("partly", 3.0) == (outcome.state, outcome.points)


@pytest.mark.parametrize("awarded", [2, -1, math.nan, math.inf, "1", [], object()])
def test_an_impossible_award_is_no_award(awarded: Any) -> None:
    outcome = judge(exercise(compare_with=lambda *_: awarded), CASES, RIGHT, WANT, points=4)

    assert 0 == outcome.points


def test_an_own_combine_is_clamped() -> None:
    spec = Spec()
    spec.combine = lambda fractions: 7.0  # type: ignore[method-assign]

    outcome = judge(RegisteredExercise("ex", "lab90_x", spec), CASES, RIGHT, WANT, points=2)

    assert 2 == outcome.points


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"stub": True}, "not attempted yet"),
        ({"missing": "f"}, "f is not defined in this notebook yet"),
        ({"not_plain_data": "value is an object of type Sly, not plain data"}, "object of type Sly"),
        ({"error": {"type": "ZeroDivisionError", "message": "x", "line": "1/0"}}, "your code raised ZeroDivisionError"),
        ({"interrupted": True}, "the check was interrupted"),
        ({}, "there is no result for this case"),
        ({"value": 3}, "expected a dict, got a number"),
        ({"value": {"y": 1.0}}, "expected a dict with the keys 'y', 'n', got the key 'y'"),
        (
            {"value": {"y": 1.0, "n": [], "z": 1}},
            "expected a dict with the keys 'y', 'n', got the keys 'y', 'n', 'z'",
        ),
        ({"value": {"y": "2", "n": [1]}}, "for `y`, expected a number, got text"),
        ({"value": {"y": True, "n": [1]}}, "for `y`, expected a number, got True or False"),
        ({"value": {"y": 2.0, "n": [[1]]}}, "for `n`, expected a number, got a list or a tuple"),
        ({"value": {"y": math.nan, "n": [1, 2]}}, "y is off"),
        ({"value": {"y": 10**400, "n": [1, 2]}}, "y is off"),
        ({"value": np.zeros(3)}, "expected a dict, got an array"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_each_kind_of_bad_evidence_scores_nothing_and_says_why(record: dict, said: str) -> None:
    outcome = judge(exercise(), CASES, [record, record], WANT, points=3)

    assert 0 == outcome.points
    assert said in outcome.what
    assert outcome.why
    assert outcome.next


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["value", "error", "y", "n", "stub"]), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(anything)
@settings(max_examples=300, deadline=None)
def test_no_evidence_makes_the_judge_raise(got: Any) -> None:
    outcome = judge(exercise(), CASES, got, WANT, points=3)

    assert 0 == outcome.points


@given(anything)
@settings(max_examples=100, deadline=None)
def test_a_compare_that_trips_over_evidence_awards_nothing(got: Any) -> None:
    careless = exercise(compare_with=lambda case, got, want: got["y"]["deep"][3] / 0)
    careless.spec.skip_type_check = True

    outcome = judge(careless, CASES, [{"value": got}] * 2, WANT, points=3)

    assert (0, "the result could not be compared") == (outcome.points, outcome.what)


@pytest.mark.parametrize("code", ["def f(x): raise SystemExit", "def f(x): raise KeyboardInterrupt", "def f(x): f(x)"])
def test_code_that_tries_to_leave_is_recorded(code: str) -> None:
    namespace: dict[str, Any] = {}
    exec(code, namespace)

    outcome = judge(exercise(), CASES, collect(exercise(), namespace, GIVEN), WANT, points=3)

    assert ("wrong", 0) == (outcome.state, outcome.points)


def test_an_exception_with_a_broken_text_is_recorded() -> None:
    namespace: dict[str, Any] = {}
    exec("class E(Exception):\n  def __str__(s): raise s\ndef f(x): raise E", namespace)

    records = collect(exercise(), namespace, GIVEN)

    assert [{"error": {"type": "E", "message": "", "line": ""}}] * 2 == records


def test_each_case_is_a_copy_and_random_numbers_repeat() -> None:
    namespace: dict[str, Any] = {"seen": []}
    exec("import random\ndef f(x): seen.append(random.random()); return x", namespace)

    collect(exercise(), namespace, GIVEN)

    assert 1 == len(set(namespace["seen"]))


def test_references_stand_in_only_while_the_probe_runs() -> None:
    namespace: dict[str, Any] = {}
    exec("def f(x): return g(x)\ndef g(x): return 0.0", namespace)
    own = namespace["g"]

    records = collect(exercise(), namespace, GIVEN, references={"g": lambda x: 2 * x, "h": 1})

    assert RIGHT == records
    assert own is namespace["g"]
    assert "h" not in namespace
