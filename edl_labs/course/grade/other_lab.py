"""A notebook from another lab that was submitted by mistake."""

from __future__ import annotations

from edl_labs.course.assignment import Assignment
from edl_labs.course.grade.submission import Submission, Unreadable


def refuse_other_lab(assignment: Assignment, submission: Submission) -> None:
    """Unreadable when a notebook says that it is another lab's, and has no cell of this one's exercises."""
    ids = {cell.grade_id for cell in submission.cells} | {cell.id for cell in submission.cells}
    ours = {name for c in assignment.cells if c.role for name in (c.grade_id, c.id)}
    if submission.lab not in ("", assignment.name) and not ids & ours:
        raise Unreadable(
            f"this is the notebook of {submission.lab[:60]}, not of {assignment.name}",
            why=f"the notebook names that lab in its metadata, and has no exercise of {assignment.name}",
            next=f"hand in {assignment.name}.ipynb",
        )
