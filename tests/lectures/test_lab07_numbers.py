"""Every number of a lecture that lab07_many_gpus quotes, recomputed, and found in the lab's text as recomputed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from edl_labs.roofline.network import ring_bytes

LAB = Path(__file__).resolve().parents[2] / "solutions" / "lab07_many_gpus" / "lab07_many_gpus.py"
TEXT = re.sub(r"\s*\n# ?", " ", LAB.read_text(encoding="utf-8"))


def says(*texts: str) -> list[str]:
    """Those of `texts` that the lab does not say."""
    return [text for text in texts if text not in TEXT]


@pytest.mark.parametrize("ranks", [2, 8, 64])
def test_the_intensity_of_data_parallel_training_falls_with_the_ranks(ranks):
    """An update of M x K weights takes MKN/P multiply-adds a rank; a ring sends 2(P-1)/P of their 4MK bytes, twice."""
    m, k, n = 256, 512, 4096
    flop = 2 * m * k * n / ranks
    sent = 2 * (ranks - 1) / ranks * 4 * m * k

    assert n / (4 * (ranks - 1)) == pytest.approx(flop / sent)
    assert sent == pytest.approx(ring_bytes(4 * m * k, nodes=ranks))
    assert [] == says("`N/4` FLOP/B against its network ridge of 1000", "`N/(4(P - 1))`", "6 GB/s")


def test_the_network_ridge_of_the_deck():
    assert 1000 == 6e12 / 6e9
