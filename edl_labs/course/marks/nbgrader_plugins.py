"""What nbgrader loads by name: the late policy of course.toml, an exporter of marks, what graders read, and feedback.

Names in its pages are escaped here, tables get borders, and releases get the stamp of `edl-labs build`.

`c.AssignLatePenalties.plugin_class = "edl_labs.course.marks.nbgrader_plugins.CourseLatePolicy"`, and
`nbgrader export --exporter=edl_labs.course.marks.nbgrader_plugins.MarksExporter`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from nbconvert.preprocessors import Preprocessor
from nbgrader.plugins import ExportPlugin, LateSubmissionPlugin
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Bool
from traitlets.config import Config

from edl_labs.course.course_folder import Course
from edl_labs.course.grade.files import add_exchange_files, write_atomically
from edl_labs.course.grade.nbgrader_assignments import as_released, is_nbgraders
from edl_labs.course.grade.student_names import plain_name
from edl_labs.course.marks.lms.folder import plain_table
from edl_labs.course.marks.marking_notes import (
    MarkingNotes,
    comments_by_line,
    marking_notes,
    saved_comments,
    spelt_out,
)
from edl_labs.course.marks.student_marks import class_marks
from edl_labs.course.policy import read_policy
from edl_labs.errors import UsageError

_TABLES = """\
<style>
.rendered_html table { border-collapse: collapse; margin: .75em 0; }
.rendered_html th, .rendered_html td { border: 1px solid #bbb; padding: .3em .75em; }
</style>"""
_NAMES = ("student", "first_name", "last_name", "notebook_path", "filename")


class EscapedNames(Preprocessor):
    """For nbgrader's HTMLExporter: names of students and their folders are text in formgrader, always."""

    enabled = Bool(True).tag(config=True)

    def preprocess(self, nb: Any, resources: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The notebook as it is, its names escaped for HTML."""
        escaped = {key: escape(plain_name(resources[key])) for key in _NAMES if isinstance(resources.get(key), str)}
        resources.update(escaped)
        return nb, resources


class TableBorders(Preprocessor):
    """For nbgrader's HTMLExporter: tables of prose have borders and padding, which its pages leave out.

    The style sheet is a cell of the page: nbconvert's templates set the page's own list of sheets after this.
    """

    enabled = Bool(True).tag(config=True)

    def preprocess(self, nb: Any, resources: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The notebook as it is shown; the file stays as it was."""
        from nbformat.v4 import new_markdown_cell

        nb.cells = [new_markdown_cell(_TABLES, id="table-borders"), *nb.cells]
        return nb, resources


class ReleaseStamp(NbGraderPreprocessor):
    """For `nbgrader generate_assignment`: the metadata that `edl-labs build` gives a release, and no hidden picture."""

    def preprocess(self, nb: Any, resources: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The released notebook with its digest, if a lab made it; without pictures that only a solution showed."""
        from nbformat import from_dict, writes

        from edl_labs.course.lab.source_notebook import stamped

        for cell in nb.cells:
            if pictures := cell.get("attachments"):
                shown = {name: one for name, one in pictures.items() if f"attachment:{name}" in cell.source}
                cell.attachments = from_dict(shown)
        if "edl_labs" in nb.metadata:
            nb.metadata = from_dict(stamped(json.loads(writes(nb)))["metadata"])
        return nb, resources


class CourseLatePolicy(LateSubmissionPlugin):
    """nbgrader's late-submission plugin with the rules of course.toml; without that file, nbgrader's own."""

    def late_submission_penalty(self, student_id: str, score: float, total_seconds_late: float) -> float | None:
        """The points lost, None for none."""
        root = Path(str(self.config.CourseDirectory.get("root", "") or Path.cwd()))
        if not (root / "course.toml").is_file():
            found = super().late_submission_penalty(student_id, score, total_seconds_late)
            return None if found is None else float(found)
        return read_policy(root).late.penalty(score, late_s=total_seconds_late) or None


class MarksExporter(ExportPlugin):
    """A table with a column for each exercise; names with commas stay whole, and no cell computes."""

    def export(self, gradebook: Any) -> None:
        """Write one file for each assignment: `marks.csv`, or what `--to` says (with the lab's name when several)."""
        names = [str(name) for name in self.assignment] or [a.name for a in gradebook.assignments]
        course = Course(Path(str(Config(self.config).CourseDirectory.get("root", "") or Path.cwd())))
        to = Path(self.to or "marks.csv")
        wanted = {str(student) for student in self.student}
        for name in names:
            marks = [m for m in class_marks(course, name) if not wanted or m.student in wanted]
            path = to if len(names) == 1 else to.with_name(f"{to.stem}_{name}{to.suffix}")
            write_atomically(path, plain_table(marks, name))
            self.log.info("wrote the marks of %s students in %s to %s", len(marks), name, path)


class ReadyForRelease(NbGraderPreprocessor):
    """For `nbgrader generate_feedback`: saved comments spelt out, and what `nbgrader release_feedback` needs with it.

    Of an assignment without exercises of edl_labs, no hidden test and no output of the run is shown.

    Work that came through a learning system has no secret of nbgrader's exchange; `release_feedback` would crash on it.
    """

    def preprocess(self, nb: Any, resources: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The graded notebook with its comments as students read them."""
        course = Course.around(self.parent.parent.coursedir, self.config)
        saved = saved_comments(course.root)
        for cell in nb.cells:
            about = cell.metadata.get("nbgrader", {})
            if about.get("comment"):
                about["comment"] = spelt_out(about["comment"], saved.get(about["grade_id"], {}))
        where = resources["nbgrader"]
        if is_nbgraders(course, where["assignment"]):
            nb = as_released(course, where["assignment"], where["notebook"], nb)
        add_exchange_files(course.path("feedback", student=where["student"], assignment=where["assignment"]))
        return nb, resources


class NotesForGraders(Preprocessor):
    """For nbgrader's HTMLExporter: in formgrader, a cell with the marking notes above each answer in prose.

    Only formgrader names a submission by its id; in every other page of the same exporter nothing is added.
    """

    enabled = Bool(True).tag(config=True)

    def preprocess(self, nb: Any, resources: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The notebook as it is shown; the file stays as it was."""
        if "submission_id" not in resources:
            return nb, resources
        course = self._course()
        notes = marking_notes(course, str(resources["assignment_id"]))
        saved, problem = {}, ""
        try:
            saved = saved_comments(course.root)
        except UsageError as error:
            problem = f"{error.what}: {error.why}"
        cells = []
        for cell in nb.cells:
            name = cell.metadata.get("nbgrader", {}).get("grade_id", "")
            if cell.cell_type == "markdown" and name in notes:
                cells.append(_cell_for_graders(name, notes[name], saved.get(name, {}), problem))
            cells.append(cell)
        nb.cells = cells
        return nb, resources

    def _course(self) -> Course:
        from nbgrader.coursedir import CourseDirectory

        return Course.around(CourseDirectory(config=self.config), self.config)


def _cell_for_graders(name: str, notes: MarkingNotes, saved: Mapping[str, str], problem: str) -> Any:
    from nbformat.v4 import new_markdown_cell

    parts = ["**For graders only: students do not see this.**", notes.model_answer]
    by_line, others = comments_by_line(saved, len(notes.rubric))
    if notes.rubric:
        lines = [
            f"{number}. {line}\n{_listed(by_line[number - 1])}" for number, line in enumerate(notes.rubric, start=1)
        ]
        parts.append("\n".join(["Rubric:", "", *(line.rstrip() for line in lines)]))
    if others:
        parts.append("\n".join(["For the whole answer:", "", *(f"* `@{key}` {said}" for key, said in others.items())]))
    if saved:
        parts.append("In the comment box, type `@` and a key to insert its sentence.")
    quoted = "\n\n".join([*parts, *([problem] if problem else [])]).split("\n")
    return new_markdown_cell("\n".join(f"> {line}".rstrip() for line in quoted), id=f"for-graders-{name}"[:64])


def _listed(comments: Mapping[str, str]) -> str:
    """Saved comments below the line that they belong to."""
    return "\n".join(f"    * `@{key}` {said}" for key, said in comments.items())
