"""Students' pages for an assignment that nbgrader's rules graded: the points, and the released tests."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path

from edl_labs.course.course_folder import Course
from edl_labs.course.grade.files import add_exchange_files, write_atomically
from edl_labs.course.grade.nbgrader_assignments import as_released, notebook_names
from edl_labs.course.marks.feedback import FeedbackReport, pack, page_of, shown_path
from edl_labs.course.marks.student_marks import ExerciseMark, StudentMarks, class_marks

_DIGITS = 2  # of points, as in the pages of `nbgrader generate_feedback`


def nbgraders_feedback(
    assignment: str,
    *,
    course: Course | None = None,
    only: Sequence[str] = (),
    archive: Path | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> FeedbackReport:
    """A page for each student of an assignment without exercises of edl_labs: points, and the tests as released."""
    import nbformat

    course = course or Course.find_class()
    everyone = [marks for marks in class_marks(course, assignment) if not only or marks.student in only]
    pages: dict[str, Path] = {}
    without: dict[str, str] = {}
    for number, marks in enumerate(everyone, start=1):
        folder = course.path("autograded", student=marks.student, assignment=assignment)
        shown = nbformat.v4.new_notebook()
        try:
            for name in notebook_names(course, assignment):
                graded = nbformat.read(folder / f"{name}.ipynb", as_version=4)
                shown.cells += as_released(course, assignment, name, graded).cells
            answers = {
                c.metadata.nbgrader.grade_id for c in shown.cells if c.metadata.get("nbgrader", {}).get("solution")
            }
            states = {mark.exercise: {"state": _state(mark, answers)} for mark in marks.marks}
            page = page_of(_rounded(marks), shown, assignment=assignment, order=list(states), outcomes=states)
        except (OSError, ValueError, KeyError) as error:
            without[marks.student] = f"its graded notebook cannot be read: {error}"
            continue
        path = course.path("feedback", student=marks.student, assignment=assignment) / f"{assignment}.html"
        write_atomically(path, page.encode("utf-8"))
        add_exchange_files(path.parent)
        pages[marks.student] = path
        if progress is not None:
            progress(number, len(everyone), marks.student)
    if archive is not None:
        pack(archive, pages, course, assignment)
    waiting = tuple(m.student for m in everyone if m.waiting)
    shown_paths = {student: shown_path(path, course.root) for student, path in pages.items()}
    return FeedbackReport(assignment, shown_paths, without, waiting, str(archive or ""))


def _rounded(marks: StudentMarks) -> StudentMarks:
    """The marks as nbgrader's own pages show them: more digits of partial credit could carry letters of a hidden test.

    >>> _rounded(StudentMarks("ann", "", "", "", (ExerciseMark("a", 0.123456, 1.0),), 0.123456, 1.0)).points
    0.12
    """
    rounded = tuple(replace(mark, points=round(mark.points, _DIGITS)) for mark in marks.marks)
    return replace(marks, marks=rounded, points=round(marks.points, _DIGITS), penalty=round(marks.penalty, _DIGITS))


def _state(mark: ExerciseMark, answers: Collection[str]) -> str:
    """What nbgrader's own mark says; one that a person gave or has to give is not read from here."""
    if not mark.points:
        return "not attempted" if mark.exercise.rpartition("/")[2] in answers else "wrong"
    return "passed" if mark.points >= mark.max_points else "partly"
