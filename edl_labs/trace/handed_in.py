"""Reading a trace that somebody handed in: any bytes at all give a trace within limits, or one clear line."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NoReturn

from edl_labs.trace._attribute import Attribution, attribute
from edl_labs.trace._read_trace import read_trace
from edl_labs.trace.analysed_trace import AnalysedTrace
from edl_labs.trace.causes import GENERATED
from edl_labs.trace.errors import TraceError
from edl_labs.trace.packed_trace import ABOUT, LEAST_STEPS, MOST_BYTES, MOST_EVENTS
from edl_labs.trace.recorded_flop import contraction_flop
from edl_labs.trace.trace_table import Trace
from edl_labs.units import counted

MOST_UNPACKED_BYTES = 200_000_000  # forty times the file: a trace was seen to pack thirteenfold
_MOST_OBJECTS = 3 * MOST_EVENTS  # an event, its arguments, and what is around them
_MOST_VALUES = 40 * MOST_EVENTS  # recorded files have 8 commas an event, and 30 where shapes are long
_MOST_DIGITS = 40  # twice those of the largest counter
_AGAIN = "record it again with trace.hand_in(before, after)"
_TEXT_LETTERS = 20_000  # as many of a loop's source are written


@dataclass(frozen=True)
class _File:
    events: list[dict[str, Any]]
    about: dict[str, Any]
    device_properties: list[dict[str, Any]]


@dataclass(frozen=True, eq=False)
class OwnTrace:
    """A trace that was handed in, what its file says `about` it, and FLOPs of contractions a step, where known."""

    trace: Trace
    about: Mapping[str, Any]
    flop_per_step: float | None
    device_names: tuple[str, ...]
    """The devices that the profiler saw."""

    @cached_property
    def analysed(self) -> AnalysedTrace:
        """The trace as analysed."""
        return AnalysedTrace(self.trace)

    @cached_property
    def attribution(self) -> Attribution:
        """The shares of a step that the trace itself tells, its first step left out."""
        return attribute(self.analysed, skip=1)

    @property
    def stamp(self) -> Mapping[str, Any]:
        """The environment stamp that the file claims."""
        found = self.about.get("stamp")
        return found if isinstance(found, dict) else {}

    @property
    def step_s(self) -> float:
        """Seconds a step: a synchronised clock's where the profiler cannot see the device, else the trace's."""
        timed = self.about.get("timed_step_s")
        if self.stamp.get("kind") in ("cpu", "cuda", "xpu", None) or type(timed) is not float or not timed > 0:
            return self.attribution.wall_s
        return timed


def read_handed_in(data: bytes, *, name: str = "the trace") -> OwnTrace:
    """The trace in a file's bytes; TraceError where they are too large, no trace of `hand_in`, or too short."""
    if len(data) > MOST_BYTES:
        raise TraceError(
            f"{name} has {len(data):,} bytes",
            why=f"at most {MOST_BYTES:,} are read",
            next="call hand_in with fewer steps",
        )
    text = _unpacked(data, name)
    if text.count(b"{") > _MOST_OBJECTS or text.count(b",") + text.count(b"[") > _MOST_VALUES:
        raise TraceError(
            f"{name} contains too many events",
            why=f"at most {MOST_EVENTS:,} are read",
            next="call hand_in with fewer steps",
        )
    try:
        file = _decode(text)
    except (RecursionError, ValueError) as error:
        raise TraceError(f"{name} was not written by hand_in", why=str(error)[:200], next=_AGAIN) from None
    trace = _table(file, name)
    marks = [e for e in file.events if e.get("cat") == "user_annotation" and _is_step(e.get("name"))]
    if min(len(trace.steps), len(marks)) < LEAST_STEPS:
        raise TraceError(
            f"{name} contains {counted(min(len(trace.steps), len(marks)), 'marked step')}",
            why=f"at least {LEAST_STEPS} are needed: one warm-up step, and three steps to evaluate",
            next=_AGAIN,
        )
    flop = contraction_flop(file.events)
    names = tuple(str(one.get("name"))[:200] for one in file.device_properties[:64])
    return OwnTrace(trace, _plain(file.about), flop and flop / len(marks), names)


def hides_operators(trace: Trace) -> bool:
    """Whether whole graphs are launched, or generated code runs: products in them are no operators with shapes."""
    launches = {trace.names[name] for name in trace.name[trace.select("launch")].tolist()}
    return any("GraphLaunch" in name for name in launches) or any(GENERATED in name for name in trace.names)


def _decode(text: bytes) -> _File:
    """The parts of a file; ValueError where one is missing or of another form."""
    tree = json.loads(text, parse_constant=_refuse_constant, parse_int=_short_int)
    if not isinstance(tree, dict):
        raise ValueError("the file contains no JSON object")
    events, about, devices = tree.get("traceEvents"), tree.get(ABOUT), tree.get("deviceProperties", [])
    for key, part in (("traceEvents", events), ("deviceProperties", devices)):
        if not isinstance(part, list) or not all(isinstance(one, dict) for one in part):
            raise ValueError(f"{key} is not a list of objects")
    if not isinstance(about, dict):
        raise ValueError(f"{ABOUT} is not an object")
    return _File(events or [], about, devices)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _short_int(digits: str) -> int:
    """Converting thousands of digits takes a millisecond, and a file has room for many."""
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"a number has {len(digits):,} digits")
    return int(digits)


def _table(file: _File, name: str) -> Trace:
    try:
        trace = read_trace(file.events)
    except TraceError as error:
        raise TraceError(error.what.replace("the given value", name), why=error.why, next=_AGAIN) from None
    except Exception as error:  # events of any form at all: what the reader does not expect is no trace
        raise TraceError(f"{name} cannot be read", why=type(error).__name__, next=_AGAIN) from None
    lines = file.about.get("sampled_lines")
    sampled = [one for one in lines if _is_sample(one)] if isinstance(lines, list) else []
    return replace(trace, meta={**trace.meta, "sampled_lines": tuple((float(s), str(line)) for s, line in sampled)})


def _is_sample(one: Any) -> bool:
    return isinstance(one, list) and len(one) == 2 and type(one[0]) in (int, float) and isinstance(one[1], str)


def _is_step(name: Any) -> bool:
    return isinstance(name, str) and name.startswith("ProfilerStep#")


def _unpacked(data: bytes, name: str) -> bytes:
    """The text of a gzip file, which is never unpacked beyond its limit."""
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        text = unpacker.decompress(data, MOST_UNPACKED_BYTES + 1)
    except zlib.error as error:
        raise TraceError(f"{name} is not a gzip file", why=str(error), next=_AGAIN) from None
    if len(text) > MOST_UNPACKED_BYTES:
        most = f"{MOST_UNPACKED_BYTES / 1e6:.0f} MB"
        raise TraceError(
            f"{name} unpacks to more than {most}", why="files from hand_in are never that large", next=_AGAIN
        )
    if not unpacker.eof:
        raise TraceError(f"{name} is truncated", why="the compressed data ends too early", next="submit it again")
    return text


def _plain(about: Mapping[str, Any]) -> dict[str, Any]:
    """What a file says about itself, without samples and with texts of a bearable length."""
    kept = {key: value for key, value in about.items() if key != "sampled_lines"}
    return {key: value[:_TEXT_LETTERS] if isinstance(value, str) else value for key, value in kept.items()}
