"""The exercises of lab05_profiling: reading profiles, writing one, and naming, blaming and mending what is slow."""

from __future__ import annotations

from edl_labs.checks.exercise import exercise
from edl_labs.exercises import _lab05_layers, _lab05_patterns, _lab05_planted, _lab05_rows, _lab05_schedule


@exercise("self_times")
class SelfTimes(_lab05_rows.SelfTimes):
    """Self time by name from nested rows of two threads, and the device on which an operator really ran."""


@exercise("read_a_sampler")
class ReadASampler(_lab05_rows.ReadASampler):
    """Own and total shares of the window, own and total seconds of the run, from stack samples."""


@exercise("schedule_states")
class ScheduleStates(_lab05_schedule.ScheduleStates):
    """What a scheduled profiler does at each step: nothing, warm up, record, or record and save."""


@exercise("layer_profiler")
class LayerProfiler(_lab05_layers.LayerProfiler):
    """Seconds of every module, forward and backward, with and without what is inside, and a trace file of them."""


@exercise("utilisation_lies")
class UtilisationLies(_lab05_schedule.UtilisationLies):
    """The monitor's utilisation, and the share of SMs that are at work, from a timeline of kernels."""


@exercise("name_the_pattern")
class NameThePattern(_lab05_patterns.NameThePattern):
    """What a step mostly waits for, from its timeline: one of five patterns."""


@exercise("blame", uses=("name_the_pattern",))
class Blame(_lab05_patterns.Blame):
    """The line of the script that costs a step most by a given pattern."""


@exercise("most_to_gain")
class MostToGain(_lab05_patterns.MostToGain):
    """The speed-up from removing each of five causes, by simulating the step again, and the best of them."""


@exercise("planted")
class Planted(_lab05_planted.Planted):
    """A training script with six inefficiencies, mended one by one while its losses stay the same."""
