"""whole_graph: other ways to write it pass, and torch's own word on the given function is the lab's."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")


def test_the_given_function_runs_in_three_graphs(solution):
    told = torch._dynamo.explain(solution["three_pieces"])(torch.ones(3, 4), 0.5)

    assert (3, 2) == (told.graph_count, told.graph_break_count)


def test_a_factor_that_is_at_most_one_passes(judged):
    def whole_graph(x, bound):
        peak = x.abs().amax()
        x = x * (bound / peak).clamp(max=1.0)
        return torch.where(x.sum() > 0, torch.clamp(x, min=0), x - torch.mean(x)), peak

    assert "passed" == judged("whole_graph", whole_graph=whole_graph).state


def test_a_number_that_float_reads_is_told_as_one_of_item(judged):
    def whole_graph(x, bound):
        peak = x.abs().max()
        x = x * min(1.0, bound / max(float(peak), 1e-9))
        return torch.where(x.sum() > 0, x.relu(), x - x.mean()), peak

    outcome = judged("whole_graph", whole_graph=whole_graph)

    assert ("wrong", "your function reads a number from the device before the graph has finished") == (
        outcome.state,
        outcome.what,
    )
    assert "float(peak)" in outcome.why


def test_the_given_function_itself_is_told_its_first_break(judged, solution):
    outcome = judged("whole_graph", whole_graph=solution["three_pieces"])

    assert "your function reads a number from the device before the graph has finished" == outcome.what
    assert "3 graphs" in outcome.why
