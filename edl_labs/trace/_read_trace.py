"""Reading trace files as streams: one event at a time, so that a file may be larger than memory."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from edl_labs.arguments import checked_arguments
from edl_labs.trace.chrome_events import ChromeEvents
from edl_labs.trace.errors import TraceError
from edl_labs.trace.event_stream import EventStream, Note, Take, foreign, truncated
from edl_labs.trace.nsys_sqlite import is_sqlite, nsys_events
from edl_labs.trace.trace_table import Trace
from edl_labs.units import counted

_Source = str | os.PathLike[str] | dict[str, Any] | list[Any]


@checked_arguments()
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
            f"{label} contains {counted(len(ranks), 'rank')}" + ("" if rank is None else f", but no rank {rank}"),
            why="each rank has its own host and device, so they cannot share one table",
            next="use read_trace(path, rank=0) for one rank, or read_ranks(path) for all ranks",
        )
    return ranks[rank]


@checked_arguments()
def read_ranks(source: _Source) -> tuple[Trace, ...]:
    """A table for each rank of a trace, in the order of their processes; one for most files."""
    if isinstance(source, (dict, list)):
        return _collect("the given value", lambda events, note: _parsed(source, events.take, note))
    path = Path(source)
    with _readable(path):
        if is_sqlite(path):
            return _collect(path.name, lambda events, _: nsys_events(path, events), origin="Nsight Systems")
        with _opened(path) as stream:
            return _collect(path.name, lambda events, note: EventStream(stream, path.name).run(events.take, note))


def _opened(path: Path) -> IO[str]:
    with path.open("rb") as raw:
        zipped = raw.read(2) == b"\x1f\x8b"
    # Some tools put a byte-order mark in front.
    return gzip.open(path, "rt", encoding="utf-8-sig") if zipped else path.open(encoding="utf-8-sig")


def _collect(label: str, run: Callable[[ChromeEvents, Note], None], **known: Any) -> tuple[Trace, ...]:
    events, meta = ChromeEvents(), dict[str, Any](known)
    run(events, meta.__setitem__)
    return events.build(label, meta)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """A block in which what keeps a file from being read becomes a TraceError."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise truncated(path.name, f"the compressed data ends too early: {error}") from error
    except UnicodeDecodeError as error:
        raise TraceError(
            f"{path.name} is not text",
            why=f"{_not_text(path)} is not UTF-8",
            next="pass the .json or .json.gz file of the trace",
        ) from error
    except OSError as error:
        raise TraceError(
            f"cannot read {path.name}", why=error.strerror or str(error), next="check the path of the trace"
        ) from error


def _not_text(path: Path) -> str:
    """The place of the first byte that is no text."""
    zipped = path.read_bytes()[:2] == b"\x1f\x8b"
    with gzip.open(path) if zipped else path.open("rb") as raw:
        for number, line in enumerate(raw, start=1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                column = len(line[: error.start].decode()) + 1
                return f"the byte {line[error.start]:#04x} at line {number:,}, column {column:,}"
    return "part of it"


def _parsed(source: dict[str, Any] | list[Any], take: Take, note: Note) -> None:
    events = source.get("traceEvents") if isinstance(source, dict) else source
    if not isinstance(events, list):
        raise foreign("the given value", "it contains no list of trace events")
    for key, value in source.items() if isinstance(source, dict) else ():
        if key != "traceEvents":
            note(key, value)
    for event in events:
        if isinstance(event, dict):
            take(event)
