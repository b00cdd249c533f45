"""One reading of a function's time per call: a block, with what a block costs taken off by a slope."""

from __future__ import annotations

from statistics import median

from edl_labs.bench.timing.blocks import Runner
from edl_labs.bench.timing.warmup import BlockPlan

_HOST_SLOPE_CALLS = 32  # from here on a second, short block costs under a thirtieth of the long one


class Sampler:
    """Draws times per call of one runner, in blocks of a plan's size.

    Many calls: the slope between a block of one call and a block of k, which removes everything that a block costs once
    (readings, the wait for the device, the latency of the first launch). Few calls: the cost of an empty block is
    taken off.
    """

    def __init__(self, runner: Runner, plan: BlockPlan) -> None:
        self.runner, self.plan = runner, plan
        self._empty_s = plan.empty_s
        self.slope = plan.calls >= (2 if runner.asynchronous else _HOST_SLOPE_CALLS) and runner.before_each is None

    def read_s(self) -> float:
        """Seconds per call, from one block."""
        calls = self.plan.calls
        if self.slope:
            short = self.runner.block_s(1)
            return (self.runner.block_s(calls) - short) / (calls - 1)
        return (self.runner.block_s(calls) - calls_cost(self.runner, calls, self._empty_s)) / calls

    def settle(self) -> None:
        """One untimed call after another function has run, where that is cheap beside the block."""
        if self.plan.calls >= 4:
            self.runner.block_s(1)

    def check_empty(self) -> None:
        """Measures the cost of an empty block again: the state of the machine may have changed it."""
        self._empty_s = median(self.runner.block_s(0) for _ in range(5))


def calls_cost(runner: Runner, calls: int, empty_s: float) -> float:
    """What to take off a block of `calls`: the empty block, once, or once a call where each call is timed by itself."""
    return empty_s * (calls if runner.before_each is not None else 1)
