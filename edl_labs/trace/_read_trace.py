"""Reading trace files as streams: one event at a time, so that a file may be larger than memory."""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from edl_labs.trace.chrome_events import ChromeEvents
from edl_labs.trace.errors import TraceError
from edl_labs.trace.nsys_sqlite import is_sqlite, nsys_events
from edl_labs.trace.trace_table import Trace
from edl_labs.units import counted

# Read at a time: 4 MB, however large the file is.
_CHUNK = 1 << 22
# No event takes 64 MB: a value that does is broken.
_LONGEST = 1 << 26
# The decoder of one value at a place, in C; typeshed leaves it out.
_SCAN = json.JSONDecoder().scan_once  # type: ignore[attr-defined]
_SPACE = " \t\r\n"


_Source = str | os.PathLike[str] | dict[str, Any] | list[Any]


def read_trace(source: _Source, *, rank: int | None = None) -> Trace:
    """The table of a trace: a Chrome trace of torch.profiler or VirtualGPU, an nsys export to SQLite, or parsed JSON.

    A file, plain or gzipped, is streamed: 500 MB take less than 2 GB of memory. `rank` chooses one of several. Raises
    TraceError where it is missing, truncated or foreign, saying where, and where it holds several ranks.
    """
    ranks = read_ranks(source)
    if rank is None and len(ranks) == 1:
        return ranks[0]
    if rank is None or not 0 <= rank < len(ranks):
        label = "the given value" if isinstance(source, (dict, list)) else Path(source).name
        raise TraceError(
            f"{label} holds {counted(len(ranks), 'rank')}" + ("" if rank is None else f", none of them {rank}"),
            why="each has its own host and device; in one table they would hide each other",
            next="read_trace(path, rank=0) for one of them, read_ranks(path) for all",
        )
    return ranks[rank]


def read_ranks(source: _Source) -> tuple[Trace, ...]:
    """A table for each rank of a trace, in the order of their processes; one for most files."""
    if isinstance(source, (dict, list)):
        return _collect("the given value", lambda take, note: _parsed(source, take, note))
    path = Path(source)
    with _readable(path):
        if is_sqlite(path):
            return _collect(path.name, lambda take, note: nsys_events(path, take, note), origin="Nsight Systems")
        with _opened(path) as stream:
            return _collect(path.name, lambda take, note: _Scanner(stream, path.name).run(take, note))


def _opened(path: Path) -> IO[str]:
    with path.open("rb") as raw:
        zipped = raw.read(2) == b"\x1f\x8b"
    # Some tools put a byte-order mark in front.
    return gzip.open(path, "rt", encoding="utf-8-sig") if zipped else path.open(encoding="utf-8-sig")


_Take = Callable[[dict[str, Any]], None]
_Note = Callable[[str, Any], None]


def _collect(label: str, run: Callable[[_Take, _Note], None], **known: Any) -> tuple[Trace, ...]:
    events, meta = ChromeEvents(), dict[str, Any](known)
    run(events.take, meta.__setitem__)
    return events.build(label, meta)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """A block in which what keeps a file from being read becomes a TraceError."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise _truncated(path.name, f"the compressed data break off: {error}") from error
    except UnicodeDecodeError as error:
        raise TraceError(
            f"{path.name} is not text", why=f"byte {error.start} is not UTF-8", next="give the .json or .json.gz file"
        ) from error
    except OSError as error:
        raise TraceError(
            f"cannot read {path.name}", why=error.strerror or str(error), next="check the path of the trace"
        ) from error


def _parsed(source: dict[str, Any] | list[Any], take: _Take, note: _Note) -> None:
    events = source.get("traceEvents") if isinstance(source, dict) else source
    if not isinstance(events, list):
        raise _foreign("the given value", "it holds no list of trace events")
    for key, value in source.items() if isinstance(source, dict) else ():
        if key != "traceEvents":
            note(key, value)
    for event in events:
        if isinstance(event, dict):
            take(event)


class _Scanner:
    """Decodes a stream value by value; holds a few megabytes at a time."""

    def __init__(self, stream: IO[str], label: str) -> None:
        self._stream, self._label = stream, label
        self._text, self._at, self._read, self._ended = "", 0, 0, False

    def run(self, take: _Take, note: _Note) -> None:
        """Hand each event to `take`, each other top-level value to `note`."""
        first = self._peek()
        if first == "[":
            self._array(take, may_end=True)
        elif first == "{":
            self._top(take, note)
        else:
            raise _foreign(self._label, f"it starts with {first!r}" if first else "it is empty")

    def _top(self, take: _Take, note: _Note) -> None:
        self._at += 1
        seen = False
        while True:
            mark = self._peek()
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
            elif mark == "}":
                break
            else:
                raise self._broken(mark)
        if not seen:
            raise _foreign(self._label, 'it has no "traceEvents"')

    def _array(self, take: _Take, *, may_end: bool) -> None:
        self._expect("[")
        while True:
            mark = self._peek()
            if mark == "{":
                self._objects(take)
            elif mark == ",":
                self._at += 1
            elif mark == "]":
                self._at += 1
                return
            elif not mark and may_end:
                # The format allows an array of events without its end.
                return
            elif mark and mark in '"-0123456789tfn':
                self._value()
            else:
                raise self._broken(mark)

    def _objects(self, take: _Take) -> None:
        """The common case in one tight loop: objects with a comma between them, all in the buffer."""
        text, at = self._text, self._at
        try:
            while True:
                value, at = _SCAN(text, at)
                take(value)
                self._at = at
                while text[at] in ", \t\r\n":
                    at += 1
                if text[at] != "{":
                    self._at = at
                    return
        except (ValueError, StopIteration, IndexError):
            pass
        if self._peek() == "{":
            take(self._value())

    def _value(self) -> Any:
        grown = 0
        while True:
            try:
                self._peek()
                value, at = _SCAN(self._text, self._at)
            except (ValueError, StopIteration) as error:
                # A whole chunk further and still no value: it is not the chunk's end that breaks it.
                if self._ended or grown > _LONGEST:
                    raise self._broken(self._text[self._at : self._at + 1]) from error
                grown += self._more()
                continue
            if at == len(self._text) and not self._ended:
                # A number at the end of a chunk may go on in the next.
                grown += self._more()
                continue
            self._at = at
            return value

    def _expect(self, mark: str) -> None:
        found = self._peek()
        if found != mark:
            raise self._broken(found)
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
        self._read += self._at
        fresh = self._stream.read(_CHUNK)
        self._text, self._at = self._text[self._at :] + fresh, 0
        self._ended = not fresh
        return len(fresh)

    def _broken(self, mark: str) -> TraceError:
        place = self._read + self._at
        if self._ended and (not mark or len(self._text) - self._at < _LONGEST):
            return _truncated(self._label, f"it ends at character {self._read + len(self._text):,} inside a value")
        return _foreign(self._label, f"character {place:,} is {mark!r}, which JSON does not allow there")


def _truncated(label: str, why: str) -> TraceError:
    return TraceError(
        f"{label} is truncated",
        why=why,
        next="write the trace again, and let the export finish before copying the file",
    )


def _foreign(label: str, why: str) -> TraceError:
    return TraceError(
        f"{label} is not a trace",
        why=why,
        next="give the JSON of torch.profiler's export_chrome_trace, of VirtualGPU, or nsys export --type sqlite",
    )
