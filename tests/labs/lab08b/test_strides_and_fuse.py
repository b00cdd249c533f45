"""lab08b's strides and fuse: layouts against torch, the judge's least bytes, and answers that are nearly right."""

from __future__ import annotations

import pytest

from edl_labs.exercises.lab08b_layouts.fused_kernels import WITHIN, as_graph
from edl_labs.exercises.lab08b_layouts.judge.drawn_nets import copies
from edl_labs.exercises.lab08b_layouts.judge.drawn_operator_graphs import least_bytes
from edl_labs.exercises.lab08b_layouts.memory_layouts import placements
from edl_labs.graph import Kernel, Partition, fusions

SEEDS = (1, 2, 3)


def as_partition(graph, kernels) -> Partition:
    made = tuple(Kernel(tuple(one["nodes"]), tuple(one["writes"])) for one in kernels)
    return Partition(as_graph(graph), made, graph["longest_row"])


@pytest.mark.parametrize("seed", SEEDS)
def test_layouts_are_torchs(exercises, solution, seed):
    torch = pytest.importorskip("torch")
    named = {(True, False): "NCHW", (False, True): "NHWC", (True, True): "both", (False, False): "neither"}
    for case in exercises["strides"].draw_cases(seed):
        for shape, stride in case["tensors"]:
            one = torch.empty_strided(shape, stride)
            said = named[one.is_contiguous(), one.is_contiguous(memory_format=torch.channels_last)]

            assert said == solution["layout_of"](shape, stride)


@pytest.mark.parametrize("seed", SEEDS)
def test_copies_are_priced_alike_by_the_judge_and_the_solution(exercises, solution, seed):
    for case in exercises["strides"].draw_cases(seed):
        for layouts in placements(case["net"])[::7]:
            assert copies(case["net"], layouts) == solution["conversions"](case["net"], layouts)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_solution_is_legal_and_finds_the_least_bytes(exercises, solution, seed):
    for case in exercises["fuse"].draw_cases(seed):
        plan = as_partition(case["graph"], solution["fuse"](case["graph"]))

        assert () == plan.problems
        assert case["least_bytes"] <= plan.moved_bytes <= WITHIN * case["least_bytes"]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_librarys_own_grouping_is_no_answer(exercises, seed):
    """It joins no products and computes nothing again."""
    shares = []
    for case in exercises["fuse"].draw_cases(seed):
        plan = fusions(as_graph(case["graph"]), on_chip_bytes=case["graph"]["longest_row"])
        shares.append(plan.moved_bytes / case["least_bytes"])

    assert max(shares) > WITHIN
    assert min(shares) >= 1


def test_least_bytes_by_hand():
    nodes = [
        {"name": "a", "kind": "pointwise", "reads": ["x"], "elements": 8, "rows": None},
        {"name": "b", "kind": "pointwise", "reads": ["a"], "elements": 8, "rows": None},
        {"name": "c", "kind": "contraction", "reads": ["b", "w"], "elements": 4, "rows": None},
        {"name": "d", "kind": "pointwise", "reads": ["c"], "elements": 4, "rows": None},
    ]
    sizes = {"x": 16, "w": 3, "a": 16, "b": 16, "c": 8, "d": 8}
    graph = {"nodes": nodes, "bytes": sizes, "outputs": ["d"], "saved": [], "longest_row": 8}

    # a and b read x and write b; c and d read b and w and write d.
    assert (16 + 16) + (16 + 3 + 8) == least_bytes(graph)
    assert (16 + 16 + 16) + (16 + 3 + 8) == least_bytes({**graph, "saved": ["a"]})


def test_one_kernel_too_many_is_seen(judged, solution):
    """The right kernels, but for one pointwise node that has a kernel of its own."""

    def fuse(graph):
        kernels = solution["fuse"](graph)
        at = next(i for i, one in enumerate(kernels) if len(one["nodes"]) > 2)
        alone = kernels[at]["nodes"][-1]
        groups = [[name for name in one["nodes"] if name != alone] for one in kernels]
        return solution["with_writes"](graph, [*groups, [alone]])

    outcome = judged("fuse", fuse=fuse)

    assert 0 == outcome.points
    assert outcome.what


def test_tuples_and_sets_of_names_are_answers_too(judged, solution):
    def fuse(graph):
        return tuple({"nodes": tuple(one["nodes"]), "writes": tuple(one["writes"])} for one in solution["fuse"](graph))

    assert 1 == judged("fuse", fuse=fuse).points
