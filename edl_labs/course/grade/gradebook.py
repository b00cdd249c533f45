"""The only writer of nbgrader's gradebook: a result is entered completely, and entering it again changes nothing."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from edl_labs.course.assignment import CHECK_PREFIX, Assignment
from edl_labs.course.course_folder import Course
from edl_labs.course.grade.files import write_atomically
from edl_labs.course.grade.result import Result
from edl_labs.course.policy import CoursePolicy, enter_dates, enter_extension, read_policy
from edl_labs.errors import EdlError

MAX_TIMESTAMP_BYTES = 200  # a date with its zone takes 40


class Writer:
    """Writes results of one assignment; use it in a `with`, in one thread."""

    def __init__(self, course: Course, assignment: Assignment) -> None:
        self.course, self.assignment = course, assignment
        self._ledger = _ledger(course, assignment.name)
        self._policy = read_policy(course.root)

    def __enter__(self) -> Writer:
        with own_programs(), quiet():
            from nbgrader.api import Gradebook

            self._gradebook = Gradebook(self.course.db_url, self.course.course_id or "default_course")
        self._ensure_assignment()
        enter_dates(self._gradebook, self._policy, self.assignment.name)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._gradebook.close()

    def merge(self, student: str, result: Result, *, timestamp: datetime | None) -> float:
        """Put a student's marks into the gradebook; how many seconds late it is, 0 within the grace period."""
        with quiet():
            return self._merge(student, result, timestamp)

    def roll_back(self) -> None:
        """Forget what a failed merge left half done."""
        self._gradebook.db.rollback()

    def total(self, student: str) -> tuple[float, float]:
        """A student's points and the points there are, marks given by hand included."""
        notebook = self._gradebook.find_submission_notebook(self.assignment.name, self.assignment.name, student)
        return float(notebook.score), float(notebook.max_score)

    def _merge(self, student: str, result: Result, timestamp: datetime | None) -> float:
        book, name = self._gradebook, self.assignment.name
        book.update_or_create_student(student)
        known = {"timestamp": timestamp} if timestamp else {}
        submission = book.update_or_create_submission(name, student, **known)
        notebook = next(n for n in submission.notebooks if n.name == name)
        before = prose_answers(self.course, name, student)
        for grade in notebook.grades:
            self._set_grade(grade, result, before)
        for comment in notebook.comments:
            comment.auto_comment = "No response." if comment.name in result.untouched else None
        settle_penalties(self.course, book, self._policy, [submission])
        book.db.commit()
        write_atomically(self._ledger / f"{student}.json", json.dumps(dict(result.answers)).encode())
        late_s = float(submission.total_seconds_late)
        return late_s if late_s > self._policy.late.grace_s else 0.0

    def _set_grade(self, grade: Any, result: Result, before: dict[str, str]) -> None:
        """The judge's mark; for prose, whether a person has to look: a mark stands until the prose changes."""
        exercise = grade.name.removeprefix(CHECK_PREFIX)
        if exercise in result.points:
            grade.auto_score = result.points[exercise]
            grade.needs_manual_grade = grade.manual_score is not None and grade.needs_manual_grade
            return
        untouched = grade.name in result.untouched
        grade.auto_score = 0.0 if untouched else None
        if grade.manual_score is None:
            grade.needs_manual_grade = not untouched
        elif before.get(exercise) != dict(result.answers).get(exercise):
            grade.needs_manual_grade = True

    def _ensure_assignment(self) -> None:
        """Enter the assignment as `nbgrader generate_assignment` does, when the gradebook lacks it."""
        from nbgrader.api import MissingEntry

        wanted = {cell.grade_id: cell.points for cell in self.assignment.cells if cell.role in ("check", "answer")}
        name = self.assignment.name
        try:
            found = self._gradebook.find_notebook(name, name)
            if {cell.name: float(cell.max_score) for cell in found.grade_cells} == wanted:
                return
        except MissingEntry:
            pass
        try:
            self._enter()
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            next_step = f"run nbgrader generate_assignment {name} --force"
            raise EdlError(f"the gradebook and {name} disagree", why=why, next=next_step) from None

    def _enter(self) -> None:
        book, name = self._gradebook, self.assignment.name
        with quiet():
            book.update_or_create_assignment(name)
            kernelspec = json.dumps(self.assignment.notebook_metadata.get("kernelspec", {}))
            book.update_or_create_notebook(name, name, kernelspec=kernelspec)
            for cell in self.assignment.by_grade_id.values():
                if cell.role in ("check", "answer"):
                    graded = {"max_score": cell.points, "cell_type": cell.kind}
                    book.update_or_create_grade_cell(cell.grade_id, name, name, **graded)
                if cell.role in ("solve", "answer"):
                    book.update_or_create_solution_cell(cell.grade_id, name, name)
                meta = cell.metadata["nbgrader"]
                kept = {"cell_type": cell.kind, "locked": cell.role in ("check", "locked"), "source": cell.source}
                book.update_or_create_source_cell(cell.grade_id, name, name, checksum=meta.get("checksum"), **kept)


def _ledger(course: Course, assignment: str) -> Path:
    return course.grading(assignment) / "prose"


def prose_answers(course: Course, assignment: str, student: str) -> dict[str, str]:
    """The SHA-256 of each answer in prose that a student's marks are for, by exercise; empty where none is known."""
    try:
        return dict(json.loads((_ledger(course, assignment) / f"{student}.json").read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}


def settle_penalties(course: Course, book: Any, policy: CoursePolicy, submissions: Iterable[Any]) -> None:
    """Extensions and late penalties as nbgrader's AssignLatePenalties computes them, with the configured plugin."""
    from nbgrader.preprocessors import AssignLatePenalties

    step = AssignLatePenalties(config=course.config)
    step.init_plugin()
    for submission in submissions:
        enter_extension(submission, policy, submission.student_id)
        book.db.flush()
        late_s = submission.total_seconds_late
        for notebook in submission.notebooks:
            penalty = None
            if late_s > 0:
                penalty = step.plugin_inst.late_submission_penalty(submission.student_id, notebook.score, late_s)
            checked = None if penalty is None else step._check_late_penalty(notebook, penalty)
            if checked != notebook.late_submission_penalty:
                notebook.late_submission_penalty = checked
    book.db.flush()


def read_timestamp(folder: Path) -> tuple[datetime | None, str]:
    """When a submission was handed in, in UTC without zone as nbgrader keeps it, and what is wrong with its file."""
    path = folder / "timestamp.txt"
    try:
        if path.is_symlink() or not path.is_file():
            return None, "timestamp.txt is not a file" if path.is_symlink() or path.exists() else ""
        with path.open("rb") as file:
            text = file.read(MAX_TIMESTAMP_BYTES + 1)
        if len(text) > MAX_TIMESTAMP_BYTES:
            raise ValueError("too long")
        from nbgrader.utils import parse_utc

        found = parse_utc(text.decode("utf-8").strip())
        datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=None).__sub__(found)
        return found, ""
    except Exception:
        return None, "timestamp.txt does not contain a time"


@contextmanager
def quiet() -> Iterator[None]:
    """nbgrader's own use of SQLAlchemy warns at every new submission."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def own_programs() -> Iterator[None]:
    """nbgrader calls a bare `alembic`, so this environment's programs must be on PATH."""

    before = os.environ.get("PATH", os.defpath)
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{before}"
    try:
        yield
    finally:
        os.environ["PATH"] = before
