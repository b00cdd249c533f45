"""Every number of a lecture that lab08_kernels quotes, recomputed, and found in the lab's text."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from edl_labs.exercises.lab08_kernels.judge.drawn_stems import stems
from tests.lectures.decks import quotation

NAME = "lab08_kernels"
LAB = Path(__file__).resolve().parents[2] / "solutions" / NAME / f"{NAME}.py"
TEXT = re.sub(r"\s*\n# ?", " ", LAB.read_text(encoding="utf-8"))


def says(*texts: str) -> list[str]:
    """Those of `texts` that the lab does not say."""
    return [text for text in texts if text not in TEXT]


def test_a_warp_is_32_threads_and_takes_all_paths():
    from edl_labs.virtual.warp import LANES

    assert LANES == int(quotation("001_warps", r"groups of (\d+) called warps"))
    quoted = quotation("001_warps", r"warp executes one instruction at a time: in case of branching, .*")
    assert [] == says(f'"a {quoted}"', f"{LANES} consecutive threads form a *warp*")


def test_108_and_109_tiles_on_an_a100():
    sms = int(quotation("002_tiles", r"A100 GPU has (\d+) SMs"))

    assert (108, 1, 2) == (sms, -(-108 // sms), -(-109 // sms))
    assert "50.5 %" == f"{100 * 109 / (2 * sms):.1f} %"
    assert "256x128" == quotation("002_tiles", r"Assume (\w+) thread block tiles")
    assert quotation("002_tiles", r"Larger tiles run more efficiently") in TEXT
    assert [] == says(
        "On an A100, 108 tiles of 256 × 128 take one wave, but 109 tiles take two",
        "only 50.5 % of the work that two waves",
    )


def test_a_product_of_1024_has_64_tiles_of_128():
    assert 64 == (1024 // 128) ** 2
    assert [] == says("1024 × 1024 has 64 tiles of 128 × 128 for 108 SMs")


def convolution(*, depthwise: bool) -> tuple[float, float]:
    """FLOP and bytes of a 3 × 3 convolution of 64 channels on 32 images of 56 × 56 pixels in 2-byte types."""
    channels, pixels = 64, 32 * 56 * 56
    inputs = 1 if depthwise else channels
    flop = 2 * channels * pixels * inputs * 9
    return flop, 2 * (2 * channels * pixels + channels * inputs * 9)


def test_64_times_fewer_flop_are_2_07_times_as_quick_on_a_v100():
    (dense, dense_bytes), (thin, thin_bytes) = convolution(depthwise=False), convolution(depthwise=True)
    took = [max(flop / 125e12, size / 0.9e12) for flop, size in ((dense, dense_bytes), (thin, thin_bytes))]

    assert 64 == dense / thin
    assert ["287.2", "4.50"] == [f"{dense / dense_bytes:.1f}", f"{thin / thin_bytes:.2f}"]
    assert 2.07 == pytest.approx(took[0] / took[1], abs=0.005)
    assert max(took) / 32 < 5e-6 < min(took)
    assert [] == says("287.2 FLOP/B", "4.50")
    assert 138.9 == pytest.approx(125e12 / 0.9e12, abs=0.05)  # deck [002]'s ridge: one is above, one below


def test_what_the_deck_says_of_first_layers():
    assert "depth-wise" == quotation("002_first_layers", r"dense convolutions instead of ([\w-]+)")
    assert "squeeze-and-excitation" == quotation("002_first_layers", r"no ([\w-]+) layers")
    assert "PixelShuffle" == quotation("002_first_layers", r"torch\.nn\.(\w+)\(")
    assert [] == says(
        "dense convolutions instead of depth-wise ones, no squeeze-and-excitation", "It says PixelShuffle"
    )


def test_the_multiples_that_deck_002_asks_for_are_those_that_are_drawn():
    int8 = tuple(map(int, quotation("002_shapes", r"efficient with multiples of (16); on A100, multiples of (\d+)")))
    fp16 = tuple(map(int, quotation("002_shapes", r"efficient with multiples of (8); on A100, multiples of (\d+)")))
    drawn = {case["machine"]["multiple"] for seed in range(20) for case in stems(np.random.default_rng(seed))}

    assert ((16, 128), (8, 64)) == (int8, fp16)
    assert {fp16[0], int8[0], fp16[1]} == drawn
    assert [] == says('in FP16 "multiples of 8; on A100, multiples of 64", in INT8 multiples of 16')


def test_what_deck_004_asks_of_accesses():
    assert f'asks for "{quotation("004_access", r"/ (coalesced access on GPU)")}"' in TEXT


def test_the_inverse_of_pixel_shuffle_makes_an_image_smaller():
    torch = pytest.importorskip("torch")
    image = torch.zeros(1, 3, 8, 8)

    assert (1, 48, 2, 2) == tuple(torch.nn.PixelUnshuffle(4)(image).shape)
    with pytest.raises(RuntimeError):
        torch.nn.PixelShuffle(4)(image)


def test_a_quarter_of_the_chip():
    assert [4, 27] == [108 // 27, 108 // 4]
    assert [] == says("A kernel of 27 blocks leaves three quarters of them idle")
