"""Only the given half of a secret case is sent to a student's process, and no number of it draws the cases again."""

from __future__ import annotations

from pathlib import Path

import numpy
import pytest

from edl_labs.checks import Case, plain_data
from edl_labs.checks.lab_exercises import lab_names, load_lab
from edl_labs.checks.spec import given_halves
from edl_labs.course.assignment import Assignment
from edl_labs.course.course_folder import Course
from tests.course.course_fixture import make_lab_course
from tests.labs.crossing import changed, leaves, sent
from tests.sampling import few

SEED = 20_261_126
MOST_TRIED = 12  # whole numbers of an exercise's first case, each of which draws again
LABS = sorted(lab_names(), key=lambda lab: (lab != "lab10_capstone", lab))
SOME_LABS = few(LABS, quick=3)


def assignment_of(root: Path, lab: str) -> Assignment:
    return Course(make_lab_course(root / "course", lab).root).assignment(lab)


@pytest.mark.parametrize("lab", SOME_LABS)
def test_changing_whatever_is_hidden_sends_the_same_bytes(tmp_path: Path, lab: str) -> None:
    assignment = assignment_of(tmp_path, lab)
    for exercise in assignment.exercises:
        cases = exercise.draw_cases(SEED)
        hidden = [Case(given=case.given, hidden={**changed(dict(case.hidden)), "more": 1}) for case in cases]
        given = [Case(given={**case.given, "more": 1}, hidden=case.hidden) for case in cases]
        request = sent(assignment, exercise, cases)

        assert request == sent(assignment, exercise, hidden), exercise.name
        assert request != sent(assignment, exercise, given), exercise.name


def test_what_is_changed_is_changed() -> None:
    value = {"a": [1, 2.5, None, True, "x"], "b": {"c": numpy.zeros(2)}, "d": []}

    other = changed(value)

    assert [2, "2.5", "None", False, "x.", "one more"] == other["a"]
    assert ([1.0, 1.0], ["one more"]) == (other["b"]["c"].tolist(), other["d"])


@pytest.mark.parametrize("lab", SOME_LABS)
def test_no_number_that_is_given_is_a_seed_of_the_cases(lab: str) -> None:
    for exercise in load_lab(lab):
        given = given_halves(exercise.draw_cases(SEED))
        numbers = {leaf for leaf in leaves(given[0]) if type(leaf) is int and leaf > 1}
        for number in sorted(numbers, reverse=True)[:MOST_TRIED]:
            again = given_halves(exercise.draw_cases(number))
            directly = given_halves(exercise.drawing()(numpy.random.default_rng(number)))

            assert plain_data.encode(given) not in map(plain_data.encode, (again, directly)), (exercise.name, number)
