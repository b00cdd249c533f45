"""A user's file, as strict as type checkers can be asked to be: `test_typing.py` checks it, and it is never run."""

from __future__ import annotations

from typing import assert_type

import numpy as np
import torch

import edl_labs
from edl_labs import Timer, compare, measure, sweep
from edl_labs.bench import Comparison, Measurement, Sweep
from edl_labs.numerics import (
    FP16,
    AutocastTable,
    FloatFormat,
    UnderflowReport,
    autocast_table,
    float_format,
    underflow_report,
)
from edl_labs.pipeline import DataSet, image_set
from edl_labs.roofline import Bound, Count, Machine, bound, ceilings, count
from edl_labs.trace import Attribution, Diagnosis, Trace, attribute, diagnose, read_trace
from edl_labs.virtual import VirtualGPU


def time_things() -> float:
    m = measure(lambda: sum(range(10)), budget_s=0.01)
    assert_type(m, Measurement)
    assert_type(m.median_s, float)
    c = compare({"a": lambda: 1, "b": lambda: 2}, budget_s=0.01)
    assert_type(c, Comparison)
    assert_type(sweep(lambda n: lambda: range(n), {"n": [1, 2]}), Sweep)
    with Timer() as timer, timer.lap("work"):
        pass
    kinds: list[str] = [warning.kind for warning in m.warnings]
    assert_type(edl_labs.compare({"a": len, "b": max}).ratio, float)
    return m.median_s + len(kinds)


def count_things(model: torch.nn.Module, x: torch.Tensor) -> str:
    counted = count(model, x)
    assert_type(counted, Count)
    machine = ceilings()
    assert_type(machine, Machine)
    assert_type(bound(machine, counted.work()), Bound)
    return str(counted)


def look_at_numbers(model: torch.nn.Module, x: torch.Tensor) -> int:
    assert_type(float_format("fp16"), FloatFormat)
    assert_type(underflow_report([1e-8, 1.0], "fp16"), UnderflowReport)
    assert_type(FP16.round(0.1), float)
    assert_type(FP16.round(x), torch.Tensor)
    assert_type(FP16.round([0.1, 0.2]), np.ndarray)
    table = autocast_table(model, x)
    assert_type(table, AutocastTable)
    return len(table.rows)


def look_at_traces(path: str) -> str:
    trace = read_trace(path)
    assert_type(trace, Trace)
    assert_type(attribute(trace), Attribution)
    found = diagnose(trace)
    assert_type(found, Diagnosis)
    return str(found)


def model_a_device() -> float:
    gpu = VirtualGPU("A100-80GB")
    gpu.launch("k", duration_s=1e-5)
    gpu.synchronize()
    return gpu.now_s()


def make_data() -> DataSet:
    return image_set(10)
