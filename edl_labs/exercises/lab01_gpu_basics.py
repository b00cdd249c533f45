"""The exercises of lab01_gpu_basics: asynchronous time, speed of light, quantization and transfers."""

from __future__ import annotations

from edl_labs.checks.exercise import exercise
from edl_labs.exercises import (
    _lab01_asynchrony,
    _lab01_faults,
    _lab01_overlap,
    _lab01_quantization,
    _lab01_rates,
    _lab01_timing,
)


@exercise("finish_times")
class FinishTimes(_lab01_asynchrony.FinishTimes):
    """When the host returns and when the device is done, for a program of asynchronous operations."""


@exercise("honest_timer")
class HonestTimer(_lab01_timing.HonestTimer):
    """Steady-state seconds per call, explained by two readings around a drained run of enough calls."""


@exercise("broken_timers")
class BrokenTimers(_lab01_faults.BrokenTimers):
    """Name what is wrong with a timer from what it reported, the truth and the timeline."""


@exercise("peak_from_clock")
class PeakFromClock(_lab01_rates.PeakFromClock):
    """Peak FLOP/s of a chip from its SMs, multiply-adds per clock and clock."""


@exercise("faster_than_light")
class FasterThanLight(_lab01_rates.FasterThanLight):
    """Refuse a time that no machine can reach; otherwise say how close to the bound it came."""


@exercise("tile_quantization")
class TileQuantization(_lab01_quantization.TileQuantization):
    """How many tiles cover a matrix, and which share of their work is wasted."""


@exercise("wave_quantization", uses=("tile_quantization",))
class WaveQuantization(_lab01_quantization.WaveQuantization):
    """How many waves the tiles take, how full they are, and which width below a bound fills them best."""


@exercise("petabyte")
class Petabyte(_lab01_rates.Petabyte):
    """How long an amount of data takes over a link, whatever units the two are written in."""


@exercise("transfer_overlap")
class TransferOverlap(_lab01_overlap.TransferOverlap):
    """Copy in, compute and copy out in chunks that overlap, without a race, near the best known schedule."""
