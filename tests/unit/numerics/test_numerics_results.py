"""Results of numerics go to JSON and back."""

from __future__ import annotations

import json

import pytest
import torch
from torch import nn

from edl_labs.numerics import (
    Rates,
    alignment,
    autocast_table,
    bytes_per_parameter,
    predict_amp,
    saved_activations,
    tf32_state,
    underflow_report,
)

A100 = Rates.of("A100-80GB")
MODEL, X = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8)), torch.zeros(2, 8)
RESULTS = (
    *(A100, autocast_table(MODEL, X), predict_amp(MODEL, X, A100, dtype=torch.float16), saved_activations(MODEL, X)),
    *(tf32_state(), bytes_per_parameter("amp adam", offload="optimizer")),
    *(underflow_report([1e-8, 1.0], "fp16"), alignment({"outputs": 3}, "fp16")),
)


@pytest.mark.parametrize("result", RESULTS, ids=lambda result: type(result).__name__)
def test_a_result_comes_back_from_its_json(result):
    assert result == type(result).from_json(json.dumps(result.to_json()))
