"""The exercises of lab05_profiling: reading profiles, writing one, and naming, blaming and fixing what is slow."""

from __future__ import annotations

from edl_labs.exercises.lab05_profiling.layer_profiler import LayerProfiler
from edl_labs.exercises.lab05_profiling.monitors import ReadTheMonitors
from edl_labs.exercises.lab05_profiling.own_traces import OwnTraces
from edl_labs.exercises.lab05_profiling.planted_faults import Planted
from edl_labs.exercises.lab05_profiling.rows_and_samples import ReadASampler, SelfTimes
from edl_labs.exercises.lab05_profiling.schedule_and_monitor import ScheduleStates, UtilisationLies
from edl_labs.exercises.lab05_profiling.step_patterns import BlamedLine, MostToGain, NameThePattern

EXERCISES = (
    SelfTimes,
    NameThePattern,
    BlamedLine,
    Planted,
    OwnTraces,
    ReadASampler,
    ScheduleStates,
    LayerProfiler,
    UtilisationLies,
    MostToGain,
    ReadTheMonitors,
)
