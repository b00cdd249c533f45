"""The exercises of lab10_capstone: what a run costs, which batch ends first, what fixes gain and change."""

from __future__ import annotations

from edl_labs.exercises.lab10_capstone.batches_to_quality import TimeToQuality
from edl_labs.exercises.lab10_capstone.curves_of_seeds import SameCurve
from edl_labs.exercises.lab10_capstone.ranked_gains import RankGains
from edl_labs.exercises.lab10_capstone.run_prices import Cost

EXERCISES = (
    Cost,
    TimeToQuality,
    RankGains,
    SameCurve,
)
