"""Learning systems that labs are handed in through, one module each: a new one is a module here and its name below.

`register` takes one from outside: anything with the names of `LearningSystem` will do.
"""

from __future__ import annotations

from edl_labs.course.marks.lms import canvas, folder, moodle
from edl_labs.course.marks.lms.learning_system import LearningSystem
from edl_labs.course.marks.tables import Table
from edl_labs.errors import UsageError

SYSTEMS: list[LearningSystem] = [canvas, moodle, folder]


def register(system: LearningSystem) -> None:
    """Let `collect` and `export` know one more system. It is asked before the others whose class list a table is."""
    SYSTEMS.insert(0, system)


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
