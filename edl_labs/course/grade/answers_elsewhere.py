"""The text of an empty answer if other files were submitted: a person reads it, so it is not graded as 0."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from edl_labs.course.assignment import Assignment
from edl_labs.course.grade.submission import OtherFile

_MOST_NAMED = 5  # files in a line that people read
_MOST_LETTERS = 20_000  # of a text that is shown: ten pages
_IN_PROSE = ("markdown", "raw")


@dataclass(frozen=True)
class Elsewhere:
    """The new text of an empty answer's cell, with its pictures, and the remark on it."""

    source: str
    remark: str
    attachments: Mapping[str, dict[str, str]] | None = None


@dataclass(frozen=True)
class Copied:
    """An answer that another copy of the lab has."""

    name: str
    source: str
    attachments: Mapping[str, dict[str, str]] | None = None


def is_copy(assignment: Assignment, other: OtherFile) -> bool:
    """Whether a notebook is the same lab: it has a cell by which nbgrader grades, by id or by a locked text."""
    if other.lab not in ("", assignment.name):
        return False
    graded = [cell for cell in assignment.cells if cell.role]
    ids = {name for cell in graded for name in (cell.id, cell.grade_id)} - {""}
    locked = [cell for cell in graded if cell.role in ("check", "locked")]
    return any({c.id, c.grade_id} & ids or any(known.is_released(c.source) for known in locked) for c in other.cells)


def not_released(assignment: Assignment, others: Iterable[OtherFile]) -> list[OtherFile]:
    """The files without those that the release has next to its notebook."""
    released = {name.rpartition("/")[2] for name in assignment.files}
    return [other for other in others if other.name.rpartition("/")[2] not in released]


def may_answer(assignment: Assignment, other: OtherFile) -> bool:
    """Whether an answer may be in a file: not in the notebook of another lab, as a whole folder holds them."""
    return other.lab in ("", assignment.name)


def elsewhere(exercise: str, copied: Sequence[Copied], others: Sequence[OtherFile]) -> Elsewhere:
    """What an empty answer to `exercise` says: what copies of the lab have there, and which other files came along."""
    parts = [f"*From {one.name}, which was submitted with this notebook:*\n\n{one.source}" for one in copied]
    pictures = dict(chain.from_iterable((one.attachments or {}).items() for one in copied))
    if others:
        start = "*Also submitted" if copied else "*This answer was left empty. Submitted with this notebook"
        named = (f"{other.name} ({other.size_bytes:,} bytes)" for other in others)
        parts.append(f"{start}: {_listed(named)}.*")
        parts += [f"*The content of {other.name}:*\n\n{said}" for other in others if (said := _said(other))]
    remark = (
        f"the answer to {exercise} was empty, and was copied from {_listed(one.name for one in copied)}"
        if copied
        else f"the answer to {exercise} is empty, but may be in {_listed(other.name for other in others)}"
    )
    return Elsewhere("\n\n".join(parts), f"{remark}: a person must mark it", pictures or None)


def unused(others: Collection[OtherFile]) -> str:
    """A remark on the files that nothing reads."""
    return f"files that were not used: {_listed(other.name for other in others)}"


def _said(other: OtherFile) -> str:
    """The prose of a file, as far as it has any."""
    text = other.text or "\n\n".join(cell.source for cell in other.cells if cell.kind in _IN_PROSE)
    return text if len(text) <= _MOST_LETTERS else f"{text[:_MOST_LETTERS]}\n\n*… the rest is left out.*"


def _listed(names: Iterable[str]) -> str:
    found = [*names]
    more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
    return f"{', '.join(found[:_MOST_NAMED])}{more}"
