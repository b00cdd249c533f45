"""Feeding the model: synthetic data, formats, the stage ladder, decoders, batching, and whose fault a slow loop is.

>>> from edl_labs.pipeline import waste
>>> waste([3, 5, 8], [[0, 1, 2]]).padded_tokens
8
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "DecoderRanks": "decoder_ranks",
    "rank_decoders": "decoder_ranks",
    "Overlap": "overlap",
    "device_overlap": "overlap",
    "ideal_makespan_s": "overlap",
    "overlap_of_timeline": "overlap",
    "overlap_of_trace": "overlap",
    "virtual_overlap": "overlap",
    "SharedMemory": "pitfalls",
    "main_dataset": "pitfalls",
    "private_growth_bytes": "pitfalls",
    "seed_report": "pitfalls",
    "shared_memory": "pitfalls",
    "start_cost_s": "pitfalls",
    "too_many_workers": "pitfalls",
    "Agreement": "jpeg_decoders",
    "Decoder": "jpeg_decoders",
    "agreement": "jpeg_decoders",
    "decoder": "jpeg_decoders",
    "decoders": "jpeg_decoders",
    "missing_decoders": "jpeg_decoders",
    "ImageDataset": "images",
    "Stage": "images",
    "collate": "images",
    "image_stages": "images",
    "Ladder": "stage_ladder",
    "Rung": "stage_ladder",
    "measure_ladder": "stage_ladder",
    "LoaderRun": "loader",
    "WorkerDied": "loader",
    "feed": "loader",
    "run_loader": "loader",
    "Contention": "prediction",
    "LoaderModel": "prediction",
    "fit_contention": "prediction",
    "measure_contention": "prediction",
    "measure_handoff": "prediction",
    "usable_cores": "prediction",
    "DataSet": "data",
    "image_set": "data",
    "token_set": "data",
    "table_set": "data",
    "as_array": "data",
    "FORMATS": "formats",
    "Store": "formats",
    "write": "formats",
    "BrokenSample": "broken",
    "DiskFull": "broken",
    "EmptyShard": "format_readers",
    "CacheState": "page_cache",
    "cache_state": "page_cache",
    "make_cold": "page_cache",
    "make_warm": "page_cache",
    "require_cold": "page_cache",
    "check_jpeg": "jpeg",
    "jpeg_size": "jpeg",
    "TookTooLong": "limits",
    "within": "limits",
    "Waste": "waste_meter",
    "waste": "waste_meter",
    "Shuffling": "randomness",
    "shuffling": "randomness",
    "random_batches": "batching",
    "bucket_batches": "batching",
    "budget_batches": "batching",
    "pad_collate": "batching",
    "Packing": "packing",
    "pack": "packing",
    "pack_arrays": "packing",
    "segment_mask": "packing",
    "Frontier": "frontier_points",
    "FrontierPoint": "frontier_points",
    "frontier": "frontier_points",
    "Fault": "fault",
    "whose_fault": "fault",
    "fault_of_times": "fault",
    "mock_loader": "mock",
    "mock_trainer": "mock",
    "sleeping_step": "mock",
    "busy_step": "mock",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"edl_labs.pipeline.{_HOMES[name]}"), name)
    raise AttributeError(f"edl_labs.pipeline has no {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return __all__
