"""Where the time goes: traces in one table, shares of wall time by cause, and what mending a cause would gain."""

from __future__ import annotations

from edl_labs.trace.attribute import Attribution, StepShares, attribute
from edl_labs.trace.blame import Blame
from edl_labs.trace.charging import RULE
from edl_labs.trace.errors import TraceError
from edl_labs.trace.host import CAUSES
from edl_labs.trace.live import TracedGPU
from edl_labs.trace.reader import read_trace
from edl_labs.trace.table import KINDS, Event, Total, Trace

__all__ = [
    "CAUSES",
    "KINDS",
    "RULE",
    "Attribution",
    "Blame",
    "Event",
    "StepShares",
    "Total",
    "Trace",
    "TraceError",
    "TracedGPU",
    "attribute",
    "read_trace",
]
