"""An exporter for `nbgrader export --exporter=edl_labs.course.marks.exporter.MarksExporter`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nbgrader.plugins import ExportPlugin
from traitlets.config import Config

from edl_labs.course.grade.course_folder import CourseFolder
from edl_labs.course.grade.files import write_atomically
from edl_labs.course.marks.book import class_marks
from edl_labs.course.marks.export import plain_table


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
