"""The network's roofline: the deck's N/4 and what follows from it for rings, overlap and scaling."""

from __future__ import annotations

import json
import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edl_labs.errors import UsageError
from edl_labs.roofline import network
from edl_labs.roofline.network import Cluster, Training

DECK = Cluster(2, 6e12, 6e9)


@given(minibatch=st.integers(1, 10**6), nodes=st.integers(2, 500))
def test_a_ring_divides_the_decks_intensity_by_the_other_nodes(minibatch, nodes):
    update = network.intensity_flop_per_byte(minibatch, nodes=nodes)

    assert minibatch / (4 * (nodes - 1)) == pytest.approx(update)
    assert 2 * update == network.intensity_flop_per_byte(minibatch, nodes=nodes, overlap="backward")
    assert 2 * update == network.intensity_flop_per_byte(minibatch, nodes=nodes, dtype="bf16")


@given(nodes=st.integers(2, 300), link=st.floats(1e8, 1e12), overlap=st.sampled_from(["update", "backward"]))
def test_the_smallest_minibatch_hides_communication_and_one_less_does_not(nodes, link, overlap):
    cluster = Cluster(nodes, 6e12, link)
    smallest = network.smallest_minibatch(cluster, overlap=overlap)
    here = network.intensity_flop_per_byte(smallest, nodes=nodes, overlap=overlap)

    assert here >= cluster.ridge_flop_per_byte * (1 - 1e-9)
    if smallest > 1:
        fewer = network.intensity_flop_per_byte(smallest - 1, nodes=nodes, overlap=overlap)
        assert fewer < cluster.ridge_flop_per_byte


@given(minibatch=st.integers(1, 10**5), nodes=st.integers(1, 64), overlap=st.sampled_from(["update", "backward"]))
def test_overlap_lies_between_the_maximum_and_the_sum(minibatch, nodes, overlap):
    found = network.step(DECK.of(nodes), Training(1e7), minibatch=minibatch, overlap=overlap)

    assert found.roofline_s <= found.overlapped_s * (1 + 1e-12)
    assert found.overlapped_s <= found.serial_s
    assert found.serial_s <= 2 * found.roofline_s


def test_at_the_smallest_minibatch_the_gradients_just_hide():
    for overlap in ("update", "backward"):
        smallest = network.smallest_minibatch(DECK, overlap=overlap)
        found = network.step(DECK, Training(1e7), minibatch=smallest, overlap=overlap)

        assert found.compute_s == pytest.approx(found.overlapped_s)
        assert found.hidden_s == pytest.approx(found.communicate_s)


def test_a_ring_sends_two_gradients_at_most():
    assert 0 == network.ring_bytes(1e9, nodes=1)
    assert 1e9 == network.ring_bytes(1e9, nodes=2)
    assert 2e9 > network.ring_bytes(1e9, nodes=10**6) > 1.99e9


def test_strong_scaling_ends_and_weak_scaling_goes_on():
    training, counts = Training(60e6), (1, 2, 4, 8, 16, 32, 64)
    strong = network.strong_scaling(DECK, training, minibatch=8192, nodes=counts)
    weak = network.weak_scaling(DECK, training, minibatch_per_node=8192, nodes=counts)

    assert [1.0, 1.0] == [strong[0].efficiency, weak[0].efficiency]
    assert strong[-1].speedup < 16 < weak[-1].speedup
    assert all(a.efficiency >= b.efficiency for a, b in pairwise(strong))
    assert min(point.efficiency for point in weak) > 0.95


def test_without_overlap_every_node_waits():
    together, apart = (
        network.strong_scaling(DECK, Training(60e6), minibatch=8192, nodes=[4], overlapped=overlapped)[0]
        for overlapped in (True, False)
    )

    assert apart.speedup < together.speedup <= 4


def test_latency_of_the_links_adds_two_rounds_of_the_ring():
    slow = Cluster(5, 6e12, 6e9, link_latency_s=1e-3)

    assert 8e-3 == pytest.approx(
        network.step(slow, Training(1e6), minibatch=10).communicate_s
        - network.step(Cluster(5, 6e12, 6e9), Training(1e6), minibatch=10).communicate_s
    )


def test_a_step_names_its_limiter_and_is_plain_data():
    small, large = (network.step(DECK, Training(1e7), minibatch=n) for n in (64, 10**5))

    assert ("network", "compute") == (small.limiter, large.limiter)
    assert large.limiter == json.loads(json.dumps(large.to_json()))["limiter"]
    assert large.samples_per_s == pytest.approx(10**5 / large.compute_s)


def test_one_node_sends_nothing():
    assert math.inf == network.intensity_flop_per_byte(7, nodes=1)
    assert 1 == network.smallest_minibatch(DECK.of(1))


@pytest.mark.parametrize(
    "call",
    [
        lambda: Cluster(0, 6e12, 6e9),
        lambda: Cluster(2, -1, 6e9),
        lambda: Cluster(2, 6e12, 0),
        lambda: Training(0),
        lambda: network.intensity_flop_per_byte(0),
        lambda: network.intensity_flop_per_byte(8, overlap="forward"),
        lambda: network.strong_scaling(DECK, Training(1e6), minibatch=8, nodes=[]),
        lambda: network.weak_scaling(DECK, Training(1e6), minibatch_per_node=8, nodes=[2.5]),
    ],
)
def test_bad_input_is_told_what_why_and_next(call):
    with pytest.raises(UsageError) as caught:
        call()

    assert all((caught.value.what, caught.value.why, caught.value.next))
