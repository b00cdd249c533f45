"""What decks [002] and [004] say of several nodes and GPUs, their own formulas read from their text."""

from __future__ import annotations

import re

import pytest

from edl_labs.numerics import bytes_per_parameter
from edl_labs.roofline import work
from edl_labs.roofline.network import zero_calls
from edl_labs.virtual.cluster import ClusterMachine, CollectiveCosts

from .decks import quotation

SHAPES = [(512, 512, 512), (1024, 1024, 64), (4096, 4096, 64)]


def row(name: str, shape: tuple[int, int, int]) -> tuple[float, float, float]:
    """FLOPs, bytes and intensity of a row of the deck's table, its formulas worked out for M, K, N."""
    m, k, n = shape

    def value(formula: str) -> float:
        product = re.sub(r"(?<=[\dMKN)]) ?(?=[MKN(])", "*", formula)
        assert re.fullmatch(r"[\dMKN*/+() ]+", product)
        return eval(product, {}, {"M": m, "K": k, "N": n})

    flops, moved, intensity = quotation("004_multinode", rf"(?m)^{name}:\t(.+)\t(.+)\t(.+)$")
    return value(flops), value(moved), value(intensity)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("name", "nodes"), [("Before", 1), ("After", 2)])
def test_the_decks_formulas_are_a_products_on_whole_and_half_a_minibatch(name, nodes, shape):
    m, k, n = shape
    flops, moved, intensity = row(name, shape)
    product = work.gemm(m, n // nodes, k)

    assert product.total_flops == flops
    assert (product.moved_bytes, product.intensity_flop_per_byte) == (moved, pytest.approx(intensity))


def test_half_a_minibatch_takes_28_4_to_15_1():
    before, after = (row(name, (1024, 1024, 64))[2] for name in ("Before", "After"))

    assert ("28.4", "15.1") == (f"{before:.1f}", f"{after:.1f}")


def test_the_ridge_of_the_decks_network_and_the_minibatch_that_reaches_it():
    ridge, tera = quotation("004_multinode", r"need to do (\d+) FLOPs locally \(at (\d+) TFLOP/s")
    per_sample = 1 / int(quotation("004_multinode", r"Overall intensity .* N/(\d+)"))
    # For each weight, half of a sample's multiply-adds; a ring of two sends its 4 bytes once.
    intensity = 2 / 2 / 4

    assert int(ridge) == 1e12 * int(tera) / 6e9
    assert per_sample == intensity
    assert int(ridge) / per_sample == 4000


@pytest.mark.parametrize("minibatch", [1000, 4000, 8000])
def test_the_decks_network_has_the_ridge_in_collectives_too(minibatch):
    """A ring of two nodes, without latency, takes as long as the update's products at N = 4000."""
    weights, node_flop_per_s = 1e8, 6e12
    costs = CollectiveCosts(ClusterMachine.flat(2, alpha_s=0.0, byte_per_s=6e9))
    sums_s = costs.plan("all_reduce", (0, 1), 4 * weights, algorithm="ring").seconds(4 * weights)
    products_s = 2 * weights * minibatch / 2 / node_flop_per_s

    assert pytest.approx(4000 / minibatch) == sums_s / products_s


def test_zero_saves_memory_and_wins_no_speed():
    """Deck [002]'s table, "Speed: No, Memory: Yes": no stage sends less than plain data parallelism."""
    speed, memory = quotation("002_methods", r"DeepSpeed Zero\t(\w+)\t(\w+)")
    recipes = [bytes_per_parameter("both+fp32grad adam", zero_stage=stage, gpus=8) for stage in (0, 1, 2, 3)]
    sent = [sum(one.sent_bytes(8) for one in zero_calls(stage, 1e9, ranks=8)) for stage in (0, 1, 2, 3)]

    assert ("No", "Yes") == (speed, memory)
    assert [18.0, 7.5, 4.0, 2.25] == [recipe.resident for recipe in recipes]
    assert min(sent) == sent[0] < sent[3]
