"""Operators in kernels: each rule, by hand, and the joined kernels of real models."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from edl_labs.graph import Graph, Kernel, Partition, fusions  # noqa: E402

functional = torch.nn.functional


def graph_of(function, *shapes: tuple[int, ...], **options) -> Graph:
    return Graph.of(function, *(torch.empty(shape, device="meta") for shape in shapes), **options)


def partition(graph: Graph, *kernels: tuple[str, ...], **options) -> Partition:
    return Partition(graph, tuple(Kernel(names) for names in kernels), **options)


def rules(graph: Graph, *kernels: tuple[str, ...], **options) -> list[str]:
    return [problem.rule for problem in partition(graph, *kernels, **options).problems]


def test_one_kernel_each_moves_what_the_graph_does():
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Softmax(1))
    graph = Graph.of(model, torch.randn(2, 3, 8, 8))
    eager = Partition.one_each(graph)

    assert () == eager.problems
    assert (graph.moved_bytes, len(graph.nodes)) == (eager.moved_bytes, eager.launches)


def test_a_chain_of_pointwise_operators_reads_and_writes_once():
    graph = graph_of(lambda x, y: ((x + y).sin() * x).exp(), (100,), (100,))
    whole = partition(graph, tuple(node.name for node in graph.nodes))

    assert () == whole.problems
    assert 3 * 400 == whole.moved_bytes
    assert (3 + 2 + 3 + 2) * 400 == graph.moved_bytes


def test_a_circle_is_found():
    def around(x, w):
        a = x.relu()
        return a + a @ w

    graph = graph_of(around, (8, 8), (8, 8))

    assert ["circle"] == rules(graph, ("relu", "add"), ("mm",))
    assert [] == rules(graph, ("relu",), ("mm", "add"))


def test_products_begin_their_kernels():
    graph = graph_of(lambda x, w: ((x.relu() @ w).relu()).sum(1), (8, 8), (8, 8))
    first, product, second, last = (node.name for node in graph.nodes)

    assert ["before a product"] == rules(graph, (first, product), (second, last))
    assert ["reduction after a product"] == rules(graph, (first,), (product, second, last))
    assert [] == rules(graph, (first,), (product, second), (last,))


def test_products_of_one_input_may_be_one_and_of_two_inputs_not():
    def three(x, y, q, k, v):
        return x @ q, x @ k, y @ v

    graph = graph_of(three, (8, 8), (8, 8), (8, 8), (8, 8), (8, 8))
    q, k, v = (node.name for node in graph.nodes)

    assert [] == rules(graph, (q, k), (v,))
    assert ["two products"] == rules(graph, (q, k, v))
    # x once instead of twice
    assert 256 == Partition.one_each(graph).moved_bytes - partition(graph, (q, k), (v,)).moved_bytes


def test_a_weight_gradient_and_an_input_gradient_cannot_be_stacked():
    graph = Graph.of(torch.nn.Linear(8, 8, bias=False), torch.ones(4, 8, requires_grad=True), training=True)
    products = tuple(node.name for node in graph.nodes if node.kind == "contraction" and node.direction == "backward")

    assert len(products) < 2 or ["two products"] == rules(graph, ("mm",), products)


def test_rows_that_fit_on_the_chip_are_kept_and_others_are_a_barrier():
    graph = graph_of(lambda x: (x - x.mean(1, keepdim=True)).relu(), (4, 1000))
    names = tuple(node.name for node in graph.nodes)

    assert [] == rules(graph, names)
    assert ["across a reduction"] == rules(graph, names, on_chip_bytes=2000)
    # It ends a kernel whatever the row: the pointwise operator before it is in its loop.
    ending = graph_of(lambda x: x.relu().mean(1), (4, 1000))
    assert [] == rules(ending, tuple(node.name for node in ending.nodes), on_chip_bytes=2000)


def test_sums_over_other_dimensions_are_other_loops():
    square = graph_of(lambda x: x.softmax(1).sum(0), (64, 64))
    same = graph_of(lambda x: x.softmax(1).sum(1), (64, 64))
    turned = graph_of(lambda x: x.softmax(1).t().sum(0), (64, 64))

    assert ["other loops"] == rules(square, tuple(node.name for node in square.nodes))
    assert [] == rules(same, tuple(node.name for node in same.nodes))
    assert [] == rules(turned, tuple(node.name for node in turned.nodes))


def test_a_mean_of_rows_is_not_there_for_columns():
    graph = graph_of(lambda x: x - x.mean(1), (64, 64))
    aligned = graph_of(lambda x: x - x.mean(1, keepdim=True), (64, 64))

    assert ["across a reduction"] == rules(graph, tuple(node.name for node in graph.nodes))
    assert [] == rules(aligned, tuple(node.name for node in aligned.nodes))


def test_what_is_computed_twice_is_read_twice():
    def two(x, w, u):
        a = x.relu()
        return (a @ w).relu(), a + 1, a.sum(1), u

    graph = graph_of(two, (8, 8), (8, 8), (1,))
    relu, mm, relu_1, add, total = (node.name for node in graph.nodes)
    twice = partition(graph, (relu,), (mm, relu_1), (relu, add, total))

    assert () == twice.problems
    assert ["computed twice"] == rules(graph, (relu,), (mm, relu_1), (mm, add), (total,))[:1]


def test_what_backward_reads_has_to_be_written():
    graph = Graph.of(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Sigmoid()), torch.ones(4, 8), training=True)
    forward = tuple(node.name for node in graph.nodes if node.direction == "forward")
    rest = [(node.name,) for node in graph.nodes if node.direction == "backward"]
    writes = tuple(name for name in graph.saved if graph.maker[name].operator != "sigmoid")
    dropped = Partition(graph, (Kernel(forward, writes), *(Kernel(one) for one in rest)))

    assert "never written" in [problem.rule for problem in dropped.problems]
    assert () == partition(graph, forward, *rest).problems
    assert ["both directions"] == rules(graph, (*forward, *rest[0]), *rest[1:])[:1]


def test_nonsense_is_told():
    graph = graph_of(lambda x: x.relu().exp(), (8,))

    assert ["unknown"] == rules(graph, ("relu", "tanh"))
    assert ["missing", "never written"][:1] == rules(graph, ("relu",))[:1]
    assert ["empty"] == rules(graph, (), ("relu", "exp"))
    assert ["repeated"] == rules(graph, ("relu", "relu"), ("exp",))
    strange = Partition(graph, (Kernel(("relu",), ("exp",)), Kernel(("exp",), ("exp",))))
    assert "writes another's" in [problem.rule for problem in strange.problems]
    lost = Partition(graph, (Kernel(("relu", "exp"), ()),))
    assert ["not kept"] == [problem.rule for problem in lost.problems]


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("epilogues", [False, True])
def test_joined_kernels_of_a_transformer_are_legal_and_move_less(training, epilogues):
    layer = torch.nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True).train(training)
    graph = Graph.of(layer, torch.randn(2, 10, 32), training=training)
    joined = fusions(graph, epilogues=epilogues)

    assert () == joined.problems
    assert joined.launches <= 0.75 * len(graph.nodes)
    assert joined.moved_bytes < 0.9 * graph.moved_bytes
    assert sorted(node.name for node in graph.nodes) == sorted(name for one in joined.kernels for name in one.nodes)


def test_without_epilogues_products_are_alone():
    graph = graph_of(lambda x, w: (x @ w).relu(), (8, 8), (8, 8))

    assert (1, 2) == (fusions(graph).launches, fusions(graph, epilogues=False).launches)
