"""Reads the marks in nbgrader's gradebook as values, with late penalties that match the marks given by hand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from edl_labs.course.assignment import CHECK_PREFIX
from edl_labs.course.course_folder import Course
from edl_labs.course.grade.gradebook import own_programs, prose_answers, quiet, settle_penalties
from edl_labs.course.groups import read_groups
from edl_labs.course.marks.marking_notes import SavedComments, saved_comments, spelt_out
from edl_labs.course.policy import enter_dates, read_policy
from edl_labs.errors import NothingToDo, UsageError


@dataclass(frozen=True)
class ExerciseMark:
    """One exercise's mark. `waiting`: a person still has to give it; `by_hand`: a person did.

    Both: the prose changed after it was marked. The old mark counts until it is looked at again, as nbgrader has it.
    """

    exercise: str
    points: float
    max_points: float
    by_hand: bool = False
    waiting: bool = False
    comment: str = ""

    @property
    def counts(self) -> bool:
        """Whether `points` are a mark; prose that is not marked yet has none."""
        return self.by_hand or not self.waiting


@dataclass(frozen=True)
class StudentMarks:
    """One student's marks in one assignment. `points` are after the late penalty."""

    student: str
    first: str
    last: str
    email: str
    marks: tuple[ExerciseMark, ...]
    points: float
    max_points: float
    penalty: float = 0.0
    late_s: float = 0.0
    in_grace: bool = False
    """Whether `late_s` is within the course's grace period."""
    submitted: str = ""
    """The submission time, in UTC and ISO 8601; empty if unknown."""

    @property
    def name(self) -> str:
        """The full name, or the id where the gradebook has none."""
        return f"{self.first} {self.last}".strip() or self.student

    @property
    def waiting(self) -> tuple[str, ...]:
        """Exercises that a person still has to mark."""
        return tuple(mark.exercise for mark in self.marks if mark.waiting)

    def mark(self, exercise: str) -> ExerciseMark:
        """The mark of one exercise."""
        return next(mark for mark in self.marks if mark.exercise == exercise)


@contextmanager
def open_book(course: Course) -> Iterator[Any]:
    """The course's gradebook, made when it is missing."""
    with own_programs(), quiet():
        from nbgrader.api import Gradebook

        book = Gradebook(course.db_url, course.course_id or "default_course")
        try:
            yield book
        except BaseException:
            book.db.rollback()
            raise
        finally:
            book.close()


def class_marks(course: Course, assignment: str) -> tuple[StudentMarks, ...]:
    """Everyone's marks in `assignment`, by id, late penalties computed anew. NothingToDo when there are none."""
    with open_book(course) as book:
        submissions = _graded(book, assignment)
        settle(course, book, assignment, submissions)
        book.db.commit()
        saved, grace_s = saved_comments(course.root), read_policy(course.root).late.grace_s
        found = tuple(sorted((_student(s, assignment, saved, grace_s) for s in submissions), key=lambda m: m.student))
    if not found:
        raise NothingToDo(f"no student has marks in {assignment}", next=f"run edl-labs grade {assignment}")
    return found


def full_names(course: Course) -> dict[str, str]:
    """What the gradebook calls each student, by id; without a name there, the id."""
    with open_book(course) as book:
        return {who.id: f"{who.first_name or ''} {who.last_name or ''}".strip() or who.id for who in book.students}


def settle(course: Course, book: Any, assignment: str, submissions: list[Any]) -> None:
    """Compute late penalties anew: nbgrader does so when it grades, before marks are given by hand."""
    policy = read_policy(course.root)
    enter_dates(book, policy, assignment)
    _share_in_groups(course, assignment, submissions)
    settle_penalties(course, book, policy, submissions)


def _share_in_groups(course: Course, assignment: str, submissions: list[Any]) -> None:
    """Give a group's other members the mark and comment of prose that one of them has, where they wait for one.

    Whoever was marked by hand keeps that mark; a member who handed in other prose is waited for.
    """
    groups = read_groups(course.root, assignment)
    marked: dict[tuple[str, str, str], tuple[float, str | None]] = {}
    waiting: list[tuple[tuple[str, str, str], Any, Any]] = []
    for submission in submissions:
        group = groups.by_student.get(submission.student_id)
        notebook = next((n for n in submission.notebooks if n.name == assignment), None)
        if group is None or notebook is None:
            continue
        prose = prose_answers(course, assignment, submission.student_id)
        comments = {comment.name: comment for comment in notebook.comments}
        for grade in notebook.grades:
            key = (group, grade.name, prose.get(grade.name, ""))
            comment = comments.get(grade.name)
            if grade.manual_score is not None and not grade.needs_manual_grade:
                marked[key] = (grade.manual_score, comment.manual_comment if comment else None)
            elif grade.needs_manual_grade and key[2]:
                waiting.append((key, grade, comment))
    for key, grade, comment in waiting:
        if key in marked:
            grade.manual_score, said = marked[key]
            grade.needs_manual_grade = False
            if comment is not None:
                comment.manual_comment = said


def _graded(book: Any, assignment: str) -> list[Any]:
    from nbgrader.api import MissingEntry

    try:
        return list(book.find_assignment(assignment).submissions)
    except MissingEntry:
        known = ", ".join(sorted(a.name for a in book.assignments)) or "none"
        raise UsageError(
            f"the gradebook does not contain {assignment}",
            why=f"it contains {known}",
            next=f"run edl-labs grade {assignment}",
        ) from None


def _student(submission: Any, assignment: str, saved: SavedComments, grace_s: float) -> StudentMarks:
    # A lab has one notebook, called like the lab; an assignment of nbgrader's form may have several.
    notebooks = [n for n in submission.notebooks if n.name == assignment] or list(submission.notebooks)
    marks = [mark for n in notebooks for mark in _marks_in(n, saved, prefix=f"{n.name}/" * (len(notebooks) > 1))]
    penalty = sum(float(n.late_submission_penalty or 0.0) for n in notebooks)
    who = submission.student
    when = submission.timestamp
    return StudentMarks(
        student=who.id,
        first=who.first_name or "",
        last=who.last_name or "",
        email=who.email or "",
        marks=tuple(sorted(marks, key=lambda m: m.exercise)),
        points=max(0.0, sum(float(n.score) for n in notebooks) - penalty),
        max_points=sum(float(n.max_score) for n in notebooks),
        penalty=penalty,
        late_s=float(submission.total_seconds_late),
        in_grace=0 < submission.total_seconds_late <= grace_s,
        submitted=when.replace(tzinfo=UTC).isoformat() if isinstance(when, datetime) else "",
    )


def _marks_in(notebook: Any, saved: SavedComments, *, prefix: str) -> list[ExerciseMark]:
    comments = {c.name: c.manual_comment or "" for c in notebook.comments}
    marks = (_mark(grade, comments, saved) for grade in notebook.grades)
    return [replace(mark, exercise=f"{prefix}{mark.exercise}") for mark in marks]


def _mark(grade: Any, comments: dict[str, str], saved: SavedComments) -> ExerciseMark:
    exercise = grade.name.removeprefix(CHECK_PREFIX)
    return ExerciseMark(
        exercise=exercise,
        points=float(grade.score),
        max_points=float(grade.max_score),
        by_hand=grade.manual_score is not None,
        waiting=bool(grade.needs_manual_grade),
        comment=spelt_out(comments.get(exercise) or comments.get(grade.name, ""), saved.get(exercise, {})),
    )
