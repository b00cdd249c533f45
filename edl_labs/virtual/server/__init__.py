"""VirtualServer: requests, batches and a paged cache on virtual time; a policy's decisions recorded and replayed."""

from __future__ import annotations

from edl_labs.virtual.server.arrivals import (
    Arrival,
    arrivals_of,
    burst_times,
    checked_arrivals,
    day_times,
    drawn_lengths,
    poisson_times,
)
from edl_labs.virtual.server.batching_rules import (
    BatchLimits,
    BatchRules,
    MicroBatchRun,
    QueuedRequest,
    RefusedDecision,
    ServedCall,
    ServiceRun,
    serve_micro_batches,
)
from edl_labs.virtual.server.load_curve import LoadCurve, LoadPoint, load_curve
from edl_labs.virtual.server.machine import DecoderShape, ServerMachine, StepWork, server_machine
from edl_labs.virtual.server.replay import (
    ServedRequest,
    ServerReplay,
    decides_otherwise,
    percentile,
    replay,
    replay_server,
)
from edl_labs.virtual.server.virtual_server import ServerRequest, VirtualServer, serve_batches

__all__ = [
    "Arrival",
    "BatchLimits",
    "BatchRules",
    "DecoderShape",
    "LoadCurve",
    "LoadPoint",
    "MicroBatchRun",
    "QueuedRequest",
    "RefusedDecision",
    "ServedCall",
    "ServedRequest",
    "ServerMachine",
    "ServerReplay",
    "ServerRequest",
    "ServiceRun",
    "StepWork",
    "VirtualServer",
    "arrivals_of",
    "burst_times",
    "checked_arrivals",
    "day_times",
    "decides_otherwise",
    "drawn_lengths",
    "load_curve",
    "percentile",
    "poisson_times",
    "replay",
    "replay_server",
    "serve_batches",
    "serve_micro_batches",
    "server_machine",
]
