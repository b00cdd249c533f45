"""Names that may be anything: of folders that were handed in, and of people as a learning system has them.

nbgrader's pages put a student's id and name into HTML and into scripts as they are. What could leave its place there
names no student, and is shown without what acts on the text around it.
"""

from __future__ import annotations

import re
import unicodedata
from html import escape
from typing import Any

from nbconvert.preprocessors import Preprocessor

from edl_labs.course.grade.submission import Unreadable

_ENDS_A_TEXT = re.compile(r"[<>\"&`\\]")
_BIDI = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")  # Unicode's classes of what turns text around
_CATEGORIES = ("Cc", "Cs", "Co", "Zl", "Zp")  # control, half a character, private, separators of lines and paragraphs
_NAMES = ("student", "first_name", "last_name", "notebook_path", "filename")


def plain_name(name: str) -> str:
    """The name with a mark in place of each character that is no text: control, line ends, turns of direction.

    >>> plain_name("Ada\\n\\u202eecalevoL")
    'Ada\\ufffd\\ufffdecalevoL'
    """
    return "".join("\ufffd" if _acts(letter) else letter for letter in name)


def check_folder(name: str) -> None:
    """Unreadable when a folder's name cannot name a student: pages of formgrader would take it for a part of theirs."""
    if _ENDS_A_TEXT.search(name) or any(map(_acts, name)) or name != name.strip():
        raise Unreadable(
            f"the folder {name[:80]!a} cannot name a student",
            why="there are line ends, turns of direction, quotes or angle brackets in it",
            next="rename it to the student's id",
        )


class EscapedNames(Preprocessor):
    """For nbgrader's HTMLExporter: names of students and their folders are text in formgrader, always."""

    def __init__(self, **traits: Any) -> None:
        super().__init__(**{"enabled": True, **traits})

    def preprocess(self, nb: Any, resources: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The notebook as it is, its names escaped for HTML."""
        escaped = {key: escape(plain_name(resources[key])) for key in _NAMES if isinstance(resources.get(key), str)}
        resources.update(escaped)
        return nb, resources


def _acts(letter: str) -> bool:
    return unicodedata.category(letter) in _CATEGORIES or unicodedata.bidirectional(letter) in _BIDI
