"""Due dates and extensions of course.toml in nbgrader's gradebook."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from edl_labs.course.marks.policy import CoursePolicy


def enter_dates(gradebook: Any, policy: CoursePolicy, assignment: str) -> None:
    """Put the due date into nbgrader's gradebook. A date that was entered by hand stays when the file has none."""
    dates = policy.dates(assignment)
    if dates.due is not None:
        gradebook.find_assignment(assignment).duedate = dates.due.replace(tzinfo=None)


def enter_extension(submission: Any, policy: CoursePolicy, student: str) -> None:
    """Put a student's extension into a submission of the gradebook, as nbgrader keeps it: time after the due date."""
    dates = policy.dates(str(submission.name))
    if dates.due is None:
        return
    later = dates.due_for(student)
    assert later is not None
    submission.extension = later - dates.due if later > dates.due else timedelta(0)
