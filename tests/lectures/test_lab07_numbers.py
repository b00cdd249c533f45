"""Every number of a lecture that lab07_many_gpus quotes, recomputed, and found in the lab's text as recomputed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from edl_labs.virtual.cluster import ClusterMachine, CollectiveCosts

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
    ring = CollectiveCosts(ClusterMachine.flat(ranks)).plans("all_reduce", tuple(range(ranks)))["ring"]
    assert {(0, rank): pytest.approx(sent) for rank in range(ranks)} == {
        port: share * 4 * m * k for port, share in ring.sent.items()
    }
    assert [] == says("The intensity is `N/4` FLOP/B", "`N/(4(P - 1))`", "6 GB/s")


def test_the_network_ridge_of_the_deck():
    assert 1000 == 6e12 / 6e9


def test_ring_and_tree_cross_where_the_lab_says():
    """20 us and 6 GB/s: 8 ranks cross where 14a + 14/8 nb = 6a + 6nb; 64 ranks and 1 kB pay 126 or 12 rounds."""
    assert 225.9e3 == pytest.approx(8 * 20e-6 * 6e9 / (6 - 14 / 8), rel=1e-3)
    plans = CollectiveCosts(ClusterMachine.flat(64)).plans("all_reduce", tuple(range(64)))
    took = [plans[name].seconds(1000) for name in ("ring", "tree")]

    assert [2.52e-3, 0.242e-3] == pytest.approx(took, rel=1e-2)


def test_four_hundred_sums_of_their_own():
    assert 112e-3 == pytest.approx(400 * 2 * (8 - 1) * 20e-6)
    assert [] == says("a model has 400 tensors, and 8 ranks form a ring with α = 20 µs")
