"""Graphs of real models: operators, bytes, lifetimes, the backward pass, and models that are hard to trace."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from edl_labs.errors import EdlError  # noqa: E402
from edl_labs.graph import Graph  # noqa: E402
from edl_labs.roofline import count  # noqa: E402

functional = torch.nn.functional


class Block(torch.nn.Module):
    """Views, an operator in place, attention, two outputs in a dict, a buffer that changes."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8)
        self.qkv, self.out = torch.nn.Linear(8, 24), torch.nn.Linear(8, 4)

    def forward(self, x):
        y = self.norm(self.conv(x)).relu_()
        tokens = y.flatten(2).transpose(1, 2)
        query, key, value = self.qkv(tokens).chunk(3, 2)
        mixed = functional.scaled_dot_product_attention(query[:, None], key[:, None], value[:, None])
        pooled = mixed.squeeze(1).mean(1)
        pooled += 1
        return {"logits": functional.gelu(self.out(pooled)), "tokens": tokens}


def operators(graph: Graph) -> list[str]:
    return [node.operator for node in graph.nodes]


def test_a_model_with_views_and_operators_in_place_is_functional():
    graph = Graph.of(Block().eval(), torch.randn(2, 3, 8, 8))

    assert "torch.export" == graph.source
    assert ["convolution", "_native_batch_norm_legit_no_training", "relu"] == operators(graph)[:3]
    assert {"contraction", "pointwise", "reduction"} == {node.kind for node in graph.nodes} - {"layout"}
    assert 2 == len(graph.outputs)
    # The tokens are a view of what relu gives: kept, and read by the product.
    assert graph.maker[graph.outputs[1]].operator == "relu"


def test_bytes_and_flops_are_those_of_the_roofline_counter():
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU()).eval()
    x = torch.randn(2, 3, 16, 16)
    counted, graph = count(model, x, backward=False), Graph.of(model, x)

    assert (counted.contraction_flops, counted.moved_bytes) == (graph.contraction_flops, graph.moved_bytes)


def test_training_has_both_passes_and_says_what_backward_reads():
    x = torch.randn(2, 3, 8, 8)
    model = Block().train()
    graph = Graph.of(model, x, training=True)
    counted = count(model, x)
    saved = {graph.maker[name].operator for name in graph.saved}

    assert {"forward", "backward"} == {node.direction for node in graph.nodes}
    assert {"convolution", "relu"} <= saved
    assert counted.contraction_flops == graph.contraction_flops
    # All eight parameters' gradients, two results, and the three buffers of the norm.
    assert 8 + 2 + 3 == len(graph.outputs)
    assert all(parameter.grad is None for parameter in model.parameters())


def test_meta_models_of_any_size_are_traced():
    with torch.device("meta"):
        model = torch.nn.Linear(100_000, 100_000, dtype=torch.bfloat16)
    graph = Graph.of(model, torch.empty(8, 100_000, device="meta", dtype=torch.bfloat16))

    assert 2 * (100_000**2 + 100_000 + 2 * 8 * 100_000) == graph.moved_bytes
    assert 2 * 8 * 100_000**2 == graph.contraction_flops


def test_open_sizes_are_guards():
    graph = Graph.of(torch.nn.Linear(4, 4), torch.randn(6, 4), dynamic={0: (0,)})

    assert any(guard.endswith("or more") for guard in graph.guards)
    assert any("6 x 4" in guard for guard in graph.guards)


def test_what_data_decide_is_traced_as_the_example_has_it():
    def chosen(x):
        return x.relu() if x.sum() > 0 else x.sigmoid()

    above, below = (Graph.of(chosen, sign * torch.ones(3)) for sign in (1.0, -1.0))

    assert ("relu", "sigmoid") == (operators(above)[-1], operators(below)[-1])
    assert "make_fx" == above.source
    assert "the values of the example decide what runs" in above.guards


def test_a_block_without_gradients_and_keywords_are_traced():
    class Frozen(torch.nn.Module):
        def forward(self, x, *, scale):
            with torch.no_grad():
                table = torch.arange(4.0) * 2
            return x * table * scale

    graph = Graph.of(Frozen(), torch.ones(2, 4), scale=torch.tensor(3.0))

    assert "mul" == operators(graph)[-1]


def test_what_cannot_be_run_is_told():
    with pytest.raises(EdlError, match="Linear cannot be traced") as told:
        Graph.of(torch.nn.Linear(4, 4), torch.randn(2, 5))

    assert "torch.export" in str(told.value)
    with pytest.raises(EdlError, match="a model must be callable"):
        Graph.of(3)


def test_lifetimes_by_hand():
    def two(x):
        a = x.sin()
        b = a.cos()
        return b.exp() + b.neg()

    graph = Graph.of(two, torch.ones(1000))
    each = 4000

    # x; sin, cos: a is gone after cos; exp and neg; the sum, with exp, neg and no b.
    assert [2, 3, 3, 4, 4] == [live // each for live in graph.live_bytes]
    assert 4 * each == graph.peak_live_bytes
    assert [(0, 1), (1, 3)] == [(graph.lifetimes[name].first, graph.lifetimes[name].last) for name in ("sin", "cos")]


def test_json_there_and_back():
    graph = Graph.of(torch.nn.Linear(4, 4), torch.randn(2, 4))

    assert graph == Graph.from_json(graph.to_json())


def test_reductions_know_their_rows():
    def both(x):
        return x.softmax(-1), x.sum(1), x.mean((0, 2, 3))

    graph = Graph.of(both, torch.ones(2, 3, 4, 5))
    loops = {node.operator: (node.loop.rows, node.loop.columns, node.loop.runs) for node in graph.nodes}

    assert (24, 5, "r24 c5") == loops["_softmax"]
    assert (40, 3, "r2 c3 r20") == loops["sum"]
    assert (3, 40, "c2 r3 c20") == loops["mean"]


def test_a_random_mask_is_pointwise_and_a_sort_is_other():
    graph = Graph.of(lambda x: torch.sort(functional.dropout(x, 0.5))[0], torch.ones(8))

    assert "other" == graph.nodes[-1].kind
    assert {"pointwise"} == {node.kind for node in graph.nodes[:-1]}
