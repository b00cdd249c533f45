"""Checks names that may contain anything: of submitted folders, and of people in a learning system.

nbgrader's pages put a student's id and name into HTML and into scripts as they are. What could leave its place there
names no student, and is shown without what acts on the text around it.
"""

from __future__ import annotations

import re
import unicodedata
from html import unescape

from edl_labs.course.grade.submission import Unreadable

_ENDS_A_TEXT = re.compile(r"[<>\"`\\]")
_BIDI = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")  # Unicode's classes of what turns text around
_CATEGORIES = ("Cc", "Cs", "Co", "Zl", "Zp")  # control, half a character, private, separators of lines and paragraphs


def plain_name(name: str) -> str:
    """The name with a mark instead of each character that is no text: control, line ends, what reverses the text.

    >>> plain_name("Ada\\n\\u202eecalevoL")
    'Ada\\ufffd\\ufffdecalevoL'
    """
    return "".join("\ufffd" if _acts(letter) else letter for letter in name)


def check_folder(name: str) -> None:
    """Unreadable when a folder's name cannot name a student: pages of formgrader would take it for a part of theirs."""
    why = _refusal(name)
    if why:
        raise Unreadable(
            f"the folder {name[:80]!a} cannot name a student", why=why, next="rename it to the student's id"
        )


def _refusal(name: str) -> str:
    """Which character of a folder's name cannot stay, and why; empty where all can."""
    for place, letter in enumerate(name, start=1):
        if _ENDS_A_TEXT.match(letter):
            return f"character {place}, {_called(letter)}, could end a string or a tag in a page"
        if _acts(letter):
            return f"character {place}, {_called(letter)}, is invisible and changes the text around it"
    if name != name.strip():
        place, letter = (1, name[0]) if name[0].isspace() else (len(name), name[-1])
        where = "start" if place == 1 else "end"
        return f"character {place}, {_called(letter)}, is invisible and at the {where} of the name"
    if unescape(name) != name:
        return f"in a page, {_called('&')} and the text after it would be read as the code of another character"
    return ""


def _called(letter: str) -> str:
    """A character by its number and name, in ASCII."""
    return f"U+{ord(letter):04X} {unicodedata.name(letter, '')}".rstrip()


def _acts(letter: str) -> bool:
    return unicodedata.category(letter) in _CATEGORIES or unicodedata.bidirectional(letter) in _BIDI
