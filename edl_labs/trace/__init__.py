"""Where the time goes: traces in one table, shares of wall time by cause, and potential speed-ups."""

from __future__ import annotations

from edl_labs.trace._antipatterns import Finding, antipatterns
from edl_labs.trace._attribute import RULE, Attribution, StepShares, attribute
from edl_labs.trace._diagnose import Diagnosis, diagnose
from edl_labs.trace._diagnose_ranks import RanksDiagnosis, RankSummary, diagnose_ranks
from edl_labs.trace._hand_in import HandedIn, hand_in
from edl_labs.trace._read_trace import read_ranks, read_trace
from edl_labs.trace._what_if import Ablation, WhatIf, ablate, most_to_gain, what_if
from edl_labs.trace.analysed_trace import AnalysedTrace, Blame
from edl_labs.trace.causes import ABLATIONS, CAUSES, VERDICTS
from edl_labs.trace.errors import TraceError
from edl_labs.trace.loops import Loop, TorchLoop, VirtualLoop
from edl_labs.trace.samplers import Samples, SideBySide, attach, side_by_side
from edl_labs.trace.trace_table import KINDS, Total, Trace, TraceEvent
from edl_labs.trace.traced_gpu import AblatedGPU, TracedGPU

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
    "Finding",
    "HandedIn",
    "Loop",
    "RankSummary",
    "RanksDiagnosis",
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
    "diagnose_ranks",
    "hand_in",
    "most_to_gain",
    "read_ranks",
    "read_trace",
    "side_by_side",
    "what_if",
]
