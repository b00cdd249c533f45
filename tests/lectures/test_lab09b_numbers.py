"""Every number of a lecture that lab09b_serving quotes, recomputed, and found in the lab's text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from edl_labs.virtual.server import DecoderShape

NAME = "lab09b_serving"
LAB = Path(__file__).resolve().parents[2] / "solutions" / NAME / f"{NAME}.py"
TEXT = re.sub(r"\s*\n# ?", " ", LAB.read_text(encoding="utf-8"))
A100 = {"flop_per_s": 312e12, "memory_byte_per_s": 2.039e12}
SHAPE = {"parameters": 6_738_000_000, "layers": 32, "heads": 32, "kv_heads": 32, "head_size": 128, "number_bytes": 2}


def says(*texts: str) -> list[str]:
    """Those of `texts` that the lab does not say."""
    return [text for text in texts if text not in TEXT]


def intensity(batch: int) -> float:
    """FLOP per byte of deck [002]'s linear layer: 4096 outputs, 1024 inputs, FP16."""
    return 2 * batch * 4096 * 1024 / (2 * (batch * 1024 + 4096 * 1024 + batch * 4096))


def test_the_linear_layer_of_deck_002_and_the_v100():
    assert 0.99878 == pytest.approx(intensity(1), abs=5e-6)
    assert 315 == round(intensity(512))
    assert 138.9 == round(125 / 0.9, 1)
    assert [] == says("4096 outputs and 1024 inputs in FP16", "With a batch of 512 it does 315 FLOP", "(0.99878, to be")
    assert [] == says("A V100 needs 138.9 FLOP/B to be limited by computing")


def test_a_token_leaves_half_a_megabyte_and_4096_two_gibibytes():
    assert (512 * 2**10, 2 * 2**30) == (2 * 32 * 32 * 128 * 2, 4096 * DecoderShape().kv_token_bytes)
    assert [] == says("32 layers and 32 heads of 128 numbers of 2 bytes")


def test_the_ridge_of_an_a100_and_where_no_batch_reaches_it(lab):
    batches = {context: lab["ridge_batch"](A100, SHAPE, context) for context in (1, 169, 170, 2000)}

    assert 153 == round(A100["flop_per_s"] / A100["memory_byte_per_s"])
    assert (154, None, None) == (batches[1], batches[170], batches[2000])
    assert batches[169] is not None
    assert [] == says("an A100 needs 153 FLOP/B")


def test_a_prompt_of_500_takes_as_long_as_three_or_four_tokens(lab):
    share = lab["prefill_s"](A100, SHAPE, 500) / lab["decode_s"](A100, SHAPE, 1, 500)

    assert 3 < share < 4
    assert [] == says("takes no longer than three or four single tokens")


def test_the_questions_of_decks_000_and_001():
    assert [] == says("how do I ensure the model can serve the demand?", '"Larger batches" is deck [000]')
    assert [] == says("*multi-stream execution*", "*time fusion*")
