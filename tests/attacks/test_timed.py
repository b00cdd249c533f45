"""A timed exercise: clocks outside decide, a wrong claim is refused, and what they cannot tell goes to a person."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from edl_labs.checks import Exercise, Outcome
from edl_labs.course.grade.gradebook import Writer
from edl_labs.course.grade.mark import Examiner, timing
from edl_labs.course.grade.plan import make_plan
from edl_labs.course.grade.reference import reference
from edl_labs.course.grade.result import make_result
from edl_labs.course.grade.submission import parse
from tests.attacks.bench import Bench
from tests.attacks.conftest import SEED
from tests.sampling import few

FAST = "def longest(values):\n    return max(values)"
SLOW = "import time\ndef longest(values):\n    time.sleep(0.03)\n    return max(values)"
REMEMBERS = """import time
_known = {}
def longest(values):
    if tuple(values) not in _known:
        time.sleep(0.03)
        _known[tuple(values)] = max(values)
    return _known[tuple(values)]"""
STOPPED_CLOCK = "import time\ntime.perf_counter = time.monotonic = lambda: 0.0\n" + SLOW
LATER_WRONG = "calls = []\ndef longest(values):\n    calls.append(1)\n    return max(values) + (len(calls) > 20)"


def timed(bench: Bench, **options: Any) -> Examiner:
    """The bench's examiner with `longest` timed against the solution."""
    known = bench.assignment.exercise("longest")
    options = {"timed": True, "rounds": 8, "wanted_ratio": 0.5, **options}
    spec = type("Timed", (type(known.spec),), options)()
    exercises = tuple(replace(e, spec=spec) if e is known else e for e in bench.assignment.exercises)
    assignment = replace(bench.assignment, exercises=exercises)
    return replace(bench.examiner, runner=replace(bench.examiner.runner, assignment=assignment), seed=7)


def outcome(examiner: Examiner, bench: Bench, source: str) -> Outcome:
    notebook = json.dumps(bench.course.answered({"longest": source})).encode()
    return examiner.grade(make_plan(examiner.runner.assignment, parse(notebook))).outcomes["longest"]


def test_work_as_fast_as_the_solution_passes(bench: Bench):
    assert "passed" == outcome(timed(bench, wanted_ratio=0.2), bench, FAST).state


@pytest.mark.parametrize(
    "source", few([STOPPED_CLOCK, SLOW, REMEMBERS], quick=1), ids=["stopped clock", "slow", "remembers"]
)
def test_slow_work_is_found_out_from_outside(bench: Bench, source: str):
    found = outcome(timed(bench), bench, source)

    assert ("wrong", 0.0) == (found.state, found.points)
    assert "too slow" in found.what


def test_result_that_turns_wrong_while_timed_scores_nothing(bench: Bench):
    found = outcome(timed(bench, rounds=12), bench, LATER_WRONG)

    assert ("wrong", 0.0) == (found.state, found.points)
    assert "the longest side is wrong" == found.what


@pytest.mark.parametrize("claim", few([float("nan"), "soon", 0.0, -1.0, 1e9, None], quick=2))
def test_claim_that_the_outside_clock_contradicts_is_refused(bench: Bench, claim: object):
    examiner = timed(bench, claimed_s=lambda self, value: claim, wanted_ratio=0.01)
    found = outcome(examiner, bench, SLOW)

    assert "wrong" == found.state
    assert "claimed" in found.what


def test_honest_claim_is_taken(bench: Bench):
    examiner = timed(bench, claimed_s=lambda self, value: 0.03, wanted_ratio=0.001)

    assert "passed" == outcome(examiner, bench, SLOW).state


@pytest.mark.slow
def test_what_clocks_cannot_tell_goes_to_a_person(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(
        "edl_labs.course.grade.mark.timing", lambda mine, theirs: timing([1.0, 3.0] * 4, [2.0, 2.0] * 4)
    )
    examiner = timed(bench, wanted_ratio=1.0)
    plan = make_plan(examiner.runner.assignment, parse(json.dumps(bench.course.answered({"longest": FAST})).encode()))
    run = examiner.grade(plan)
    result = make_result("k", "lab", "", plan=plan, run=run, trusted=True)

    assert "inconclusive" in result.flags
    assert {"longest"} == result.undecided


def test_undecided_mark_is_no_zero_in_the_gradebook(bench: Bench):
    exercise: Exercise = bench.assignment.exercise("longest")
    undecided = Outcome(exercise.name, exercise.lab, "inconclusive", 0.0, 1.0)
    grade = type("Grade", (), {"name": "check_longest", "manual_score": None, "auto_score": 0.0})()
    result = type("Result", (), {"undecided": {undecided.name}, "points": {"longest": 0.0}, "untouched": ()})()
    Writer._set_grade(object.__new__(Writer), grade, result, {})

    assert (None, True) == (grade.auto_score, grade.needs_manual_grade)


def test_the_reference_of_a_timed_exercise_is_of_the_classs_own_cases(bench: Bench, tmp_path: Path):
    examiner = timed(bench)
    known = reference(examiner.runner, seed=SEED, folder=tmp_path)

    assert bench.examiner.secrets["longest"].wants == known["longest"].wants
