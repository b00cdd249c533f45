"""Where the time goes: traces in one table, shares of wall time by cause, and what mending a cause would gain."""

from __future__ import annotations

from edl_labs.trace.ablate import Ablation, ablate
from edl_labs.trace.ablated import ABLATIONS, AblatedGPU
from edl_labs.trace.antipatterns import Finding, antipatterns
from edl_labs.trace.attribute import Attribution, StepShares, attribute
from edl_labs.trace.blame import Blame
from edl_labs.trace.charging import RULE
from edl_labs.trace.diagnose import VERDICTS, Diagnosis, diagnose
from edl_labs.trace.errors import TraceError
from edl_labs.trace.host import CAUSES
from edl_labs.trace.live import TracedGPU
from edl_labs.trace.loops import Loop, VirtualLoop
from edl_labs.trace.monitor import Monitor, MonitorReport
from edl_labs.trace.reader import read_trace
from edl_labs.trace.samplers import Samples, attach
from edl_labs.trace.side_by_side import SideBySide, side_by_side
from edl_labs.trace.table import KINDS, Event, Total, Trace
from edl_labs.trace.torch_loop import TorchLoop
from edl_labs.trace.what_if import WhatIf, most_to_gain, what_if

__all__ = [
    "ABLATIONS",
    "CAUSES",
    "KINDS",
    "RULE",
    "VERDICTS",
    "AblatedGPU",
    "Ablation",
    "Attribution",
    "Blame",
    "Diagnosis",
    "Event",
    "Finding",
    "Loop",
    "Monitor",
    "MonitorReport",
    "Samples",
    "SideBySide",
    "StepShares",
    "TorchLoop",
    "Total",
    "Trace",
    "TraceError",
    "TracedGPU",
    "VirtualLoop",
    "WhatIf",
    "ablate",
    "antipatterns",
    "attach",
    "attribute",
    "diagnose",
    "most_to_gain",
    "read_trace",
    "side_by_side",
    "what_if",
]
