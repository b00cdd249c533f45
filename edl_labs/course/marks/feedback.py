"""A student's feedback: one self-contained HTML file, with the summary first, readable in light and dark."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from edl_labs.checks.score import MIME
from edl_labs.course.assignment import Assignment
from edl_labs.course.course_folder import Course
from edl_labs.course.grade.files import add_exchange_files, copy_exchange_files, write_atomically
from edl_labs.course.grade.other_lab import refuse_other_lab
from edl_labs.course.grade.student_names import check_folder, plain_name
from edl_labs.course.grade.submission import Unreadable
from edl_labs.course.grade.submitted_folder import read_submission
from edl_labs.course.grade.without_scripts import (
    outputs_without_scripts,
    pictures_without_scripts,
    prose_without_scripts,
)
from edl_labs.course.marks.hand_ins import hand_ins
from edl_labs.course.marks.marking_notes import marking_notes
from edl_labs.course.marks.student_marks import ExerciseMark, StudentMarks, class_marks, full_names
from edl_labs.course.pages.notebook_page import notebook_html
from edl_labs.course.pages.shell import render
from edl_labs.errors import NothingToDo, UsageError
from edl_labs.units import counted
from edl_labs.values import Value

_OURS = re.compile(r"edl_labs[/\\]|site-packages[/\\]edl_labs")
_ZIP_TIME = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip can say: the same pages give the same bytes
_NO_RUBRICS: Mapping[str, Sequence[str]] = MappingProxyType({})
_HAND_IN_AGAIN = (
    "Open your own notebook of this lab in JupyterLab, run all cells, save it, and hand in that file. "
    "If that does not help, write to your instructor."
)
_SIGNS = {"passed": "✓", "partly": "◐", "wrong": "✗", "not attempted": "○", "marked": "✎", "waiting": "…"}


@dataclass(frozen=True, repr=False)
class FeedbackReport(Value):
    """What was written: the pages by student, why others have none, and the archive if one was requested."""

    DERIVED = ("exit_code",)

    assignment: str
    pages: Mapping[str, str]
    without: Mapping[str, str] = field(default_factory=dict)
    waiting: tuple[str, ...] = ()
    """Students with unmarked written answers; their pages say so."""
    archive: str = ""

    @property
    def exit_code(self) -> int:
        """0 everyone has a page; 1 someone has none."""
        return 1 if self.without else 0


def feedback(
    assignment: str,
    *,
    course: Course | None = None,
    only: Sequence[str] = (),
    archive: Path | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> FeedbackReport:
    """Write a page for each student with marks; `archive` is a zip of them as the learning system takes it back."""
    course = course or Course.find_class()
    known = course.assignment(assignment)
    titles = [cell.exercise for cell in known.cells if cell.role in ("check", "answer")]
    unread = {who: why for who, why in unread_submissions(course, known).items() if not only or who in only}
    everyone = [marks for marks in _marks(course, assignment, unread) if not only or marks.student in only]
    rubrics = {name: notes.rubric for name, notes in marking_notes(course, assignment).items()}
    pages: dict[str, Path] = {}
    without: dict[str, str] = {}
    for number, marks in enumerate(everyone, start=1):
        graded = course.path("autograded", student=marks.student, assignment=assignment) / f"{assignment}.ipynb"
        try:
            page = page_of(
                marks,
                _read(graded),
                assignment=assignment,
                order=titles,
                rubrics=rubrics,
                problem=_told_of(unread.get(marks.student)),
            )
        except (OSError, ValueError, KeyError) as error:
            without[marks.student] = f"{graded.name} cannot be read: {error}"
            continue
        path = course.path("feedback", student=marks.student, assignment=assignment) / f"{assignment}.html"
        write_atomically(path, page.encode("utf-8"))
        copy_exchange_files(graded.parent, path.parent)
        add_exchange_files(path.parent)
        pages[marks.student] = path
        if progress is not None:
            progress(number, len(everyone), marks.student)
    names = full_names(course) if unread else {}
    for student in unread.keys() - {marks.student for marks in everyone}:
        page = unread_page(assignment, names.get(student, student), unread[student])
        pages[student] = course.path("feedback", student=student, assignment=assignment) / f"{assignment}.html"
        write_atomically(pages[student], page.encode("utf-8", "replace"))
        add_exchange_files(pages[student].parent)
    if archive is not None:
        pack(archive, pages, course, assignment)
    shown = {student: shown_path(path, course.root) for student, path in pages.items()}
    waiting = tuple(m.student for m in everyone if m.waiting)
    return FeedbackReport(assignment, shown, without, waiting, str(archive or ""))


def page_of(
    marks: StudentMarks,
    notebook: Any,
    *,
    assignment: str,
    order: Sequence[str],
    rubrics: Mapping[str, Sequence[str]] = _NO_RUBRICS,
    problem: str = "",
    outcomes: Mapping[str, dict[str, Any]] | None = None,
) -> str:
    """One student's page: the sum, a line for each exercise, what to do next, and the notebook as it was graded.

    Prose that a person has marked comes with its rubric; `problem` says why a later hand-in could not be graded.
    Nothing in it runs, loads anything, or tells a secret case.
    """
    outcomes = _outcomes(notebook) if outcomes is None else outcomes
    by_name = {mark.exercise: mark for mark in marks.marks}
    exercises = [_Told(by_name[n], outcomes.get(n, {}), rubrics.get(n, ())) for n in order if n in by_name]
    body = notebook_html(_harmless(notebook), folder=Path("."))
    about = {"marks": marks, "exercises": exercises, "late": _duration(marks.late_s), "problem": problem}
    return render("feedback.html", assignment=assignment, body=body, **about)


def unread_submissions(course: Course, known: Assignment) -> dict[str, Unreadable]:
    """Who handed in what cannot be graded, and why."""
    found = {}
    for student in course.students(known.name):
        folder = course.path("submitted", student=student, assignment=known.name)
        try:
            check_folder(student)
            refuse_other_lab(known, read_submission(folder, known.name, limits=course.limits))
        except Unreadable as problem:
            found[plain_name(student)] = problem
    return found


def unread_page(assignment: str, name: str, problem: Unreadable) -> str:
    """The page of a student whose file could not be graded: what, why, and what to do now."""
    words = (("What", problem.what), ("Why", problem.why), ("Next", _HAND_IN_AGAIN))
    return render("unread.html", assignment=assignment, name=name, words=words)


def _told_of(problem: Unreadable | None) -> str:
    return "" if problem is None else ": ".join(filter(None, (problem.what, problem.why)))


def _marks(course: Course, assignment: str, unread: Mapping[str, Unreadable]) -> tuple[StudentMarks, ...]:
    """Everyone's marks; none, and no error, where all that came in cannot be graded."""
    try:
        return class_marks(course, assignment)
    except (NothingToDo, UsageError):
        if not unread:
            raise
        return ()


@dataclass(frozen=True)
class _Told:
    """What a page tells of one exercise."""

    mark: ExerciseMark
    outcome: dict[str, Any]
    all_of_rubric: Sequence[str] = ()

    @property
    def rubric(self) -> Sequence[str]:
        """What the points are for, once a person has given them: who left the answer empty is not shown it."""
        return self.all_of_rubric if self.state == "marked" and self.mark.by_hand else ()

    @property
    def state(self) -> str:
        return _state(self.mark, self.outcome)

    @property
    def sign(self) -> str:
        return _SIGNS[self.state]

    @property
    def words(self) -> list[tuple[str, str]]:
        if self.state in ("passed", "marked", "waiting"):
            return []
        told = ((word.capitalize(), str(self.outcome.get(word, ""))) for word in ("what", "why", "next"))
        return [(word, text) for word, text in told if text]

    @property
    def is_overruled(self) -> bool:
        return self.mark.by_hand and bool(self.outcome)

    @property
    def is_told(self) -> bool:
        return self.state != "passed" or self.is_overruled or bool(self.mark.comment)


def _state(mark: ExerciseMark, outcome: dict[str, Any]) -> str:
    if mark.waiting:
        return "waiting"
    state = str(outcome.get("state", ""))
    if mark.by_hand:
        return "marked"
    return state if state in _SIGNS else "not attempted"


def _outcomes(notebook: Any) -> dict[str, dict[str, Any]]:
    """What the judge said in the check cells, without anything about secret cases."""
    found: dict[str, dict[str, Any]] = {}
    for cell in notebook.cells:
        if not cell.metadata.get("nbgrader", {}).get("grade") or cell.cell_type != "code":
            continue
        for output in cell.get("outputs", ()):
            value = output.get("data", {}).get(MIME)
            if isinstance(value, dict) and "name" in value:
                found[str(value["name"])] = value
    return found


def _harmless(notebook: Any) -> Any:
    """The notebook without what a browser would run, and without frames of the library in tracebacks."""
    from nbformat import from_dict

    for cell in notebook.cells:
        if cell.cell_type != "code":
            pictures = pictures_without_scripts(cell.pop("attachments", None))
            cell.source = prose_without_scripts(cell.source, pictures)
            if pictures:
                cell.attachments = from_dict(pictures)
            continue
        cell.outputs = [_without_frames(output) for output in outputs_without_scripts(cell.get("outputs", ()))]
    return notebook


def _without_frames(output: Any) -> Any:
    from nbformat import from_dict

    if output.get("output_type") == "error":
        lines = [line for line in output.get("traceback", ()) if not _OURS.search(str(line))]
        return from_dict({**output, "traceback": lines or [f"{output.get('ename')}: {output.get('evalue')}"]})
    return from_dict(output)


def _read(path: Path) -> Any:
    from nbformat import from_dict

    return from_dict(json.loads(path.read_text(encoding="utf-8")))


def pack(archive: Path, pages: dict[str, Path], course: Course, assignment: str) -> None:
    """Pack pages, by student, under the names that the learning system wants back; UsageError for another suffix."""
    if archive.suffix.lower() != ".zip":
        raise UsageError(f"{archive.name} does not end in .zip", next="use a name such as feedback.zip")
    known, data = hand_ins(course, assignment), io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as packed:
        for student, path in pages.items():
            prefix = known[student].prefix if student in known else ""
            name = f"{prefix}{assignment}_feedback.html" if prefix else f"{student}/{assignment}_feedback.html"
            packed.writestr(zipfile.ZipInfo(name, _ZIP_TIME), path.read_bytes(), zipfile.ZIP_DEFLATED)
    write_atomically(archive, data.getvalue())


def _duration(seconds: float) -> str:
    """A time span as people say it."""
    for size, unit in ((86_400.0, "day"), (3_600.0, "hour"), (60.0, "minute")):
        if seconds >= size:
            return counted(round(seconds / size, 1), unit)
    return "less than a minute"


def shown_path(path: Path, root: Path) -> str:
    """A path as reports show it: inside the course, from its folder."""
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
