"""Every number of a lecture that lab10_capstone quotes, recomputed, and found in the lab's text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.lectures.decks import quotation

NAME = "lab10_capstone"
LAB = Path(__file__).resolve().parents[2] / "solutions" / NAME / f"{NAME}.py"
TEXT = re.sub(r"\s*\n# ?", " ", LAB.read_text(encoding="utf-8"))


def says(*texts: str) -> list[str]:
    """Those of `texts` that the lab does not say."""
    return [text for text in texts if text not in TEXT]


def test_the_slides_machine_has_its_ridge_at_43():
    """Deck [004]: intensity N M / (2 (N + 2 M)) for N = 1024, 6 TFLOP/s, 300 GB/s."""
    ridge = 6e12 / 300e9
    batch = 2 * ridge * 1024 / (1024 - 4 * ridge)

    assert (20, 43.4) == (ridge, round(batch, 1))
    assert [] == says("6 TFLOP/s and 300 GB/s", "a layer of 1024 × 1024 in fp32", "the ridge of 43.4")


def test_the_lab_moves_what_the_slide_moves(lab):
    moved = lab["LAYER"]["weight_bytes"] + 43 * lab["LAYER"]["sample_bytes"]

    assert 1024 * 43 / (2 * (1024 + 2 * 43)) == pytest.approx(43 * lab["LAYER"]["sample_flop"] / moved)


def test_with_a_critical_batch_of_256_the_training_ends_first_at_the_ridge(lab):
    ends = {batch: lab["quality_s"](lab["LAYER"], lab["SLIDE"], batch, 1) for batch in range(1, 513)}
    rate = {batch: batch / lab["step_s"](lab["LAYER"], lab["SLIDE"], batch, 1) for batch in ends}

    # The ridge lies at 43.4: of whole batches 44 is the best, and 43 is within a hundredth of it.
    assert 44 == min(ends, key=ends.get)
    assert ends[43] == pytest.approx(ends[44], rel=1e-2)
    # "Throughput is flat from there on, while the time rises"
    assert rate[44] == pytest.approx(rate[512])
    assert [ends[batch] for batch in range(44, 513)] == sorted(ends[batch] for batch in range(44, 513))
    assert ends[512] / ends[44] == pytest.approx(2.56, abs=0.005)
    assert [] == says("Throughput is flat from there on, while the time rises", "and B_c = 256")


def test_the_experiment_falls_and_rises_as_deck_004_says():
    assert quotation("004_minibatch", "falls, then rises again with M")


def test_training_does_six_flop_for_a_parameter_and_token_and_eight_with_recomputation(lab):
    run = {**lab["RUN"], "recompute": False}
    trains = {again: lab["hours"]({**run, "recompute": again}, lab["H100"], 8) - 1.0 for again in (False, True)}

    assert 4 / 3 == pytest.approx(trains[True] / trains[False])
    assert 8 * 1.2e9 * 24e9 / (8 * 0.4 * 989e12) / 3600 == pytest.approx(trains[True])
    # "less than a third": the peak for 40 % of it, 6 for 8
    assert 0.4 * 6 / 8 < 1 / 3
    assert [] == says(
        "1.2 billion parameters", "24 billion tokens", "989 TFLOP/s", "6 FLOP for each parameter and token"
    )


def test_what_the_decks_say():
    assert [] == says("*how many resources*", "*how do I not run out of money in the process?*")
    assert [] == says("Deck [004]: *throughput is gameable*", "*go for biggest, cheapest gains*")
