"""Who is to blame: from an event of a trace to the Python line, or the annotation, that caused it."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any

from edl_labs.trace.table import DEVICE_KINDS, KINDS, Trace

_CODE = "code between the calls"
_FRAME = re.compile(r"(?P<file>[^\s(]+\.py)\((?P<line>\d+)\): (?P<function>.+)")
_LIBRARIES = re.compile(r"(^|/)(edl_labs/trace|torch|numpy|contextlib|threading|site-packages)(/|\.py)|^<")


@dataclass(frozen=True)
class Blame:
    """`line`: the Python line or annotation ('' where the trace has none); `what` ran there; its seconds and share."""

    line: str
    what: str
    taken_s: float
    share: float

    def to_json(self) -> dict[str, Any]:
        """The blame as plain data."""
        return asdict(self)


def where(trace: Trace, event: int) -> tuple[str, str]:
    """(line, what): the line that an event comes from, and the event's name. Device work is traced to its call.

    The line is the one noted with the event, or the innermost Python frame outside of libraries, or the innermost
    annotation that is no step.
    """
    if event < 0:
        return "", _CODE
    name = _called(trace, event)
    if KINDS[trace.kind[event]] in DEVICE_KINDS:
        event = issuing_call(trace, event)
        if event < 0:
            return "", name
    for place in (event, *trace.ancestors(event)):
        line = _line(trace, place)
        if line:
            return line, name
    return _annotation(trace, event), name


def _called(trace: Trace, event: int) -> str:
    return _CODE if KINDS[trace.kind[event]] == "step" else trace.names[trace.name[event]]


def _line(trace: Trace, place: int) -> str:
    """The line that one event names: a Python frame of the user's by its own name, else where it was called from."""
    name, kind = trace.names[trace.name[place]], KINDS[trace.kind[place]]
    if kind == "python" and _FRAME.match(name) and not _LIBRARIES.search(name):
        return name
    line = trace.names[trace.line[place]] if trace.line[place] >= 0 else ""
    return line if kind != "step" and not _LIBRARIES.search(line) else ""


def issuing_call(trace: Trace, event: int) -> int:
    """The index of the runtime call that issued a device operation; -1 where the trace does not say."""
    if not hasattr(trace, "_calls"):
        from edl_labs.trace.device import _calls

        object.__setattr__(trace, "_calls", _calls(trace))
    found: dict[int, int] = trace._calls  # type: ignore[attr-defined]
    return found.get(int(trace.link[event]), -1)


def _annotation(trace: Trace, event: int) -> str:
    for place in (event, *trace.ancestors(event)):
        if KINDS[trace.kind[place]] == "annotation":
            return trace.names[trace.name[place]]
    return ""
