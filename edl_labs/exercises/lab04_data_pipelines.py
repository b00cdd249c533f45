"""The exercises of lab04_data_pipelines: what to read and how, batches without waste, and feeding a device."""

from __future__ import annotations

from edl_labs.checks.exercise import exercise
from edl_labs.exercises import (
    _lab04_batches,
    _lab04_blame,
    _lab04_feeding,
    _lab04_ladder,
    _lab04_packing,
    _lab04_prefetcher,
    _lab04_reading,
    _lab04_transforms,
)


@exercise("read_plan")
class ReadPlan(_lab04_reading.ReadPlan):
    """Reads that bring all wanted samples of some shards, near the least time on a modelled disk."""


@exercise("storage_format")
class StorageFormat(_lab04_reading.StorageFormat):
    """The cost of a storage format under an access pattern, and the format that it picks."""


@exercise("decode_once")
class DecodeOnce(_lab04_transforms.DecodeOnce):
    """The transforms of a chain that may be done once, offline, without changing what the model sees."""


@exercise("stage_ladder", timeout_s=90)
class StageLadder(_lab04_ladder.StageLadder):
    """What each stage of a pipeline costs alone and with all before it, from cold, by readings of a clock."""


@exercise("predict_workers")
class PredictWorkers(_lab04_ladder.PredictWorkers):
    """Batches per second for a number of workers, and which resource stops it there."""


@exercise("collate_pad")
class CollatePad(_lab04_batches.CollatePad):
    """A batch padded to its longest sequence, rounded up, with a mask that follows the lengths."""


@exercise("bucket_sampler")
class BucketSampler(_lab04_batches.BucketSampler):
    """Batches of like lengths: little waste, every sample once, repeatable, and still shuffled."""


@exercise("pack_sequences")
class PackSequences(_lab04_packing.PackSequences):
    """First-fit-decreasing in O(n log n) comparisons, and the mask that keeps neighbours apart."""


@exercise("overlap_plan")
class OverlapPlan(_lab04_feeding.OverlapPlan):
    """Loading, copying and stepping at the same time with few buffers, within 5 % of the ideal."""


@exercise("prefetcher", trusting=True, timeout_s=150)
class Prefetcher(_lab04_prefetcher.Prefetcher):
    """A real thread that loads ahead: bounded, in order, with its exceptions, and it ends."""


@exercise("whose_fault")
class WhoseFault(_lab04_blame.WhoseFault):
    """Whether a loop is bound by its data, its computation or neither, from its timeline."""
