"""What nbgrader loads by name: the late policy of course.toml, and an exporter of marks.

`c.AssignLatePenalties.plugin_class = "edl_labs.course.marks.nbgrader_plugins.CourseLatePolicy"`, and
`nbgrader export --exporter=edl_labs.course.marks.nbgrader_plugins.MarksExporter`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nbgrader.plugins import ExportPlugin, LateSubmissionPlugin
from traitlets.config import Config

from edl_labs.course.course_folder import CourseFolder
from edl_labs.course.grade.files import write_atomically
from edl_labs.course.marks.lms.folder import plain_table
from edl_labs.course.marks.student_marks import class_marks
from edl_labs.course.policy import read_policy


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
        course = CourseFolder(Path(str(Config(self.config).CourseDirectory.get("root", "") or Path.cwd())))
        to = Path(self.to or "marks.csv")
        wanted = {str(student) for student in self.student}
        for name in names:
            marks = [m for m in class_marks(course, name) if not wanted or m.student in wanted]
            path = to if len(names) == 1 else to.with_name(f"{to.stem}_{name}{to.suffix}")
            write_atomically(path, plain_table(marks, name))
            self.log.info("wrote the marks of %s students in %s to %s", len(marks), name, path)
