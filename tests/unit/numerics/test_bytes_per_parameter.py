"""Bytes per parameter, against the decks and against what torch really holds."""

from __future__ import annotations

import json

import pytest
import torch
from torch import nn

from edl_labs.errors import UsageError
from edl_labs.numerics import Recipe, bytes_per_parameter, training_state


def trained(dtype: torch.dtype, make, *, autocast: bool = False) -> tuple[nn.Module, torch.optim.Optimizer]:
    model = nn.Sequential(nn.Linear(64, 64, bias=False), nn.ReLU(), nn.Linear(64, 64, bias=False)).to(dtype)
    optimizer = make(model.parameters())
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        loss = model(torch.ones(4, 64, dtype=dtype)).float().sum()
    loss.backward()
    optimizer.step()
    return model, optimizer


OPTIMIZERS = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "sgd-momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("precision", ["fp32", "amp", "bf16"])
def test_what_is_counted_after_a_step_is_what_the_recipe_says(precision: str, optimizer: str) -> None:
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    held = training_state(*trained(dtype, OPTIMIZERS[optimizer], autocast=precision == "amp"))
    said = bytes_per_parameter(Recipe(precision, optimizer))
    count = 2 * 64 * 64

    assert {part: count * getattr(said, part) for part in ("weights", "gradients", "optimizer")} == {
        part: held[part] for part in ("weights", "gradients", "optimizer")
    }


@pytest.mark.parametrize(("stage", "per_parameter"), [(0, 16.0), (1, 4 + 12 / 64), (2, 2 + 14 / 64), (3, 16 / 64)])
def test_zero_shards_one_part_more_with_each_stage(stage: int, per_parameter: float) -> None:
    # Rajbhandari et al. 2020, figure 1: 120, 31.4, 16.6 and 1.9 GB for 7.5 G parameters on 64 GPUs.
    found = bytes_per_parameter("half+master adam", zero_stage=stage, gpus=64)

    assert per_parameter == pytest.approx(found.resident)
    assert (120e9, 31.4e9, 16.6e9, 1.9e9)[stage] == pytest.approx(found.of(7_500_000_000), rel=0.02)


def test_one_gpu_shards_nothing() -> None:
    assert 16.0 == bytes_per_parameter("amp adam", zero_stage=3, gpus=1).resident


def test_offloaded_parts_are_the_hosts() -> None:
    found = bytes_per_parameter("half+master adam", offload=("optimizer", "master"), zero_stage=1, gpus=4)

    assert (4.0, 3.0) == (found.resident, found.host)


def test_the_two_lecturers_and_pytorch_are_reconciled() -> None:
    accounts = [bytes_per_parameter(f"{name} adam") for name in ("half+master", "both+fp32grad", "amp")]

    assert [(16.0, 16.0), (18.0, 18.0), (16.0, 18.0)] == [(a.resident, a.peak) for a in accounts]


def test_tied_weights_count_once() -> None:
    model = nn.Sequential(nn.Linear(8, 8, bias=False), nn.Linear(8, 8, bias=False))
    model[1].weight = model[0].weight

    assert 4 * 64 == training_state(model)["weights"]


def test_words_for_the_same_recipe_mean_the_same() -> None:
    assert bytes_per_parameter("amp-002 8bit-adam").resident == bytes_per_parameter("both+fp32grad adam8bit").resident
    assert 16.0 == json.loads(json.dumps(bytes_per_parameter("fp32").to_json()))["resident"]


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: bytes_per_parameter("fp12 adam"), "there is no precision"),
        (lambda: bytes_per_parameter("fp32 adagrad9"), "there is no optimizer"),
        (lambda: bytes_per_parameter("fp32 adam zero"), "a precision and an optimiser"),
        (lambda: bytes_per_parameter("fp32", zero_stage=4), "no ZeRO stage"),
        (lambda: bytes_per_parameter("fp32", gpus=0), "whole number"),
        (lambda: bytes_per_parameter("fp32", offload=("activations",)), "cannot offload"),
        (lambda: bytes_per_parameter("fp32", stage=1), "a recipe has no stage"),
    ],
)
def test_what_is_no_recipe_is_refused_with_the_reason(make, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        make()

    assert text in str(caught.value)


def test_a_model_of_shapes_alone_holds_each_of_its_tensors() -> None:
    model = nn.Sequential(nn.Linear(4, 4, device="meta"), nn.Linear(4, 4, device="meta"))

    assert 160 == training_state(model)["weights"]
