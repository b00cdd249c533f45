"""Graphs as lists and dicts: names, kinds and bytes of a real model's, and kernels brought back."""

from __future__ import annotations

import pytest

from edl_labs.graph import Graph, Partition, partition_of, plain_graph, plain_net

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def graph() -> Graph:
    layers = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU(), torch.nn.LayerNorm(4))
    return Graph.of(layers, torch.empty(2, 8))


def test_nodes_read_weights_last_and_results_bear_their_names(graph):
    plain = plain_graph(graph)
    product, relu, norm = plain["nodes"]

    assert ["contraction", "pointwise", "reduction"] == [node["kind"] for node in plain["nodes"]]
    assert [4 * 2 * 8, 4 * 4, 4 * 4 * 8] == [plain["bytes"][name] for name in product["reads"]]
    assert ([product["name"]], relu["name"]) == (relu["reads"], norm["reads"][0])
    assert (8, None, 8, 2) == (relu["elements"], relu["rows"], norm["elements"], norm["rows"])
    assert [norm["name"]] == plain["outputs"]


def test_a_kernel_each_is_eager_mode(graph):
    names = [node.name for node in graph.nodes]
    alone = partition_of(graph, [{"nodes": [name], "writes": [name]} for name in names])
    joined = partition_of(
        graph, [{"nodes": names[:2], "writes": names[1:2]}, {"nodes": names[2:], "writes": names[2:]}]
    )

    assert Partition.one_each(graph).launches == alone.launches == 3
    assert 2 * 4 * 2 * 4 == alone.moved_bytes - joined.moved_bytes
    assert ((), ()) == (alone.problems, joined.problems)


def test_layers_on_images_are_a_net():
    layers = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3), torch.nn.ReLU())
    net = plain_net(Graph.of(layers, torch.empty(1, 3, 8, 8)), layout="NHWC")

    assert ["input", "conv", "any", "output"] == [node["op"] for node in net]
    assert [[1, 3, 8, 8], [1, 16, 6, 6], [1, 16, 6, 6], [1, 16, 6, 6]] == [node["shape"] for node in net]
    assert [16, 3, 3, 3] == net[1]["weight"]
    assert ["NHWC", "NHWC"] == [node["layout"] for node in net if "layout" in node]
