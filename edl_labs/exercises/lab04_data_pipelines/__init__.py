"""The exercises of lab04_data_pipelines: what to read and how, batches without waste, and feeding a device."""

from __future__ import annotations

from edl_labs.exercises.lab04_data_pipelines.bucket_sampler import BucketSampler
from edl_labs.exercises.lab04_data_pipelines.collate_pad import CollatePad
from edl_labs.exercises.lab04_data_pipelines.decode_once import DecodeOnce
from edl_labs.exercises.lab04_data_pipelines.overlap_plan import OverlapPlan
from edl_labs.exercises.lab04_data_pipelines.pack_sequences import PackSequences
from edl_labs.exercises.lab04_data_pipelines.predict_workers import PredictWorkers
from edl_labs.exercises.lab04_data_pipelines.read_plan import ReadPlan
from edl_labs.exercises.lab04_data_pipelines.stage_ladder import StageLadder
from edl_labs.exercises.lab04_data_pipelines.storage_format import StorageFormat
from edl_labs.exercises.lab04_data_pipelines.threaded_prefetcher import Prefetcher
from edl_labs.exercises.lab04_data_pipelines.whose_fault import WhoseFault

EXERCISES = (
    ReadPlan,
    PredictWorkers,
    BucketSampler,
    OverlapPlan,
    WhoseFault,
    StorageFormat,
    DecodeOnce,
    StageLadder,
    CollatePad,
    PackSequences,
    Prefetcher,
)
