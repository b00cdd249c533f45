"""What `predict` says of models and settings that it cannot follow: what, why, and what can be predicted instead."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from edl_labs.errors import EdlError, UsageError
from edl_labs.predict import predict_step
from edl_labs.predict.recorded_step import record_step

X = torch.randn(4, 8)


class LooksAtValues(nn.Module):
    def forward(self, x):
        return x * 2 if x.sum() > 0 else x


class Picks(nn.Module):
    def forward(self, x):
        return x[x > 0].sum()


class LeavesTorch(nn.Module):
    def forward(self, x):
        return torch.from_numpy(np.sin(x.numpy()))


REFUSED = {
    "control flow on values": (LooksAtValues(), X, {}, "reads tensor values", "without `.item()`"),
    "shapes from values": (Picks(), X, {}, "reads tensor values", "fixed shape"),
    "numpy": (LeavesTorch(), X, {}, "calls code outside torch", "the part before or after"),
    "an example that does not fit": (nn.Linear(9, 8), X, {}, "cannot be run on this example", "model(*example)"),
    "an example that is no tensor": (nn.Linear(9, 8), "hello", {}, "cannot be run on this example", "model(*example)"),
    "weights in half, inputs not": (nn.Linear(8, 8).half(), X, {}, "cannot be run", "model(*example)"),
    "no layers": (nn.Sequential(), X, {}, "does no work", "a model that does some work"),
    "no samples": (nn.Linear(8, 8), torch.empty(0, 8), {}, "does no work", "at least one sample"),
    "a dtype of torch": (
        nn.Linear(8, 8),
        X,
        {"dtype": torch.float16},
        "dtype must be text or None",
        "amp_fp16",
    ),
    "an unknown dtype": (nn.Linear(8, 8), X, {"dtype": "int3"}, "there is no dtype", "amp_bf16"),
    "an unknown GPU": (nn.Linear(8, 8), X, {"machine": "RTX 9999"}, "no accelerator", "one of these keys"),
    "no GPU": (nn.Linear(8, 8), X, {"machine": None}, "is not a machine", "H100"),
    "no GPUs": (nn.Linear(8, 8), X, {"cluster": 0}, "0 GPUs", "change one"),
    "an unknown optimizer": (nn.Linear(8, 8), X, {"optimizer": "lion"}, "there is no optimizer", "fused_adamw"),
    "an unknown way to checkpoint": (nn.Linear(8, 8), X, {"checkpoint": "all"}, "way of checkpointing", "selective"),
    "nothing to checkpoint": (nn.Linear(8, 8), X, {"checkpoint": True}, "no stack of equal blocks", "in the model"),
    "a number": (3, X, {}, "predict_step() needs a function, got int.", "nn.Module, or a function"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_predicted_is_said_with_a_way_on(name, caplog):
    model, example, options, what, way_on = REFUSED[name]
    with pytest.raises(EdlError) as told:
        predict_step(model, example, **{"machine": "T4"} | options)
    assert what in str(told.value)
    assert "why:" in str(told.value)
    assert way_on in str(told.value).split("next:")[1]
    assert not caplog.records, "torch's log of the failure stays quiet"


def test_a_refused_example_names_both_dtypes():
    with pytest.raises(EdlError, match="float32 and float16"):
        predict_step(nn.Linear(8, 8).half(), X, "T4")


def test_a_model_in_half_on_the_cpu_is_predicted_as_it_is():
    model = nn.Sequential(nn.Linear(64, 64), nn.LayerNorm(64)).half()
    found = predict_step(model, torch.randn(32, 64).half(), "T4", optimizer="adamw")
    assert {one.dtype for one in found.most_expensive if one.name in ("addmm", "mm")} == {"fp16"}
    assert next(model.parameters()).dtype is torch.float16


def test_a_function_of_autograd_is_followed_both_ways():
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            return 2 * x * gradient

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(64, 64)

        def forward(self, x):
            return Square.apply(self.inner(x))

    found = predict_step(Model(), torch.randn(32, 64), "A100-80GB", optimizer="adamw")
    assert sum(one.calls for one in found.most_expensive if one.name == "mul" and one.phase == "backward") == 2


def test_recurrent_layers_are_predicted_and_said_to_be_too_slow():
    found = predict_step(nn.LSTM(8, 16), torch.randn(5, 2, 8), "T4")
    assert found.step_s > 0
    assert any("LSTM" in note and "cuDNN" in note for note in found.notes)
    assert "cuDNN" in repr(found)


def test_checkpoints_pay_in_products_what_they_save_in_memory():
    def block():
        return nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 64))

    model, x = nn.Sequential(*(block() for _ in range(6))), torch.empty(512, 64, device="meta")
    made = {way: record_step(model, x, checkpoint=way) for way in (False, "selective", "half", True)}
    work = {way: sum(one.flops for one in found.kernels) for way, found in made.items()}
    saved = {way: found.moments[0].held["activations"] for way, found in made.items() if found.moments}
    assert work[False] < work["selective"] < work["half"] < work[True]
    assert saved[True] < saved["half"] < saved[False]
    assert saved["selective"] < saved[False]


def test_usage_errors_are_usage_errors():
    with pytest.raises(UsageError):
        predict_step(nn.Linear(8, 8), X, "T4", dtype="float16")
