"""The exercises of lab01_gpu_basics: asynchronous time, speed of light, quantization and transfers."""

from __future__ import annotations

from edl_labs.exercises.lab01_gpu_basics.broken_timers import BrokenTimers
from edl_labs.exercises.lab01_gpu_basics.faster_than_light import FasterThanLight
from edl_labs.exercises.lab01_gpu_basics.finish_times import FinishTimes
from edl_labs.exercises.lab01_gpu_basics.honest_timer import HonestTimer
from edl_labs.exercises.lab01_gpu_basics.rates_and_units import PeakFromClock, Petabyte
from edl_labs.exercises.lab01_gpu_basics.tiles_and_waves import TileQuantization, WaveQuantization
from edl_labs.exercises.lab01_gpu_basics.transfer_overlap import TransferOverlap

EXERCISES = (
    FinishTimes,
    HonestTimer,
    BrokenTimers,
    PeakFromClock,
    FasterThanLight,
    TileQuantization,
    WaveQuantization,
    Petabyte,
    TransferOverlap,
)
