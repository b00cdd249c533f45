"""Steps on many GPUs, calibration, and the command."""

from __future__ import annotations

import json

import pytest
import torch
from torch import nn
from typer.testing import CliRunner

from edl_labs.cli import app
from edl_labs.errors import EdlError
from edl_labs.predict import MachineCard, calibrate, predict_step


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


def stack(width=2048, depth=8):
    with torch.device("meta"):
        return nn.Sequential(*(Block(width) for _ in range(depth)))


@pytest.fixture(scope="module")
def alone():
    return predict_step(
        stack(), torch.empty(4096, 2048, device="meta"), "A100-80GB", dtype="amp_bf16", optimizer="adamw"
    )


def test_data_parallel_takes_no_less_and_fast_links_hide_it(alone):
    many = alone.what_if(gpus=8)

    assert alone.step_s <= many.step_s < 1.3 * alone.step_s
    assert many.samples_per_s > 6 * alone.samples_per_s
    assert "communication" != many.limiter


def test_slow_links_limit_the_step(alone):
    slow = alone.what_if(gpus={"gpus": 64, "inside_byte_per_s": 16e9, "outside_byte_per_s": 1e9, "zero": 3})

    assert "communication" == slow.limiter


def test_shards_hold_less(alone):
    held = [alone.what_if(gpus={"gpus": 8, "zero": stage}).held for stage in range(4)]

    assert held[0]["optimizer"] == pytest.approx(8 * held[1]["optimizer"], rel=0.01)
    assert held[0]["parameters"] == pytest.approx(8 * held[3]["parameters"], rel=0.01)
    peaks = [sum(one.values()) for one in held]
    assert peaks == sorted(peaks, reverse=True)


def test_tensor_and_pipeline_parallel_split_the_work(alone):
    tensor, pipe = (
        alone.what_if(gpus=spread) for spread in ({"gpus": 8, "tp": 8}, {"gpus": 4, "pp": 4, "micro_batches": 16})
    )

    assert tensor.flops == pytest.approx(alone.flops / 8, rel=0.05)
    assert alone.step_s / 8 < tensor.step_s < alone.step_s
    assert tensor.limits["communication"] > 0
    assert pipe.held["parameters"] == pytest.approx(alone.held["parameters"] / 4, rel=0.01)


class FakeBench:
    """An A100 whose figures are known."""

    name = "NVIDIA A100-SXM4-80GB"

    def product_s(self, dtype, size):
        return 2.0 * size**3 / {"fp16": 250e12, "bf16": 240e12, "tf32": 120e12, "fp32": 18e12}[dtype]

    def stream_s(self, nbytes):
        return 2.0 * nbytes / 1.7e12

    def small_s(self, count):
        return 2.5e-6, 9e-6


def test_calibration_makes_a_card_that_predict_takes():
    card = calibrate(FakeBench())
    again = MachineCard.from_json(json.dumps(card.to_json()))
    model, x = stack().eval(), torch.empty(4096, 2048, device="meta")
    measured, assumed = (predict_step(model, x, machine, dtype="bf16") for machine in (again, "A100-80GB"))

    assert card == again
    assert dict(card.product_flop_per_s)["bf16"] == pytest.approx(240e12)
    assert (1.7e12, 2.5e-6, 9e-6) == pytest.approx(
        (card.stream_measured_byte_per_s, card.kernel_floor_s, card.host_op_s)
    )
    assert {"stream", "host", "kernel floor"} < set(measured.measured)
    assert not measured.assumed
    assert assumed.assumed
    assert measured.step_s != assumed.step_s


def test_a_faster_measured_product_makes_a_faster_step():
    class Faster(FakeBench):
        def product_s(self, dtype, size):
            return super().product_s(dtype, size) / 1.2

    model, x = stack().eval(), torch.empty(4096, 2048, device="meta")
    slow, fast = (predict_step(model, x, calibrate(bench()), dtype="bf16").step_s for bench in (FakeBench, Faster))

    assert fast < 0.95 * slow


def test_a_clock_that_did_not_wait_is_refused():
    class Hasty(FakeBench):
        def stream_s(self, nbytes):
            return 1e-9

    with pytest.raises(EdlError, match="is impossible"):
        calibrate(Hasty())


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU to calibrate")
def test_without_a_gpu_calibration_says_where_to_run_it():
    with pytest.raises(EdlError, match="no CUDA GPU"):
        calibrate()


def test_the_command_predicts_a_model_of_ones_own(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import torch\n\ndef make():\n    return torch.nn.Linear(64, 64), torch.empty(8, 64, device='meta')\n"
    )
    trace, card = tmp_path / "step.json", tmp_path / "card.json"
    card.write_text(json.dumps(calibrate(FakeBench()).to_json()))
    found = CliRunner().invoke(app, ["predict", f"{tmp_path}/mine.py:make", "-m", "T4", "--json", "--batch", "32"])
    table = CliRunner().invoke(
        app, ["predict", f"{tmp_path}/mine.py:make", "-m", "T4", "-m", str(card), "--trace", str(trace)]
    )

    assert 0 == found.exit_code, found.output
    assert {"machine": "T4", "batch": 32, "limiter": "launch"}.items() <= json.loads(found.output).items()
    assert 0 == table.exit_code, table.output
    assert "A100-80GB" in table.output
    assert json.loads(trace.read_text())["traceEvents"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["foo"], "is not the name of a model"),
        (["nowhere.py:make"], "there is no file"),
        (["torchvision:resnet51"], "torchvision has no model"),
        (["torchvision:resnet18", "-m", "nothing.json"], "there is no card"),
        (["torchvision:resnet18", "--price", "H100"], "is not a price"),
    ],
)
def test_the_command_says_what_is_wrong(arguments, said):
    found = CliRunner().invoke(app, ["predict", *arguments])

    assert said in str(found.exception)
