"""Help for marking written answers, which only graders see: model answers, rubrics and reusable comments.

`feedback.toml`, next to course.toml, holds comments that many students get, by exercise:

    [why_square]
    1a = "You say that it is so; the question asks why."

`@1a` in a comment box of formgrader stands for that sentence in every page that a student gets. A key that begins with
the number of a line of the rubric belongs to that line, and stands below it.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from edl_labs.course.course_folder import Course
from edl_labs.course.lab.source_notebook import RUBRIC_HEAD
from edl_labs.errors import UsageError

FILE = "feedback.toml"
_KEY = re.compile(r"@([A-Za-z0-9_-]+)")
_MARKERS = re.compile(r"^\s*### (BEGIN|END) SOLUTION\s*$", re.MULTILINE)
SavedComments = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class MarkingNotes:
    """What the lab's author says of one exercise in prose: an answer worth full marks, and what each point is for."""

    model_answer: str
    rubric: tuple[str, ...] = ()


def marking_notes(course: Course, assignment: str) -> dict[str, MarkingNotes]:
    """The notes by exercise, from nbgrader's source notebook; none where there is no such notebook."""
    path = course.path("source", student=".", assignment=assignment) / f"{assignment}.ipynb"
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    except (OSError, ValueError, KeyError):
        return {}
    prose = [(c["metadata"].get("nbgrader", {}), "".join(c["source"])) for c in cells if c["cell_type"] == "markdown"]
    return {meta["grade_id"]: _notes(source) for meta, source in prose if meta.get("grade") and meta.get("solution")}


def _notes(source: str) -> MarkingNotes:
    answer, _, rubric = _MARKERS.sub("", source).partition(RUBRIC_HEAD)
    lines = [line.removeprefix("* ").strip() for line in rubric.split("\n")]
    return MarkingNotes(answer.strip(), tuple(line for line in lines if line))


def saved_comments(root: Path) -> dict[str, dict[str, str]]:
    """The comments of feedback.toml by exercise and key; UsageError, with the place, for what it cannot mean."""
    try:
        tables = tomllib.loads((root / FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{FILE} cannot be read", why=str(error), next="fix this line") from None
    for exercise, table in tables.items():
        if not isinstance(table, dict) or not all(isinstance(said, str) for said in table.values()):
            why = "the file needs a table for each exercise, with a key and a text for each comment"
            raise UsageError(
                f"{FILE}: {exercise} must be a table of texts", why=why, next='write 1a = "..." below [NAME]'
            )
    return tables


def comments_by_line(saved: Mapping[str, str], lines: int) -> tuple[tuple[dict[str, str], ...], dict[str, str]]:
    """The saved comments of each of a rubric's lines, and those of none: a key begins with its line's number.

    >>> comments_by_line({"2a": "How?", "1a": "Why?", "good": "Well argued.", "3a": "And?"}, 2)
    (({'1a': 'Why?'}, {'2a': 'How?'}), {'3a': 'And?', 'good': 'Well argued.'})
    """
    found: tuple[dict[str, str], ...] = tuple({} for _ in range(lines))
    others: dict[str, str] = {}
    for key, said in sorted(saved.items()):
        number = re.match(r"[0-9]+", key)
        line = int(number[0]) if number else 0
        (found[line - 1] if 1 <= line <= lines else others)[key] = said
    return found, others


def spelt_out(comment: str, saved: Mapping[str, str]) -> str:
    """The comment with the saved ones instead of their keys; what is no key stays.

    >>> spelt_out("@1a Nice plot, by the way. me@home", {"1a": "Say why."})
    'Say why. Nice plot, by the way. me@home'
    """
    return _KEY.sub(lambda found: saved.get(found[1], found[0]), comment)
