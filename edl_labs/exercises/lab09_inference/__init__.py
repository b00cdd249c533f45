"""The exercises of lab09_inference: a trained network made smaller, with the same answers."""

from __future__ import annotations

from edl_labs.exercises.lab09_inference.activation_arenas import ArenaOfActivations
from edl_labs.exercises.lab09_inference.engine_tactics import EngineOfTactics
from edl_labs.exercises.lab09_inference.folded_layers import FoldBatchNorm
from edl_labs.exercises.lab09_inference.integer_products import Int8Product
from edl_labs.exercises.lab09_inference.integer_scales import Calibrate
from edl_labs.exercises.lab09_inference.sparse_weights import TwoOfFourWeights

EXERCISES = (
    FoldBatchNorm,
    Calibrate,
    Int8Product,
    TwoOfFourWeights,
    ArenaOfActivations,
    EngineOfTactics,
)
