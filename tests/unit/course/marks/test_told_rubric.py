"""Whose feedback page shows the rubric of a question in prose."""

from __future__ import annotations

import pytest

from edl_labs.course.marks.feedback import _Told
from edl_labs.course.marks.student_marks import ExerciseMark

RUBRIC = ("1 point: says 480 GB.",)


@pytest.mark.parametrize(
    ("by_hand", "waiting", "shown"),
    [
        (True, False, RUBRIC),
        (False, False, ()),  # left empty: marked 0 by nobody, and handing in again may be allowed
        (False, True, ()),
        (True, True, ()),
    ],
)
def test_the_rubric_is_shown_where_a_person_has_marked(by_hand, waiting, shown):
    mark = ExerciseMark("explain", 0.0, 3.0, by_hand=by_hand, waiting=waiting)

    assert shown == _Told(mark, {}, RUBRIC).rubric
