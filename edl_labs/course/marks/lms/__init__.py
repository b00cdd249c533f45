"""Learning systems, with one module each. To add one, write a module here and add its name below.

Where only the names of files differ, `collect --pattern` needs no module.
"""

from __future__ import annotations

from pathlib import Path

from edl_labs.course.marks.lms import canvas, folder, moodle, moodle_worksheet
from edl_labs.course.marks.lms.learning_system import LearningSystem
from edl_labs.course.marks.tables import Table, read_table
from edl_labs.errors import UsageError

SYSTEMS: tuple[LearningSystem, ...] = (canvas, moodle, folder)


def read_list(path: Path) -> Table:
    """The table of a class, of times or of marks in a CSV file, whichever language the learning system's site has."""
    return moodle_worksheet.in_english(read_table(path))


def collects_as(name: str) -> LearningSystem:
    """The system that `--from` calls `name`; UsageError, with those there are, for any other."""
    return _named(name, {system.COLLECTS_AS: system for system in SYSTEMS}, "source")


def exports_as(name: str) -> LearningSystem:
    """The system that `--to` calls `name`; UsageError, with those there are, for any other."""
    return _named(name, {system.EXPORTS_AS: system for system in SYSTEMS}, "destination")


def class_list_of(table: Table) -> LearningSystem:
    """The system that exports such a list of the class; the plain one, which says what is missing, when none does."""
    return next((system for system in SYSTEMS if system.has_class(table)), folder)


def _named(name: str, known: dict[str, LearningSystem], what: str) -> LearningSystem:
    if name not in known:
        raise UsageError(f"there is no {what} {name!r}", next=f"choose one of {', '.join(known)}")
    return known[name]
