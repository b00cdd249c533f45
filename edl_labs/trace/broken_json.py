"""What is wrong with a JSON text, in words, at the place where its decoder stops."""

from __future__ import annotations

import json
import re

_NUMBER = re.compile(r"[-+]?(nan|inf(inity)?)\b", re.IGNORECASE)
_PYTHON = re.compile(r"(True|False|None)\b")
# A time that JSON has no number for; Python's json writes such values, and reads them.
_TIME = re.compile(r'"(?:ts|dur)"\s*:\s*(-?(?:NaN|Infinity))')
_WORDS = {
    "Expecting ',' delimiter": "a comma is missing",
    "Expecting ':' delimiter": "a colon is missing",
    "Expecting property name enclosed in double quotes": "a name in double quotes is missing",
    "Illegal trailing comma before end of object": "a comma has nothing after it",
    "Invalid control character at": "a line break is inside a text: its closing quote is missing",
    "Invalid \\escape": "a backslash stands before a character that cannot be escaped; write it twice",
    "Invalid \\uXXXX escape": "\\u needs four hexadecimal digits",
}


def stopped_at(error: ValueError | StopIteration) -> int:
    """The place in the text at which the decoder stopped."""
    return error.pos if isinstance(error, json.JSONDecodeError) else int(getattr(error, "value", 0) or 0)


def is_open(error: ValueError | StopIteration, text: str) -> bool:
    """Whether the text ends inside the value, so that more of it may complete the value."""
    message = getattr(error, "msg", "")
    # A word or a number at the very end may go on.
    return message.startswith("Unterminated string") or stopped_at(error) >= len(text.rstrip()) - len("-Infinity")


def fault(text: str, at: int, message: str = "") -> str:
    """What is wrong at a place.

    >>> fault("[{'ph': 'X'}]", 2, "Expecting property name enclosed in double quotes")
    'single quotes are used; JSON has double quotes'
    >>> fault('{"dur": nan}', 8, "Expecting value")
    '`nan` is not a number in JSON'
    """
    mark = text[at : at + 1]
    if mark == "'":
        return "single quotes are used; JSON has double quotes"
    if found := _NUMBER.match(text, at):
        return f"`{found[0]}` is not a number in JSON"
    if found := _PYTHON.match(text, at):
        return f"`{found[0]}` is a word of Python; JSON has true, false and null"
    if message == "Expecting ',' delimiter" and text[:at].rstrip().endswith('"'):
        return "a comma is missing, or a quote inside a text has no backslash"
    known = next((words for start, words in _WORDS.items() if message.startswith(start)), "")
    return known or f"{mark!r} does not begin a JSON value"


def unreal_time(text: str, start: int, end: int) -> tuple[int, str] | None:
    """(place, the word) of a time that is NaN or infinite between two places; None where there is none."""
    found = _TIME.search(text, start, end)
    return (found.start(1), found[1]) if found else None
