"""Grades a class in an nbgrader assignment, with nbgrader's own autograder inside the sandbox."""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from edl_labs.course.course_folder import Course
from edl_labs.course.grade.classrun import ClassReport, StudentRow, chosen
from edl_labs.course.grade.gradebook import own_programs, quiet
from edl_labs.course.grade.nbgrader_assignments import notebook_names
from edl_labs.course.grade.student_names import check_folder, plain_name
from edl_labs.course.grade.submission import Unreadable, parse, read_bytes
from edl_labs.course.grade.submitted_folder import read_modules
from edl_labs.course.sandbox import best_level
from edl_labs.errors import EdlError, NothingToDo, UsageError

_OURS = "edl_labs.course.grade.preprocessors"


def grade_nbgraders(
    course: Course,
    name: str,
    *,
    only: Sequence[str] = (),
    progress: Callable[[int, int, str], None] | None = None,
) -> ClassReport:
    """Grade everyone by nbgrader's rules; marks given by hand stay, as nbgrader has it.

    UsageError where the course's nbgrader_config.py would run students' code outside the sandbox.
    """
    if not any(str(step).startswith(_OURS) for step in course.config.Autograde.get("autograde_preprocessors", ())):
        why = f"{name} has no exercises of edl_labs, and this folder's nbgrader_config.py does not call edl_labs"
        then = f"run nbgrader autograde {name}, or use a folder created by `edl-labs course`"
        raise UsageError("this is not a course of edl_labs", why=why, next=then)
    students, began_s = chosen(course.students(name), only), time.monotonic()
    if not students:
        why = f"no submission matches {', '.join(only)}" if only else f"no student has submitted {name}"
        then = (
            "leave out --only to grade everyone"
            if only
            else f"run edl-labs collect {name} or nbgrader collect {name} first"
        )
        raise NothingToDo("there is nothing to grade", why=why, next=then)
    rows = []
    for number, student in enumerate(students, start=1):
        rows.append(_graded(course, name, student))
        if progress is not None:
            progress(number, len(students), student)
    return ClassReport(name, best_level().value, 0, 1, time.monotonic() - began_s, _with_points(course, name, rows))


def _graded(course: Course, name: str, student: str) -> StudentRow:
    try:
        check_folder(student)
        _read_all(course, name, student)
        _autograde(course, name, student)
    except Unreadable as problem:
        remark = ": ".join(filter(None, (problem.what, problem.why)))
        return StudentRow(plain_name(student), "unreadable", remarks=(remark,))
    except EdlError as error:
        return StudentRow(plain_name(student), "failed", remarks=(str(error),))
    return StudentRow(student, "graded", flags=("trusting",))


def _read_all(course: Course, name: str, student: str) -> None:
    """Unreadable where a notebook of the assignment is missing, or is none, or a Python file beside it is too large."""
    folder = course.path("submitted", student=student, assignment=name)
    for notebook in notebook_names(course, name):
        path = folder / f"{notebook}.ipynb"
        if not path.exists():
            raise Unreadable(
                f"there is no {path.name}",
                why="the assignment has a notebook with this name, so a submission must contain it",
            )
        parse(read_bytes(path, most=course.limits.submission_bytes), limits=course.limits)
    read_modules(folder, limits=course.limits)


def _autograde(course: Course, name: str, student: str) -> None:
    """What `nbgrader autograde NAME --student STUDENT --force` does."""
    from nbgrader.converters import Autograde
    from nbgrader.coursedir import CourseDirectory

    config = copy.deepcopy(course.config)
    config.CourseDirectory.root = str(course.root)
    config.CourseDirectory.db_url = course.db_url
    config.CourseDirectory.assignment_id, config.CourseDirectory.student_id = name, student
    config.Autograde.force = True
    with own_programs(), quiet(), _heard() as errors:
        try:
            Autograde(coursedir=CourseDirectory(config=config), config=config).start()
        except (Exception, SystemExit) as error:
            why = _reason(errors or [str(error)])
            then = f"run nbgrader generate_assignment {name} if you have not done so yet, then grade again"
            raise EdlError(f"nbgrader could not grade {student}", why=why[:300], next=then) from None


@contextmanager
def _heard() -> Iterator[list[str]]:
    """The errors that nbgrader logs; nothing of its log is printed."""
    found: list[str] = []
    logger, handler = logging.getLogger("traitlets"), logging.Handler(logging.ERROR)
    handler.emit = lambda record: found.append(record.getMessage())  # type: ignore[method-assign]
    before, logger.handlers = logger.handlers[:], [handler]
    propagate, logger.propagate = logger.propagate, False
    try:
        yield found
    finally:
        logger.handlers, logger.propagate = before, propagate


def _reason(errors: Sequence[str]) -> str:
    """The exception that ended it, else the first line of what was logged first."""
    traceback = next((text for text in errors if text.startswith("Traceback")), "")
    return traceback.strip().split("\n")[-1] or errors[0].strip().split("\n")[0]


def _with_points(course: Course, name: str, rows: list[StudentRow]) -> tuple[StudentRow, ...]:
    with own_programs(), quiet():
        from nbgrader.api import Gradebook

        with Gradebook(course.db_url, course.course_id or "default_course") as book:
            return tuple(_row(book, name, row) if row.state == "graded" else row for row in rows)


def _row(book: Any, name: str, row: StudentRow) -> StudentRow:
    found = book.find_submission(name, row.student)
    late = ("late",) if found.total_seconds_late > 0 else ()
    return replace(row, points=float(found.score), max_points=float(found.max_score), flags=(*row.flags, *late))
