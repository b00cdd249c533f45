"""The exercises of lab09b_serving: what a decoder keeps and reads for a token, and who runs when."""

from __future__ import annotations

from edl_labs.exercises.lab09b_serving.batching_policies import Batcher
from edl_labs.exercises.lab09b_serving.cached_attention import KVCache
from edl_labs.exercises.lab09b_serving.decode_rooflines import DecodeBound
from edl_labs.exercises.lab09b_serving.micro_batch_schedules import MicroBatch
from edl_labs.exercises.lab09b_serving.paged_admission import Continuous
from edl_labs.exercises.lab09b_serving.request_streams import Streams

EXERCISES = (
    KVCache,
    DecodeBound,
    Continuous,
    Batcher,
    Streams,
    MicroBatch,
)
