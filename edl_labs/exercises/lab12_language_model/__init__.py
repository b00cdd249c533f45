"""The exercises of lab12_language_model: memory and cost of a training step, weights in four bits, drafted tokens."""

from __future__ import annotations

from edl_labs.exercises.lab12_language_model.block_scales import BlockScales
from edl_labs.exercises.lab12_language_model.cached_bytes import KvInt8
from edl_labs.exercises.lab12_language_model.chunked_losses import ChunkedLoss
from edl_labs.exercises.lab12_language_model.drafted_tokens import Speculate
from edl_labs.exercises.lab12_language_model.low_rank import Lora
from edl_labs.exercises.lab12_language_model.mended_steps import MendTheStep
from edl_labs.exercises.lab12_language_model.packed_weights import GroupInt4
from edl_labs.exercises.lab12_language_model.smoothed_outliers import SmoothOutliers
from edl_labs.exercises.lab12_language_model.step_peaks import WhereThePeakIs

EXERCISES = (WhereThePeakIs, ChunkedLoss, MendTheStep, GroupInt4, Speculate, BlockScales, Lora, SmoothOutliers, KvInt8)
