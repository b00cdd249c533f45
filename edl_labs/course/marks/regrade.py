"""A corrected exercise, graded again for all who attempted it: a table of changes and, when asked, the marks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from edl_labs.course.assignment import CHECK_PREFIX
from edl_labs.course.course_folder import Course
from edl_labs.course.grade.classrun import put_autograded
from edl_labs.course.grade.gradebook import Writer
from edl_labs.course.grade.grader import Grader
from edl_labs.course.grade.result import Result
from edl_labs.course.grade.submission import Unreadable
from edl_labs.course.marks.student_marks import open_book, settle
from edl_labs.errors import EdlError, NothingToDo, UsageError
from edl_labs.values import Value

_SAME = 1e-9  # sums of floats differ by less, and no mark is that fine


@dataclass(frozen=True)
class Change:
    """One mark that grading again changes. `stands`: a mark given by hand, which stays."""

    student: str
    exercise: str
    before: float
    after: float
    max_points: float
    stands: bool = False


@dataclass(frozen=True, repr=False)
class RegradeReport(Value):
    """What grading again changes, or changed when `applied`."""

    DERIVED = ("exit_code",)
    ROWS = "changes"

    assignment: str
    exercises: tuple[str, ...]
    graded: int
    changes: tuple[Change, ...]
    failed: tuple[tuple[str, str], ...] = ()
    applied: bool = False

    @property
    def exit_code(self) -> int:
        """0 all were graded; 1 someone could not be, whose marks stay."""
        return 1 if self.failed else 0


def regrade(
    assignment: str,
    exercises: Sequence[str],
    *,
    course: Course | None = None,
    apply: bool = False,
    jobs: int | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> RegradeReport:
    """Grade `exercises` again for everyone who attempted one of them. Without `apply`, nothing is written.

    Other exercises keep their marks, and marks and comments given by hand stay.
    """
    course = course or Course.find_class()
    known = course.assignment(assignment)
    wanted = tuple(dict.fromkeys(exercises))
    judged = {cell.exercise for cell in known.cells if cell.role == "check"}
    for name in wanted:
        if name not in judged:
            raise UsageError(
                f"{assignment} has no automatically graded exercise {name!r}",
                why=f"its automatically graded exercises are {', '.join(sorted(judged))}",
                next="use one of these",
            )
    students = course.students(assignment)
    if not students or not wanted:
        raise NothingToDo(
            "there is nothing to grade again", next="collect submissions first, then name the exercises to grade"
        )
    with Grader(course, known) as grader:
        results, failed = _results(grader, students, jobs or 1, progress)
        attempted = {s: r for s, r in results.items() if _attempted(r, wanted)}
        changes = _changes(course, assignment, attempted, wanted)
        if apply:
            _enter(course, grader, attempted, changes)
    return RegradeReport(assignment, wanted, len(attempted), changes, tuple(failed.items()), apply)


def _results(
    grader: Grader, students: Sequence[str], jobs: int, progress: Callable[[int, int, str], None] | None
) -> tuple[dict[str, Result], dict[str, str]]:
    from concurrent.futures import ThreadPoolExecutor

    results: dict[str, Result] = {}
    failed: dict[str, str] = {}
    with ThreadPoolExecutor(max(1, jobs)) as pool:
        all_found = zip(students, pool.map(lambda s: _graded(grader, s), students), strict=True)
        for number, (student, found) in enumerate(all_found, start=1):
            if isinstance(found, Result):
                results[student] = found
            else:
                failed[student] = found
            if progress is not None:
                progress(number, len(students), student)
    return results, failed


def _graded(grader: Grader, student: str) -> Result | str:
    """The result, or why there is none."""
    try:
        return grader.grade(student)[0]
    except Unreadable as unreadable:
        return unreadable.what
    except UsageError:
        raise
    except EdlError as error:
        return str(error)


def _attempted(result: Result, wanted: Sequence[str]) -> bool:
    """Whether the student wrote anything for one of the exercises."""
    return any(outcome.name in wanted and outcome.state != "not attempted" for outcome in result.outcomes) or any(
        name in wanted and name not in result.untouched for name in result.points
    )


def _changes(course: Course, assignment: str, results: dict[str, Result], wanted: Sequence[str]) -> tuple[Change, ...]:
    found = []
    with open_book(course) as book:
        for student, result in results.items():
            for grade in _grades(book, assignment, student):
                exercise = grade.name.removeprefix(CHECK_PREFIX)
                if exercise not in wanted or exercise not in result.points:
                    continue
                before, after = float(grade.auto_score or 0.0), result.points[exercise]
                if grade.auto_score is None or abs(before - after) > _SAME:
                    by_hand = grade.manual_score is not None
                    found.append(Change(student, exercise, before, after, float(grade.max_score), stands=by_hand))
    return tuple(found)


def _grades(book: Any, assignment: str, student: str) -> list[Any]:
    from nbgrader.api import MissingEntry

    try:
        return list(book.find_submission_notebook(assignment, assignment, student).grades)
    except MissingEntry:
        return []


def _enter(course: Course, grader: Grader, results: dict[str, Result], changes: Sequence[Change]) -> None:
    """Write the changed marks, in one transaction, then the notebooks that show them."""
    name = grader.assignment.name
    with Writer(course, grader.assignment):
        pass  # makes the gradebook agree with the assignment as it is now
    touched = {change.student for change in changes}
    with open_book(course) as book:
        submissions = []
        for student in sorted(touched):
            new = {c.exercise: c.after for c in changes if c.student == student}
            for grade in _grades(book, name, student):
                exercise = grade.name.removeprefix(CHECK_PREFIX)
                if exercise in new:
                    grade.auto_score = new[exercise]
            submissions.append(book.find_submission(name, student))
        book.db.flush()
        settle(course, book, name, submissions)
        book.db.commit()
    for student in sorted(touched):
        put_autograded(course, grader.results.store, student, results[student])
