"""A trace's JSON as a stream: one event at a time, with the line and column of whatever is broken in it."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable
from typing import IO, Any

from edl_labs.trace.errors import TraceError

# Read at a time: 4 MB, however large the file is.
_CHUNK = 1 << 22
# No event takes 64 MB: a value that does is broken.
_LONGEST = 1 << 26
_SPACE = " \t\r\n"
# What is no JSON, and is found in traces.
_NUMBER = re.compile(r"[-+]?(nan|inf(inity)?)\b", re.IGNORECASE)
_PYTHON = re.compile(r"(True|False|None)\b")
# A time that JSON has no number for; Python's json writes such values, and reads them.
_TIME = re.compile(r'"(?:ts|dur)"\s*:\s*(-?(?:NaN|Infinity))')
_WORDS = {
    "Expecting ',' delimiter": "a comma is missing",
    "Expecting ':' delimiter": "a colon is missing",
    "Expecting property name enclosed in double quotes": "a name in double quotes is missing",
    "Illegal trailing comma before end of object": "nothing follows a comma",
    "Invalid control character at": "a string contains a line break, so its closing quote may be missing",
    "Invalid \\escape": "a backslash precedes a character that cannot be escaped; write two backslashes",
    "Invalid \\uXXXX escape": "\\u needs four hexadecimal digits",
    "maximum recursion depth": "lists or objects are nested too deeply",
}

Take = Callable[[dict[str, Any]], None]
Note = Callable[[str, Any], None]


class EventStream:
    """Decodes a stream value by value; holds a few megabytes at a time."""

    def __init__(self, stream: IO[str], label: str) -> None:
        self._stream, self._label = stream, label
        self._text, self._at, self._ended = "", 0, False
        # Lines before the text that is held, and characters of its first line before it.
        self._lines = self._columns = 0
        self._unreal: list[str] = []
        # The decoder of one value at a place, in C; typeshed leaves it out.
        self._scan = json.JSONDecoder(parse_constant=self._constant).scan_once  # type: ignore[attr-defined]

    def run(self, take: Take, note: Note) -> None:
        """Hand each event to `take`, each other top-level value to `note`."""
        first = self._peek()
        if first == "[":
            self._array(take, may_end=True)
        elif first == "{":
            self._top(take, note)
        else:
            raise foreign(self._label, f"it starts with {first!r}" if first else "it is empty")

    def _top(self, take: Take, note: Note) -> None:
        self._at += 1
        seen = False
        while (mark := self._peek()) != "}":
            if mark == ",":
                self._at += 1
            elif mark == '"':
                key = self._value()
                self._expect(":")
                if key == "traceEvents" and self._peek() == "[":
                    self._array(take, may_end=False)
                    seen = True
                else:
                    note(str(key), self._value())
            else:
                raise self._broken(self._at, "Expecting property name enclosed in double quotes")
        self._at += 1
        self._end()
        if not seen:
            raise foreign(self._label, 'it has no field "traceEvents"')

    def _array(self, take: Take, *, may_end: bool) -> None:
        self._expect("[")
        while True:
            mark = self._peek()
            if mark == "{":
                self._objects(take)
            elif mark == ",":
                self._at += 1
            elif mark == "]":
                self._at += 1
                if may_end:
                    self._end()
                return
            elif not mark and may_end:
                # The format allows an array of events without its end.
                return
            elif mark and mark in '"-0123456789tfn':
                self._value()
            else:
                raise self._broken(self._at, "Expecting value")

    def _end(self) -> None:
        """Nothing may come after the document."""
        if mark := self._peek():
            what = "contains two documents" if mark in "[{" else "continues after its end"
            raise TraceError(
                f"{self._label} {what}",
                why=f"more text follows the first document at {self._place(self._at)}",
                next="put each trace into a separate file",
            )

    def _objects(self, take: Take) -> None:
        """The common case in one tight loop: objects with a comma between them, all in the buffer."""
        text, at, scan = self._text, self._at, self._scan
        try:
            while True:
                value, at = scan(text, at)
                if self._unreal:
                    self._check_times(at)
                take(value)
                self._at = at
                while text[at] in ", \t\r\n":
                    at += 1
                if text[at] != "{":
                    self._at = at
                    return
                self._at = at
        except (ValueError, StopIteration, IndexError, RecursionError):
            pass
        if self._peek() == "{":
            take(self._value())

    def _value(self) -> Any:
        grown = 0
        while True:
            self._peek()
            try:
                value, at = self._scan(self._text, self._at)
            except (ValueError, StopIteration) as error:
                # A whole chunk further and still no value: it is not the chunk's end that breaks it.
                if self._ended or grown > _LONGEST or not _is_open(error, self._text):
                    raise self._broken(_stopped_at(error), getattr(error, "msg", "Expecting value"), error) from error
                grown += self._more()
                continue
            except RecursionError as error:
                raise self._broken(self._at, str(error)) from error
            if at == len(self._text) and not self._ended:
                # A number at the end of a chunk may go on in the next.
                grown += self._more()
                continue
            if self._unreal:
                self._check_times(at)
            self._at = at
            return value

    def _constant(self, word: str) -> float:
        """NaN and infinities, which are no JSON: they matter where they are times."""
        self._unreal.append(word)
        return float(word)

    def _check_times(self, end: int) -> None:
        self._unreal.clear()
        if found := _unreal_time(self._text, self._at, end):
            raise self._broken(found[0], "")

    def _expect(self, mark: str) -> None:
        if self._peek() != mark:
            raise self._broken(self._at, f"Expecting '{mark}' delimiter")
        self._at += 1

    def _peek(self) -> str:
        """The next character that is not a space; '' at the end."""
        while True:
            text, at = self._text, self._at
            while at < len(text) and text[at] in _SPACE:
                at += 1
            self._at = at
            if at < len(text):
                return text[at]
            if self._ended:
                return ""
            self._more()

    def _more(self) -> int:
        past = self._text[: self._at]
        self._lines += past.count("\n")
        self._columns = len(past) - past.rfind("\n") - 1 if "\n" in past else self._columns + len(past)
        self._text, self._at = self._text[self._at :], 0
        try:
            fresh = self._stream.read(_CHUNK)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            where = self._place(len(self._text))
            raise truncated(self._label, f"the compressed data ends after {where} of the text: {error}") from error
        self._text += fresh
        self._ended = not fresh
        return len(fresh)

    def _place(self, at: int) -> str:
        line = self._lines + self._text.count("\n", 0, at) + 1
        column = at - self._text.rfind("\n", 0, at) + (0 if "\n" in self._text[:at] else self._columns)
        return f"line {line:,}, column {column:,}"

    def _broken(self, at: int, message: str, error: Exception | None = None) -> TraceError:
        cut = at >= len(self._text.rstrip()) or (isinstance(error, ValueError) and "Unterminated" in message)
        if self._ended and cut:
            begun = (
                f"inside the value that begins at {self._place(self._at)}"
                if self._at < len(self._text)
                else "inside a value"
            )
            return truncated(self._label, f"it ends at {self._place(len(self._text))}, {begun}")
        return TraceError(
            f"{self._label} is broken at {self._place(at)}",
            why=fault(self._text, at, message),
            next="correct the file there, or export the trace again",
        )


def truncated(label: str, why: str) -> TraceError:
    """The error for a file that breaks off."""
    return TraceError(
        f"{label} is truncated",
        why=why,
        next="export the trace again, and copy the file only after the export has finished",
    )


def foreign(label: str, why: str) -> TraceError:
    """The error for a file that holds no trace."""
    return TraceError(
        f"{label} is not a trace",
        why=why,
        next="pass the JSON file of torch.profiler or of VirtualGPU, or the output of nsys export --type sqlite",
    )


def _stopped_at(error: ValueError | StopIteration) -> int:
    """The place in the text at which the decoder stopped."""
    return error.pos if isinstance(error, json.JSONDecodeError) else int(getattr(error, "value", 0) or 0)


def _is_open(error: ValueError | StopIteration, text: str) -> bool:
    """Whether the text ends inside the value, so that more of it may complete the value."""
    message = getattr(error, "msg", "")
    # A word or a number at the very end may go on.
    return message.startswith("Unterminated string") or _stopped_at(error) >= len(text.rstrip()) - len("-Infinity")


def fault(text: str, at: int, message: str = "") -> str:
    """What is wrong at a place.

    >>> fault("[{'ph': 'X'}]", 2, "Expecting property name enclosed in double quotes")
    'it uses single quotes, but JSON needs double quotes'
    >>> fault('{"dur": nan}', 8, "Expecting value")
    '`nan` is not a valid number in JSON'
    """
    mark = text[at : at + 1]
    if mark == "'":
        return "it uses single quotes, but JSON needs double quotes"
    if found := _NUMBER.match(text, at):
        return f"`{found[0]}` is not a valid number in JSON"
    if found := _PYTHON.match(text, at):
        return f"`{found[0]}` is Python; JSON uses true, false and null"
    if message == "Expecting ',' delimiter" and text[:at].rstrip().endswith('"'):
        return "a comma is missing, or a quote inside a string has no backslash"
    known = next((words for start, words in _WORDS.items() if message.startswith(start)), "")
    return known or f"{mark!r} cannot begin a JSON value"


def _unreal_time(text: str, start: int, end: int) -> tuple[int, str] | None:
    """(place, the word) of a time that is NaN or infinite between two places; None where there is none."""
    found = _TIME.search(text, start, end)
    return (found.start(1), found[1]) if found else None
