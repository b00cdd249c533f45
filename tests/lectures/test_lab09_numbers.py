"""Every number of a lecture that lab09_inference quotes, recomputed, and found in the lab's text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from edl_labs.hardware import accelerator

from .decks import quotation

NAME = "lab09_inference"
LAB = Path(__file__).resolve().parents[2] / "solutions" / NAME / f"{NAME}.py"
TEXT = re.sub(r"\s*\n# ?", " ", LAB.read_text(encoding="utf-8"))


def says(*texts: str) -> list[str]:
    """Those of `texts` that the lab does not say."""
    return [text for text in texts if text not in TEXT]


def test_up_to_30_per_cent_is_46_per_cent_of_the_time_in_products_twice_as_fast(lab):
    faster = 1 + int(quotation("002_inference", r"Up to (\d+)% speed up")) / 100
    share = lab["sparse_share"](faster, peak=2)

    assert 6 / 13 == pytest.approx(share)
    assert faster == pytest.approx(1 / (1 - share + share / 2))
    assert "46 %" == f"{100 * share:.0f} %"
    assert [] == says("making 46 % of it twice as fast gives the 30 % from the slide")


@pytest.mark.parametrize("dtype", ["fp16", "int8"])
def test_sparse_peaks_are_twice_the_dense_ones(dtype):
    chip = accelerator("A100-SXM4-80GB")

    assert 2 == chip.peak_flop_per_s(dtype, sparse=True) / chip.peak_flop_per_s(dtype)


def test_int8_has_twice_the_multiply_adds_of_fp16():
    chip = accelerator("A100-SXM4-80GB")
    clocks = chip.peak_flop_per_s("int8") / chip.peak_flop_per_s("fp16")

    assert 2048 / 1024 == pytest.approx(clocks)


def test_a_bias_in_front_of_a_batch_norm_has_gradient_0():
    torch = pytest.importorskip("torch")
    torch.manual_seed(1)
    layers = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU())
    layers(torch.randn(16, 3, 12, 12)).square().mean().backward()

    assert float(layers[0].bias.grad.abs().max()) < 1e-5 * float(layers[0].weight.grad.abs().max())
    assert [] == says("a bias in front of it has gradient 0")


def test_packed_bytes_and_what_a_request_alone_gains():
    assert 0.5625 == (2 * 2 + 4 / 8) / (4 * 2)
    assert 0.625 == (2 * 1 + 4 / 8) / (4 * 1)
    assert "1.78" == f"{1 / 0.5625:.2f}"
    assert [] == says("1.78 times as fast", "0.5625 of the bytes", "0.625 of them in int8")


@pytest.mark.parametrize(
    "passage",
    [
        "Use BN and activations as they are foldable during inference",
        "Remove bias for convolutional layers followed by batch",
        "ReLU is the best activation as it can be fused with conv-BN",
        "Sometime requires finetuning",
        "Up to 30% speed up",
        "Minimizes memory footprint and re-uses memory for tensors efficiently",
        "Selects best data layers and algorithms based on target GPU platform",
        "Optimizes use of GPU memory and bandwidth by fusing nodes in a kernel",
        "Layer & Tensor Fusion",
        "Kernel Auto-Tuning",
    ],
)
def test_what_is_quoted_stands_on_the_slides_and_in_the_lab(passage):
    assert passage == quotation("002_inference", re.escape(passage))
    assert [] == says(passage)
