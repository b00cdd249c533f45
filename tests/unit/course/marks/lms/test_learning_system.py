"""What all learning systems share: numbers of resubmissions, and the table that knows each of them."""

from __future__ import annotations

import pytest

from edl_labs.course.marks.lms import collects_as, exports_as
from edl_labs.course.marks.lms.learning_system import attempt
from edl_labs.errors import UsageError


def test_resubmissions_are_counted_by_the_systems_suffix() -> None:
    assert [("lab01", 0), ("lab01", 12), ("lab01", 3)] == [
        attempt(name) for name in ("lab01.ipynb", "lab01-12.ipynb", "lab01 (3).ipynb")
    ]


def test_a_system_that_nobody_registered_is_refused_with_those_there_are() -> None:
    with pytest.raises(UsageError, match="blackboard") as source:
        collects_as("blackboard")
    with pytest.raises(UsageError, match="blackboard") as target:
        exports_as("blackboard")

    assert ("canvas, moodle, dir", "canvas, moodle, csv") == tuple(
        caught.value.next.removeprefix("choose one of ") for caught in (source, target)
    )
