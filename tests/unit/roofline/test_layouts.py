"""`plan`: every division of a cluster, what it holds and sends, and why others do not fit."""

from __future__ import annotations

import json

import pytest

from edl_labs.errors import UsageError
from edl_labs.roofline import network
from edl_labs.roofline.network import GPUCluster, GroupLinks, Layout, LayoutPlan, Transformer, group_levels

SEVEN_BILLION = Transformer(layers=32, hidden=4096, heads=32, sequence=2048)
TWO_NODES = GPUCluster.of("8xH100", nodes=2)
LEVELS = GroupLinks(8, 3e-6, 450e9, name="inside"), GroupLinks(4, 14e-6, 50e9, name="between")


def by_sizes(plan: LayoutPlan) -> dict[tuple[int, int, int], Layout]:
    return {(one.data, one.tensor, one.pipeline): one for one in plan.layouts}


@pytest.fixture(scope="module")
def plan() -> LayoutPlan:
    return network.plan(SEVEN_BILLION, TWO_NODES, minibatch=256)


def test_every_division_is_there_once_and_the_best_is_the_fastest_that_fits(plan):
    sizes = by_sizes(plan)

    assert len(sizes) == len(plan.layouts) == 15
    assert {16} == {data * tensor * pipeline for data, tensor, pipeline in sizes}
    assert plan.best.step_s == min(one.step_s for one in plan.layouts if one.fits)
    assert all(one.memory_bytes <= TWO_NODES.gpu_memory_bytes for one in plan.layouts if one.fits)


def test_blocks_split_across_the_slow_link_cost_most(plan):
    sizes = by_sizes(plan)

    assert sizes[1, 16, 1].tensor_s > 3 * sizes[2, 8, 1].tensor_s
    # Four sums a block of 2 bytes a token and channel, each sending about twice its vector.
    sent = 2 * 7 / 8 * 4 * 32 * 2 * 2048 * 4096 * 256 / 2
    assert sent <= sizes[2, 8, 1].link_bytes["NVLink4"] < 1.01 * sent + 40e9


def test_a_pipeline_pays_its_bubble_and_hands_activations_over(plan):
    one = by_sizes(plan)[1, 1, 16]
    bubble_s = one.compute_s * 15 / one.micro_batches

    handed_s = 2 * (14e-6 + 2 * 2048 * 4096 * one.micro_batch / 50e9)
    assert pytest.approx(bubble_s + (one.micro_batches + 15) * handed_s) == one.pipeline_s
    assert 2 * 2 * 2048 * 4096 * 256 == one.link_bytes["NDR"]


def test_a_table_names_the_best_and_says_why_others_do_not_fit():
    little = GPUCluster(1e14, 4e9, (GroupLinks(6, 1e-6, 1e11, name="bus"),))
    model = Transformer(layers=4, hidden=1024, heads=16, sequence=1024)
    text = str(network.plan(model, little, minibatch=66))

    assert "64 sequences do not divide over 6" in str(network.plan(model, little, minibatch=64))
    assert "16 heads cannot be split over 3" in text
    assert "4 layers do not make 3 equal stages" in text
    assert text.splitlines()[-1].startswith("best: data")
    assert 1 == text.count("\n* ")


def test_what_needs_too_much_memory_says_how_much_and_of_what():
    small = GPUCluster(1e14, 1e9, (GroupLinks(2, 1e-6, 1e11),))
    plan = network.plan(SEVEN_BILLION, small, minibatch=8)

    assert plan.best is None
    assert "no layout fits" == str(plan).splitlines()[-1]
    assert all("GB of 1 GB at least: state" in one.why for one in plan.layouts)


@pytest.mark.parametrize("factor", [2, 4])
def test_no_layout_is_faster_than_its_arithmetic_and_faster_links_never_hurt(plan, factor):
    quick = GPUCluster(
        TWO_NODES.gpu_flop_per_s,
        TWO_NODES.gpu_memory_bytes,
        tuple(
            GroupLinks(one.ranks, one.alpha_s / factor, factor * one.byte_per_s, name=one.name)
            for one in TWO_NODES.levels
        ),
    )
    faster, least_s = by_sizes(network.plan(SEVEN_BILLION, quick, minibatch=256)), SEVEN_BILLION.flops(256) / 16

    for sizes, one in by_sizes(plan).items():
        assert least_s / TWO_NODES.gpu_flop_per_s * (1 - 1e-9) <= one.compute_s
        assert faster[sizes].step_s <= one.step_s * (1 + 1e-9)


@pytest.mark.parametrize(
    ("stride", "size", "ranks"),
    [(1, 8, [8, 1]), (1, 4, [4, 1]), (4, 8, [2, 4]), (8, 4, [1, 4]), (1, 32, [8, 4]), (2, 4, [4, 1]), (16, 2, [1, 2])],
)
def test_groups_lie_inside_nodes_or_across_them(stride, size, ranks):
    assert ranks == [level.ranks for level in group_levels(LEVELS, stride=stride, size=size)]


def test_groups_that_lie_across_a_border_unevenly_go_by_the_slow_link():
    assert [1, 3] == [level.ranks for level in group_levels(LEVELS, stride=3, size=3)]


def test_figures_of_known_models():
    """GPT-3: 175 billion parameters, and 300 billion tokens in 3.14e23 FLOPs (Brown et al. 2020, table D.1)."""
    gpt3 = Transformer(layers=96, hidden=12288, heads=96, sequence=2048, vocabulary=50257)

    assert pytest.approx(175e9, rel=0.005) == gpt3.parameters
    assert pytest.approx(3.14e23, rel=0.05) == gpt3.flops(300e9 / 2048)
    assert pytest.approx(4 / 3, rel=0.01) == gpt3.flops(1, recompute=True) / gpt3.flops(1)


def test_a_plan_comes_back_from_its_json(plan):
    assert plan == LayoutPlan.from_json(json.dumps(plan.to_json()))


@pytest.mark.parametrize(
    "call",
    [
        lambda: Transformer(layers=0, hidden=8, heads=2, sequence=4),
        lambda: GPUCluster(1e14, 80e9, ()),
        lambda: GPUCluster(0, 80e9, LEVELS),
        lambda: network.plan(SEVEN_BILLION, TWO_NODES, minibatch=0),
    ],
)
def test_bad_input_is_told_what_why_and_next(call):
    with pytest.raises(UsageError) as caught:
        call()

    assert all((caught.value.what, caught.value.why, caught.value.next))
