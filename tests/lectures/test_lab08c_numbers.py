"""Every number of a lecture that lab08c_compilers quotes, recomputed, and found in the lab's text."""

from __future__ import annotations

import math
import re
from pathlib import Path

from tests.lectures.decks import quotation, quotations

NAME = "lab08c_compilers"
LAB = Path(__file__).resolve().parents[2] / "solutions" / NAME / f"{NAME}.py"
TEXT = re.sub(r"\s*\n# ?", " ", LAB.read_text(encoding="utf-8"))
FACTS = re.sub(r"\s+", " ", LAB.with_name("lab.toml").read_text(encoding="utf-8"))


def says(*texts: str) -> list[str]:
    """Those of `texts` that the lab does not say."""
    return [text for text in texts if text not in TEXT]


def test_what_the_tuned_convolution_of_deck_001_takes():
    times = [tuple(map(int, pair)) for pair in quotations("001_cudnn", r"\[us\]\s+(\d+)\s+(\d+)")]
    filters, batch, sizes = map(int, quotation("001_cudnn", r"with (\d+) 3x3.*batch size = (\d+).*height = (\d+)"))

    assert [(1430, 840), (2870, 2260)] == times
    assert (64, 32, 64) == (filters, batch, sizes)
    assert [] == says("| forward | 1430 µs | 840 µs |", "| forward and backward | 2870 µs | 2260 µs |")
    assert [] == says("64 filters of 3x3 on a batch of 32 with 64 channels of 64x64")
    assert [] == says("1430e-6 if unfolds else 840e-6")


def test_deck_002_warns_of_sizes_that_change_and_of_atomic_adds():
    assert quotation("002_cudnn", r"Only use this flag when input sizes of a model are no changing!")
    assert [] == says("[002] warns you to set this flag only if the input sizes of a model do not change.")
    assert quotation("002_cudnn", r"atomicAdd, where the order of parallel additions to the same value is undetermined")


def test_defaults_of_the_flags_are_those_of_deck_002():
    import torch

    told = {
        name: value for value, name in quotations("002_cudnn", r"\(default = (True|False)[^\n]*\)\s+\S+cudnn\.(\w+)")
    }

    assert {"deterministic": "False", "benchmark": "False"} == {
        name: value for name, value in told.items() if name in ("deterministic", "benchmark")
    }
    assert [told[name] for name in told] == [str(getattr(torch.backends.cudnn, name)) for name in told]


def test_what_the_answer_to_flags_says_of_a_validation():
    gained_s = (1430 - 840) * 1e-6

    assert [] == [text for text in ("10 * (1430 - 840) us = 5.9 ms", "500 * 24.1 ms = 12 s") if text not in FACTS]
    assert "5.9" == f"{1e3 * 10 * gained_s:.1f}"
    assert "24.1" == f"{1e3 * (30e-3 - 10 * gained_s):.1f}"
    assert 12 == round(500 * (30e-3 - 10 * gained_s))
    assert 51 == math.ceil(30e-3 / gained_s)
    assert "from 51 calls of a size on it would pay" in FACTS


def test_when_a_trial_that_costs_ten_calls_has_paid():
    assert 25 == math.ceil(10 * 1430 / (1430 - 840))
    assert [] == says("-(-10 * 1430 // (1430 - 840))")
