"""Facts about each collected notebook, stored next to it: its file, its time, and its owner in the learning system."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from edl_labs.course.course_folder import Course
from edl_labs.course.grade.files import write_atomically


@dataclass(frozen=True)
class HandIn:
    """One student's notebook. `user` is their number in the learning system, `prefix` what feedback goes back under."""

    sha256: str
    submitted: str = ""
    number: int = 0
    prefix: str = ""
    user: str = ""

    def newer_than(self, other: HandIn) -> bool:
        """Whether it was handed in after another one, by the clock or else by the number of the upload."""
        if self.sha256 == other.sha256:
            return False
        if self.submitted and other.submitted:
            return self.submitted > other.submitted
        return bool(self.number and other.number and self.number > other.number)


def collected_folder(course: Course, assignment: str) -> Path:
    """Where notes on an assignment's notebooks are kept, and the notebooks that newer ones replaced."""
    return course.grading(assignment).parent.parent / "collected" / assignment


def write_hand_in(course: Course, assignment: str, student: str, known: HandIn) -> None:
    """Keep what is known of a student's notebook."""
    text = json.dumps(asdict(known), sort_keys=True)
    write_atomically(collected_folder(course, assignment) / f"{student}.json", text.encode())


def read_hand_in(course: Course, assignment: str, student: str) -> HandIn | None:
    """What is known of a student's notebook; None when nothing was collected, or the note cannot be read."""
    return _read(collected_folder(course, assignment) / f"{student}.json")


def hand_ins(course: Course, assignment: str) -> dict[str, HandIn]:
    """What is known of everyone's notebooks, by student."""
    found = ((path.stem, _read(path)) for path in sorted(collected_folder(course, assignment).glob("*.json")))
    return {student: known for student, known in found if known is not None}


def _read(path: Path) -> HandIn | None:
    try:
        return HandIn(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
