"""Payloads whose true time is known, how this time is measured, and processes that disturb the measurement."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import repeat
from statistics import median
from typing import Any

import torch
from selfcheck import units_of_work

from edl_labs.bench.timing.blocks import collector_off
from edl_labs.clock import HostClock

_NEIGHBOUR = """
import random, time
while True:
    end = time.perf_counter() + random.uniform(0.005, 0.05)
    while time.perf_counter() < end:
        pass
    time.sleep(random.uniform(0.005, 0.05))
"""


def empty() -> None:
    """Nothing: what a harness says of it is its own cost, and that of a call."""


def payloads() -> dict[str, Callable[[], Any]]:
    """The payloads by name; one thread each, so that a neighbour disturbs but does not deadlock them."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    small, a, b, x = torch.randn(64), torch.randn(256, 256), torch.randn(256, 256), torch.randn(1 << 20)
    out = torch.empty_like(x)
    return {
        "torch.add of 64": lambda: torch.add(small, small),
        "400 clock readings": units_of_work(10, HostClock()),
        "matmul of 256": lambda: torch.mm(a, b),
        "relu of 1M": lambda: torch.clamp_min(x, 0.0, out=out),
    }


def truth_s(fn: Callable[[], Any], *, slices: int = 7, slice_s: float = 4e-3) -> float:
    """Seconds per call from large blocks: the median of a few slices, eight calls in a turn of the loop."""
    calls = 1
    while (took := _turns_s(fn, calls)) < slice_s / 4:
        calls *= 2
    calls = max(1, round(calls * slice_s / took))
    with collector_off():
        return median(_turns_s(fn, calls) for _ in range(slices)) / (8 * calls)


def _turns_s(fn: Callable[[], Any], turns: int) -> float:
    start = time.perf_counter()
    for _ in repeat(None, turns):
        # Statements, not one tuple: eight results alive at once would be another payload.
        fn()
        fn()
        fn()
        fn()
        fn()
        fn()
        fn()
        fn()
    return time.perf_counter() - start


@contextmanager
def neighbours(count: int) -> Iterator[None]:
    """`count` processes that compute and sleep in bursts of 5 to 50 ms."""
    started = [subprocess.Popen([sys.executable, "-c", _NEIGHBOUR]) for _ in range(count)]
    try:
        time.sleep(0.3 if started else 0.0)
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


class CostlyClock(HostClock):
    """A host clock whose reading costs 10 µs, as waiting for a device does."""

    name = "costly"
    cost_s = 10e-6

    @property
    def read_cost_s(self) -> float:
        return self.cost_s

    def now_s(self) -> float:
        end = time.perf_counter() + self.cost_s
        while (now := time.perf_counter()) < end:
            pass
        return now
