"""Every number of a lecture that lab06_memory quotes, recomputed, and found in the lab's text as recomputed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from edl_labs.numerics import checkpointed_peak, checkpointing_slots

LAB = Path(__file__).resolve().parents[2] / "solutions" / "lab06_memory" / "lab06_memory.py"
TEXT = re.sub(r"\s*\n# ?", " ", LAB.read_text(encoding="utf-8"))


def says(*texts: str) -> list[str]:
    """Those of `texts` that the lab does not say."""
    return [text for text in texts if text not in TEXT]


def windows(batches: int, size: int) -> list[int]:
    return [min(size, batches - start) for start in range(0, batches, size)]


def test_ten_batches_in_windows_of_four():
    assert [4, 4, 2] == windows(10, 4)
    assert [] == says("10 batches and 4 accumulation steps", "4, 4 and **2** batches")


@pytest.mark.slow  # torch's optimizers take seconds to import
def test_the_slides_loop_moves_no_weight():
    import torch

    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    for number in range(10):
        (weight.square().sum() / 4).backward()
        if (number + 1) % 4 == 0 or number + 1 == 10:
            optimizer.zero_grad()
            optimizer.step()

    assert 0.0 == float((weight - 1).detach().abs().sum())
    assert re.search(r"len\(batches\):\s+optimizer\.zero_grad\(\)\s+optimizer\.step\(\)", TEXT)


def test_the_last_window_is_half_as_long():
    assert 0.5 == windows(10, 4)[-1] / 4
    assert [] == says("the last step is half as long as it should be")


def test_u_curve_of_64_layers(lab):
    held = [checkpointed_peak(64, count, saved_per_layer=2) for count in (1, 4, 8, 16, 32)]

    assert [128, 35, 23, 23, 35] == held
    assert (8, 23, 56) == lab["best_segments"](64, 2)
    assert [] == says(
        "64 layers with two saved tensors each: 128 in all",
        "which number of segments, 4, 8, 16 or 32, holds the fewest",
    )


@pytest.mark.parametrize(("layers", "slots"), [(16, 8), (64, 16), (100, 20)])
def test_the_textbooks_slots_follow_the_square_root(layers, slots):
    assert slots == min(checkpointing_slots(layers, count) for count in range(1, layers + 1))


def test_one_more_forward_pass_is_a_third_more():
    forward_s, backward_s = 1, 2

    assert pytest.approx(4 / 3) == (2 * forward_s + backward_s) / (forward_s + backward_s)
    assert [] == says("a backward pass takes twice as long as a forward pass, that is at most 4/3 of the time")


def test_a_batch_norm_after_four_updates(lab):
    parts = [{"count": 16, "mean": 1.0, "variance": 1.0}] * 4

    assert 0.1 == pytest.approx(lab["running_statistics"]((0.0, 1.0), parts, momentum=0.1)[0])
    running = (0.0, 1.0)
    for part in parts:
        running = lab["running_statistics"](running, [part], momentum=0.1)
    assert 1 - 0.6561 == pytest.approx(running[0])


def test_what_the_explained_model_needs():
    """1.5 billion parameters with Adam in fp32, and 64 examples of 900 MB, on 40 GB: two halvings fit, one does not."""
    state, activations, each = 16 * 1.5e9, 64 * 900e6, 900e6 / 36

    assert (24e9, 57.6e9) == (state, pytest.approx(activations))
    assert state + activations / 4 < 40e9 < state + activations / 2
    in_six_segments = 5 * each / 10 + 6 * each
    assert 162.5e6 == pytest.approx(in_six_segments)
    assert 29.2e9 == pytest.approx(state + 32 * in_six_segments)
    assert [] == says(
        "1.5 billion parameters", "900 MB per example", "40 GB", "36 equal layers", "is a tenth of what it"
    )
    assert [] == says("a forward pass with 64 takes 0.9 s, a backward pass takes 1.8 s")
