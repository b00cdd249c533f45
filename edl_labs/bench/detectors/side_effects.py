"""What a call does besides its work: it sleeps, prints, cleans up, loads code, watches itself, changes settings."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from typing import Any

from edl_labs.bench.detectors.detector import TOO_LONG, Detector, Look
from edl_labs.bench.detectors.effect_watch import is_disk_file
from edl_labs.bench.timing.reachable_objects import constants
from edl_labs.units import byte_count


class _SideEffect(Detector):
    """Told from what calls did; what a first call does alone may be done once."""

    once_is_enough = False
    own_line_is_enough = False  # where a call is too long for a second look

    def __init__(self, look: Look) -> None:
        super().__init__(look)
        self._first = ""

    def after_call(self, result: Any) -> str:
        effects = self.look.effects
        seen = effects.seen.get(self.kind, "")
        if self.look.calls == 1:
            self._first = seen
            return seen if self.once_is_enough else ""
        return seen if self.kind in effects.seen_before else ""

    def after_calls(self, call: Callable[[], object], *, finished: bool) -> str:
        if finished or self.look.calls > 1 or self.once_is_enough:
            return ""
        if self.own_line_is_enough and self.kind in self.look.effects.own:
            return self._first
        self.look.off[self.kind] = TOO_LONG
        return ""


class Sleeps(_SideEffect):
    """The function waits for time to pass."""

    kind = "sleeps"
    what = "each call sleeps"
    why = "{detail}; what is timed is the requested pause, rounded up by the system's timer, not the work"
    next = "remove the sleep from the function, or replace it with the work or the wait that it stands for"

    def after_calls(self, call: Callable[[], object], *, finished: bool) -> str:
        # A sleep makes a call too long for a second look, and nothing that is done once sleeps.
        return self._first if self.look.calls == 1 else ""


class Housekeeping(_SideEffect):
    """The function collects garbage or empties an allocator's cache."""

    kind = "housekeeping"
    own_line_is_enough = True
    what = "each call collects garbage or empties a cache"
    why = (
        "{detail}; its time grows with the number of objects in the process, and the next call must allocate "
        "memory again"
    )
    next = "remove it from the function; between measurements it does no harm"


class Prints(_SideEffect):
    """The function writes to the terminal or the notebook."""

    kind = "prints"
    what = "each call prints"
    why = "{detail}; output to a terminal, a notebook or a log is slow, and its time is not part of the function's work"
    next = "return the text and print it once, after the timing; for a logger, raise its level during the timing"


class LoadsCode(_SideEffect):
    """The function loads a module again."""

    kind = "loads_code"
    what = "each call loads code"
    why = "{detail}; a process reads, compiles and runs a module once, not in each call"
    next = "import it once, outside the function"


class Instrumented(_SideEffect):
    """A profiler, a tracer or a debugging mode is on while the clock runs."""

    kind = "instrumented"
    own_line_is_enough = True
    what = "a tool that slows calls down is active while they are timed"
    why = "{detail}; it adds its own time to each operator or line, and small ones slow down more than large ones"
    next = "time the function without this tool, and use the tool in a separate run"

    def before(self) -> str:
        torch, traces = sys.modules.get("torch"), sys.modules.get("tracemalloc")
        if torch is not None and torch.is_anomaly_enabled():
            return "torch's anomaly mode is on"
        if torch is not None and torch._C._autograd._profiler_enabled():
            return "torch's profiler is on"
        if traces is not None and traces.is_tracing():
            return "tracemalloc is on"
        return "a profiler of Python calls is active" if sys.getprofile() is not None else ""


class SettingsChanged(_SideEffect):
    """The function changes how the process computes."""

    kind = "settings_changed"
    what = "the function changes settings of the process"
    why = "{detail}; later calls, and everything timed after them, run with different settings than the first call"
    next = "change it once before the timing, and restore it afterwards"
    once_is_enough = True


class PageCache(Detector):
    """Each call reads files again, but from the page cache."""

    kind = "page_cache"
    what = "each call reads a file that is in the page cache"
    why = "{detail}; only the first read comes from the disk, but real data is read once and is not cached"
    next = "if real reads will not be cached, read different files in each call, or drop the file from the cache first"

    def after_call(self, result: Any) -> str:
        look = self.look
        if look.calls == 1 or look.started.processes:
            return ""
        through, from_device = look.effects.file_bytes
        if through >= _LEAST_READ and not from_device and self._reads_a_file():
            return f"{byte_count(through)} were read, but none of them from a device"
        return "the data is a memory-mapped file" if any(map(_is_mapped, (*look.items, result))) else ""

    def _reads_a_file(self) -> bool:
        """What comes through the system may be a pipe's or a device's as well: a file is opened, at hand, or named."""
        if self.look.effects.opened:
            return True
        named = (value for one in self.look.effects.functions for value in constants(one.__code__))
        return any(isinstance(item, _NAMES) and is_disk_file(item) for item in (*self.look.items, *named))


_NAMES = (str, bytes, os.PathLike, io.IOBase)
_LEAST_READ = 8 << 10  # less is what a small file of settings holds, or what other threads read


def _is_mapped(item: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(item, numpy.memmap) and item.nbytes >= _LEAST_READ
