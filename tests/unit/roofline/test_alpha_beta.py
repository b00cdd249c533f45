"""Closed forms of collectives against VirtualCluster's schedules of messages, on one level of links and on two."""

from __future__ import annotations

import json
import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edl_labs.errors import UsageError
from edl_labs.roofline.network.alpha_beta import (
    OPERATIONS,
    CollectiveCost,
    GroupLinks,
    algorithms_for,
    collective_cost,
    point_to_point_s,
)
from edl_labs.virtual.cluster import ClusterMachine, CollectiveCosts, LinkLevel

ALPHA_S, BYTE_PER_S = 20e-6, 6e9
COUNTS = [2, 3, 4, 5, 7, 8, 13, 16, *(pytest.param(count, marks=pytest.mark.slow) for count in (64, 100, 512))]
INSIDE, BETWEEN = (3e-6, 450e9), (14e-6, 50e9)


def link(ranks: int) -> GroupLinks:
    return GroupLinks(ranks, ALPHA_S, BYTE_PER_S)


def nodes(size: int, count: int, *, ports: int = 1) -> tuple[tuple[GroupLinks, ...], CollectiveCosts]:
    """The same nodes for both."""
    levels = GroupLinks(size, *INSIDE, name="NVLink"), GroupLinks(count, *BETWEEN, ports, name="network")
    joined = LinkLevel("NVLink", size, *INSIDE), LinkLevel("network", size * count, *BETWEEN, ports)
    return levels, CollectiveCosts(ClusterMachine(size * count, joined))


@pytest.mark.parametrize("ranks", COUNTS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_closed_form_is_what_its_messages_take(operation, ranks):
    if operation == "all_to_all" and ranks > 100:
        operation = "barrier"  # 512 x 511 messages of one kind say nothing new
    played = CollectiveCosts(ClusterMachine.flat(ranks)).plans(operation, tuple(range(ranks)))

    assert set(played) == set(algorithms_for(operation, ranks=[ranks]))
    nbytes = 0 if operation == "barrier" else 1e7
    for name, plan in played.items():
        cost = collective_cost(operation, nbytes, link(ranks), algorithm=name)
        assert pytest.approx(plan.seconds(nbytes), rel=1e-9) == cost.seconds


@pytest.mark.parametrize("ports", [1, 2, 4])
@pytest.mark.parametrize(("size", "count"), [(4, 2), (8, 4), (4, 8)])
def test_two_levels_cost_what_their_messages_take(size, count, ports):
    levels, costs = nodes(size, count, ports=ports)
    checked = [
        (one, name) for one in ("all_reduce", "reduce_scatter", "all_gather") for name in ("ring", "hierarchical")
    ]
    checked += [("all_reduce", "tree"), ("broadcast", "tree"), ("barrier", "tree"), ("all_reduce", "halving-doubling")]

    for operation, name in checked:
        plan, nbytes = costs.plans(operation, tuple(range(size * count)))[name], 0 if operation == "barrier" else 1e8
        cost = collective_cost(operation, nbytes, levels, algorithm=name)
        assert pytest.approx(plan.seconds(nbytes), rel=1e-9) == cost.seconds, (operation, name)


def test_where_levels_are_uneven_a_tree_is_never_priced_below_its_messages():
    levels, costs = nodes(3, 5)

    for operation in ("all_reduce", "broadcast"):
        played = costs.plans(operation, tuple(range(15)))["tree"].seconds(1e7)
        assert played <= collective_cost(operation, 1e7, levels, algorithm="tree").seconds


def test_figures_of_the_plan():
    """Eight ranks, 20 us and 6 GB/s: ring and tree cross at 226 kB; 64 ranks and 1 kB: 2.52 ms against 0.24."""
    ring, tree = (
        [collective_cost("all_reduce", n, link(8), algorithm=name).seconds for n in (225e3, 227e3)]
        for name in ("ring", "tree")
    )
    small = [collective_cost("all_reduce", 1000, link(64), algorithm=name).seconds for name in ("ring", "tree")]

    assert [True, False] == [t < r for t, r in zip(tree, ring, strict=True)]
    assert ["2.52", "0.24"] == [f"{1e3 * seconds:.2f}" for seconds in small]


@given(
    operation=st.sampled_from(OPERATIONS),
    message_bytes=st.floats(0, 1e12),
    ranks=st.lists(st.integers(1, 40), min_size=1, max_size=3),
    ports=st.integers(1, 8),
)
def test_auto_is_the_cheapest_and_every_price_is_finite(operation, message_bytes, ranks, ports):
    levels = [GroupLinks(count, 1e-6 * (at + 1), 1e11 / (at + 1), ports) for at, count in enumerate(ranks)]
    names = algorithms_for(operation, ranks=ranks)
    costs = [collective_cost(operation, message_bytes, levels, algorithm=name) for name in names]

    assert min(cost.seconds for cost in costs) == collective_cost(operation, message_bytes, levels).seconds
    assert all(math.isfinite(cost.seconds) and cost.seconds >= 0 for cost in costs)
    if math.prod(ranks) == 1:
        assert [0.0] * len(costs) == [cost.seconds for cost in costs]


def test_levels_send_a_share_of_the_vector_over_the_network():
    levels, _ = nodes(8, 4)
    cost = collective_cost("all_reduce", 8e8, levels, algorithm="hierarchical")
    inside, between = cost.by_level

    assert ("NVLink", "network") == (inside.level, between.level)
    # In a node 7/8 of the vector each way; between nodes each rank sums an eighth with three others.
    assert (2 * 7e8, 2 * 3 / 4 * 1e8) == (pytest.approx(inside.path_bytes), pytest.approx(between.path_bytes))


@pytest.mark.parametrize("operation", OPERATIONS)
def test_ports_shared_by_all_ranks_never_make_anything_cheaper(operation):
    prices = [collective_cost(operation, 1e7, GroupLinks(16, 5e-6, 25e9, ports)).seconds for ports in (1, 2, 8)]

    assert all(one <= other for one, other in pairwise(prices))


def test_bus_bandwidth_is_the_links_rate_once_latency_is_small():
    for operation in ("all_reduce", "reduce_scatter", "all_gather", "all_to_all"):
        assert pytest.approx(BYTE_PER_S, rel=1e-3) == collective_cost(operation, 1e12, link(8)).bus_byte_per_s
    assert math.isnan(collective_cost("barrier", 0, link(8)).bus_byte_per_s)


def test_a_message_costs_alpha_and_its_bytes_and_a_price_comes_back_from_its_json():
    cost = collective_cost("all_gather", 1e6, nodes(8, 4)[0])

    assert pytest.approx(ALPHA_S + 1e6 / BYTE_PER_S) == point_to_point_s(1e6, link(2))
    assert cost == CollectiveCost.from_json(json.dumps(cost.to_json()))


@pytest.mark.parametrize(
    "call",
    [
        lambda: GroupLinks(0, 1e-6, 1e9),
        lambda: GroupLinks(2, -1e-6, 1e9),
        lambda: GroupLinks(2, 1e-6, math.nan),
        lambda: GroupLinks(2, 1e-6, 1e9, ranks_per_port=1.5),
        lambda: collective_cost("gather_all", 1, link(2)),
        lambda: collective_cost("all_reduce", -1, link(2)),
        lambda: collective_cost("all_reduce", 1, []),
        lambda: collective_cost("all_reduce", 1, link(2), algorithm="hierarchical"),
        lambda: collective_cost("all_gather", 1, link(6), algorithm="halving-doubling"),
    ],
)
def test_bad_input_is_told_what_why_and_next(call):
    with pytest.raises(UsageError) as caught:
        call()

    assert all((caught.value.what, caught.value.why, caught.value.next))
