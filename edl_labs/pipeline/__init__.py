"""Feeding the model: synthetic data, formats, the stage ladder, decoders, batching, and whose fault a slow loop is.

>>> from edl_labs.pipeline import waste
>>> waste([3, 5, 8], [[0, 1, 2]]).padded_tokens
8
"""

from __future__ import annotations

from edl_labs.arguments import lazy_facade

_MODULES = {
    "edl_labs.device": ("usable_cores",),
    "edl_labs.pipeline._fault_of_times": ("Fault", "fault_of_times"),
    "edl_labs.pipeline._feed": ("WorkerDied", "feed"),
    "edl_labs.pipeline._frontier": (
        "Frontier",
        "FrontierPoint",
        "Packing",
        "Shuffling",
        "frontier",
        "pack",
        "shuffling",
    ),
    "edl_labs.pipeline._measure_ladder": (
        "ImageDataset",
        "Ladder",
        "Rung",
        "Stage",
        "collate",
        "image_stages",
        "measure_ladder",
    ),
    "edl_labs.pipeline._rank_decoders": ("DecoderRanks", "rank_decoders"),
    "edl_labs.pipeline._run_loader": ("LoaderRun", "run_loader"),
    "edl_labs.pipeline._within": ("TookTooLong", "within"),
    "edl_labs.pipeline.batching": (
        "Waste",
        "bucket_batches",
        "budget_batches",
        "pad_collate",
        "random_batches",
        "waste",
    ),
    "edl_labs.pipeline.errors": ("BrokenSample", "DiskFull"),
    "edl_labs.pipeline.fault_runs": ("busy_step", "sleeping_step", "whose_fault"),
    "edl_labs.pipeline.format_readers": ("EmptyShard",),
    "edl_labs.pipeline.jpeg": (
        "Agreement",
        "Decoder",
        "agreement",
        "check_jpeg",
        "decoder",
        "decoders",
        "jpeg_size",
        "missing_decoders",
    ),
    "edl_labs.pipeline.loader_model": (
        "Contention",
        "LoaderModel",
        "fit_contention",
        "measure_contention",
        "measure_handoff",
        "sharing_rate",
    ),
    "edl_labs.pipeline.page_cache": ("CacheState", "cache_state", "make_cold", "make_warm", "require_cold"),
    "edl_labs.pipeline.pitfalls": (
        "SharedMemory",
        "main_dataset",
        "private_growth_bytes",
        "seed_report",
        "shared_memory",
        "start_cost_s",
    ),
    "edl_labs.pipeline.stores": ("FORMATS", "Store", "write"),
    "edl_labs.pipeline.processor_time": ("TimeSplit", "measure_waiting"),
    "edl_labs.pipeline.synthetic_data": ("DataSet", "as_array", "image_set", "table_set", "token_set"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}
__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_facade(__name__, _HOMES)
