"""Where the time goes: traces in one table, shares of wall time by cause, and what mending a cause would gain."""

from __future__ import annotations

from edl_labs.trace._ablate import Ablation, ablate
from edl_labs.trace._antipatterns import Finding, antipatterns
from edl_labs.trace._attribute import Attribution, StepShares, attribute
from edl_labs.trace._diagnose import Diagnosis, diagnose
from edl_labs.trace._read_trace import read_trace
from edl_labs.trace._side_by_side import SideBySide, side_by_side
from edl_labs.trace._what_if import WhatIf, most_to_gain, what_if
from edl_labs.trace.analysed_trace import AnalysedTrace
from edl_labs.trace.attribution_rule import RULE
from edl_labs.trace.blame import Blame
from edl_labs.trace.causes import ABLATIONS, CAUSES, VERDICTS
from edl_labs.trace.errors import TraceError
from edl_labs.trace.gpu_without_cause import AblatedGPU
from edl_labs.trace.loops import Loop, VirtualLoop
from edl_labs.trace.monitor import Monitor, MonitorReport
from edl_labs.trace.samplers import Samples, attach
from edl_labs.trace.torch_loop import TorchLoop
from edl_labs.trace.trace_table import KINDS, Total, Trace, TraceEvent
from edl_labs.trace.traced_gpu import TracedGPU

# What released notebooks may call it.
Event = TraceEvent

__all__ = [
    "ABLATIONS",
    "CAUSES",
    "KINDS",
    "RULE",
    "VERDICTS",
    "AblatedGPU",
    "Ablation",
    "AnalysedTrace",
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
    "TraceEvent",
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
