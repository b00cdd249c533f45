"""Catching what code writes while it is checked: Python's and C's stdout and stderr, warnings, logging, displays.

nbgrader gives 0 points to a check cell with any text on stderr, so correct code that warns must not reach it.
"""

from __future__ import annotations

import io
import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, Any

MAX_KEPT = 20_000  # characters: more than anybody reads, and little to keep


class Printed:
    """What was written while `caught_output` was on, after it is off; cut to its first 20,000 characters.

    `take()` gives what was written so far, and `text` then begins anew: so a case's output is kept apart from the next
    one's.
    """

    text = ""

    def __init__(self, sink: io.StringIO, file: IO[bytes]) -> None:
        self._sink, self._file = sink, file

    def take(self) -> str:
        """What was written since the last call."""
        text = self._sink.getvalue() + _read(self._file)
        self._sink.seek(0)
        self._sink.truncate()
        # Descriptors 1 and 2 share this file's offset.
        os.ftruncate(self._file.fileno(), 0)
        os.lseek(self._file.fileno(), 0, os.SEEK_SET)
        return text


class _Sink(io.StringIO):
    """Keeps the first MAX_KEPT characters and swallows the rest, so that a print loop costs no memory."""

    def write(self, text: str) -> int:
        room = MAX_KEPT - self.tell()
        if room > 0:
            super().write(str(text)[:room])
        return len(text)

    def fileno(self) -> int:
        raise io.UnsupportedOperation("caught while checking")


@contextmanager
def caught_output() -> Iterator[Printed]:
    """Catches all output of the block; `.text` of the value holds it afterwards."""
    sink = _Sink()
    with ExitStack() as stack:
        file = stack.enter_context(tempfile.TemporaryFile(buffering=0))
        printed = Printed(sink, file)
        stack.enter_context(_descriptors(file))
        stack.enter_context(_streams(sink))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        stack.enter_context(_logging_off())
        yield printed
        printed.text = printed.take()


@contextmanager
def _descriptors(file: IO[bytes]) -> Iterator[None]:
    """C code writes to descriptors 1 and 2, whatever sys.stderr is."""
    saved: list[tuple[int, int]] = []
    try:
        for number in (1, 2):
            try:
                saved.append((number, os.dup(number)))
                os.dup2(file.fileno(), number)
            except OSError:
                continue
        yield
    finally:
        for number, copy in saved:
            os.dup2(copy, number)
            os.close(copy)


@contextmanager
def _streams(sink: _Sink) -> Iterator[None]:
    """sys.stdout, sys.stderr and sys.displayhook, and the stream objects that code may have kept."""
    kept = [(vars(stream), vars(stream).get("write")) for stream in {sys.stdout, sys.stderr} if _is_kernels(stream)]
    before = sys.stdout, sys.stderr, sys.displayhook
    for attributes, _ in kept:
        attributes["write"] = sink.write
    sys.stdout = sys.stderr = sink
    sys.displayhook = lambda value: None
    try:
        yield
    finally:
        sys.stdout, sys.stderr, sys.displayhook = before
        for attributes, own in kept:
            attributes.pop("write", None)
            if own is not None:
                attributes["write"] = own


def _is_kernels(stream: Any) -> bool:
    """A kernel's stream: code that kept it (`err = sys.stderr`, a logging handler) must be caught too."""
    return hasattr(stream, "__dict__") and type(stream).__module__.startswith("ipykernel")


@contextmanager
def _logging_off() -> Iterator[None]:
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(level)


def _read(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(MAX_KEPT).decode("utf-8", "replace")
