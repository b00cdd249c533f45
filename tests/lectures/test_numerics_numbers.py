"""Numbers of decks [000] and [002] that the numerics library gives."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint_sequential

from edl_labs.numerics import BF16, FP16, FP32, bytes_per_parameter, checkpointing_slots, saved_activations
from edl_labs.units import byte_count


class Checkpointed(nn.Module):
    def __init__(self, layers: int, segments: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(*(nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(layers)))
        self.segments = segments

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return checkpoint_sequential(self.layers, self.segments, x, use_reentrant=True)


@pytest.mark.parametrize(
    ("layers", "segments", "expected"),
    [(64, 1, 128), (64, 4, 35), (64, 8, 23), (64, 16, 23), (64, 32, 35), (16, 1, 32), (16, 2, 17), (16, 4, 11)],
)
def test_deck_002_checkpointing_counted_by_hooks(layers: int, segments: int, expected: int) -> None:
    x = torch.ones(2, 4, requires_grad=True)

    assert expected == saved_activations(Checkpointed(layers, segments), x).count


def test_deck_002_checkpointing_costs_the_square_root() -> None:
    assert [(16, 8), (64, 16), (100, 20)] == [
        (n, min(checkpointing_slots(n, c) for c in range(1, n + 1))) for n in (16, 64, 100)
    ]


@pytest.mark.parametrize(
    ("recipe", "per_parameter", "billion"),
    [
        ("fp32 adam", 16, "16 GB"),
        ("amp-000 adam", 16, "16 GB"),
        ("amp-002 adam", 18, "18 GB"),
        ("fp32 adam8bit", 10, "10 GB"),
        ("amp-002 adam8bit", 12, "12 GB"),
        ("fp32 sgd-momentum", 12, "12 GB"),
        ("amp-002 sgd-momentum", 14, "14 GB"),
    ],
)
def test_bytes_a_parameter_in_both_decks(recipe: str, per_parameter: int, billion: str) -> None:
    found = bytes_per_parameter(recipe)

    assert (per_parameter, billion) == (found.resident, byte_count(found.of(1_000_000_000)))


@pytest.mark.parametrize(("fmt", "total"), [(FP16, 9.953), (BF16, 4.0), (FP32, 10.00013)])
def test_a_thousand_hundredths_summed_in_a_format(fmt, total: float) -> None:
    # Formats of the library alone, added one by one; torch's own sums are the lab's.
    term, running = fmt.round(0.01), 0.0
    for _ in range(1000):
        running = fmt.round(running + term)

    assert total == pytest.approx(running, abs=5e-4)
