"""Latency against throughput: a policy under growing loads, and the knee from which on the queue takes over."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from edl_labs.errors import UsageError
from edl_labs.presenters import Plottable
from edl_labs.values import Value
from edl_labs.virtual.server.machine import ServerMachine
from edl_labs.virtual.server.replay import ServerReplay, replay
from edl_labs.virtual.server.virtual_server import VirtualServer

# Twice an idle server's p99: in a queue with random arrivals and services the mean has doubled at half of its capacity.
_KNEE = 2.0  # times


@dataclass(frozen=True)
class LoadPoint:
    """A load in requests per second, and its result; latencies of what never ended are infinite."""

    offered_per_s: float
    request_per_s: float
    token_per_s: float
    first_token_p50_s: float
    first_token_p99_s: float
    latency_p50_s: float
    latency_p99_s: float
    utilisation: float


@dataclass(frozen=True, repr=False)
class LoadCurve(Value, Plottable):
    """A policy on a machine, at loads from the smallest to the largest."""

    ROWS = "points"

    machine: ServerMachine
    points: tuple[LoadPoint, ...]

    @property
    def knee(self) -> LoadPoint:
        """The largest load up to which p99 of the latency stays within twice that of the smallest load."""
        found = self.points[0]
        for point in self.points:
            if point.latency_p99_s > _KNEE * self.points[0].latency_p99_s:
                break
            found = point
        return found

    def largest_within(self, *, first_token_s: float = math.inf, latency_s: float = math.inf) -> float:
        """The largest load, in requests a second, up to which p99 keeps these limits; 0 where none does."""
        found = 0.0
        for point in self.points:
            if point.first_token_p99_s > first_token_s or point.latency_p99_s > latency_s:
                break
            found = point.offered_per_s
        return found


def load_curve(
    machine: ServerMachine,
    policy: Callable[[VirtualServer], object],
    load: Callable[[float], Sequence[Any]],
    rates: Sequence[float],
) -> LoadCurve:
    """Serve `load(rate)` under a policy, for every rate (requests a second), each on a fresh server.

    >>> from edl_labs.virtual.server import Arrival
    >>> def policy(server):
    ...     for one in server.finished:
    ...         server.free(one)
    ...     for one in server.waiting:
    ...         server.allocate(one, one.needs)
    ...         server.admit(one)
    >>> load = lambda rate: [Arrival(at / rate, 100) for at in range(20)]
    >>> load_curve(ServerMachine(step_s=0.1), policy, load, [1, 5]).knee.offered_per_s
    5
    """
    if not rates or sorted(rates) != list(rates) or rates[0] <= 0:
        raise UsageError(
            f"the rates are {list(rates)}",
            why="the rates of a curve must increase",
            next="pass rates in requests per second, such as rates=[1, 2, 4, 8]",
        )
    served = [(rate, replay(VirtualServer(machine, load(rate)).run(policy))) for rate in rates]
    return LoadCurve(machine, tuple(_point(rate, run) for rate, run in served))


def _point(rate: float, run: ServerReplay) -> LoadPoint:
    return LoadPoint(
        offered_per_s=rate,
        request_per_s=run.request_per_s,
        token_per_s=run.token_per_s,
        first_token_p50_s=run.time_to_first_token_s(0.5),
        first_token_p99_s=run.time_to_first_token_s(0.99),
        latency_p50_s=run.latency_s(0.5),
        latency_p99_s=run.latency_s(0.99),
        utilisation=run.utilisation,
    )
