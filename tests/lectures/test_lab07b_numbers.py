"""Every number of a lecture that lab07b_models_that_do_not_fit quotes, recomputed, and found in the lab's text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from edl_labs.numerics import bytes_per_parameter
from edl_labs.roofline.network import zero_calls

NAME = "lab07b_models_that_do_not_fit"
LAB = Path(__file__).resolve().parents[2] / "solutions" / NAME / f"{NAME}.py"
TEXT = re.sub(r"\s*\n# ?", " ", LAB.read_text(encoding="utf-8"))


def says(*texts: str) -> list[str]:
    """Those of `texts` that the lab does not say."""
    return [text for text in texts if text not in TEXT]


def test_what_7_5_billion_parameters_hold_on_one_gpu_and_on_64():
    kept = [bytes_per_parameter("half+master adam", zero_stage=stage, gpus=64).of(7_500_000_000) for stage in (0, 3)]

    assert [120e9, 1.875e9] == kept
    assert [] == says("7.5 billion parameters take 120 GB on every GPU; sharded over 64 GPUs, they take 1.9 GB")


def test_a_sharded_step_sends_half_as_much_again():
    sent = [sum(call.sent_bytes(64) for call in zero_calls(stage, 7.5e9, ranks=64)) for stage in (0, 3)]

    assert 1.5 == pytest.approx(sent[1] / sent[0])


def test_the_bubble_of_four_stages():
    bubbles = [(4 - 1) / (micro + 4 - 1) for micro in (16, 4)]

    assert [3 / 19, 3 / 7] == bubbles
    assert ["15.8 %", "42.9 %"] == [f"{100 * bubble:.1f} %" for bubble in bubbles]
