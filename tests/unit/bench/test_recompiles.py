"""What torch.compile's front end decides, call by call, with its reasons; no compiler is needed."""

from __future__ import annotations

import pytest

from edl_labs.bench.recompiles import WatchedCall, watch_calls

torch = pytest.importorskip("torch")


def scaled(x, factor):
    return torch.relu(x) * factor


def test_the_second_size_is_the_last_that_compiles_and_its_reason_is_told():
    calls = watch_calls(scaled, [(torch.ones(rows, 3), 0.5) for rows in (4, 5, 6)])

    assert ["recompile", "recompile", "hit"] == [call.decision for call in calls]
    assert "size mismatch at index 0" in calls[1].reason
    assert [False, False, True] == [call.is_hit for call in calls]


def test_beyond_the_limit_calls_run_eagerly_and_nothing_is_left_behind():
    ranks = [(torch.ones((2,) * rank), 0.5) for rank in range(10)]

    assert ["recompile"] * 8 + ["eager"] * 2 == [call.decision for call in watch_calls(scaled, ranks)]
    assert ["recompile"] == [call.decision for call in watch_calls(scaled, ranks[:1])]


def test_a_break_has_its_number_of_graphs_and_its_reason():
    def breaks(x):
        y = x * 2
        return y - y.mean().item()

    first, second = watch_calls(breaks, [(torch.ones(4, 3),)] * 2)

    assert ("break", 2, "hit") == (first.decision, first.graphs, second.decision)
    assert "item" in first.break_reason
    assert str(first).startswith("break in 2 graphs: ")


def test_what_the_function_raises_goes_through():
    def broken(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        watch_calls(broken, [(torch.ones(2),)])


def test_a_hit_reads_as_one_word():
    assert "hit" == str(WatchedCall("hit", 1))
