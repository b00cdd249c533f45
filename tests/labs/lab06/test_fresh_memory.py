"""Every cell of lab06 runs, before anything is written and when all is; and the lab ends as it promises."""

from __future__ import annotations

import re

import pytest

SMALL = (("depth = 16", "depth = 8"), ("width = 256", "width = 64"), ("batch = 256", "batch = 32"))
WAITING = (
    *("mend_accumulation", "merge_statistics", "memory_timeline", "best_segments", "place_checkpoints"),
    "own_checkpoint",
)


@pytest.mark.slow
def test_every_cell_of_the_stub_notebook_runs(run_all, capsys):
    run_all(solved=False, small=SMALL)
    said = capsys.readouterr().out

    assert [] == [name for name in WAITING if f"This cell shows something once {name} is written." not in said]


@pytest.mark.slow
def test_the_solution_ends_with_four_times_the_batch_in_the_same_memory(run_all, capsys):
    run_all(solved=True, small=SMALL)
    said = capsys.readouterr().out

    assert "This cell" not in said
    assert "128 examples: out of memory at" in said
    assert re.search(r"segments: 4, 128 examples: [\d.]+ kB at the peak", said)
    assert "{1: 128, 4: 35, 8: 23, 16: 23, 32: 35}" in said
    assert "measured here: 10 batches, 3 steps, and the weights moved by 0.0" in said
    assert "a budget of 54 MB: 52 MB at the peak, at forward(5), most of it layer1; 32 ms, 500 µs" in said
    assert "a budget of 36 MB: 27 MB at the peak, at forward(5), most of it layer3; 34.5 ms, 3 ms" in said
    assert "a budget of 25 MB: 24 MB at the peak, at recompute(0), most of it layer0; 36.5 ms, 5 ms" in said


@pytest.mark.slow
@pytest.mark.parametrize("small", [SMALL, ()], ids=["smoke", "full"])
def test_one_answer_to_what_is_largest_is_clear(run_all, capsys, small):
    """Activations are half as large again as what comes second, and the peak is where backward begins."""
    names = run_all(solved=True, small=small)
    said = capsys.readouterr().out
    first, second, *_ = sorted(names["plan"].peak.held_bytes.values(), reverse=True)

    assert "The largest are … activations" in said
    assert "The total is largest … as backward begins" in said
    assert first > 1.5 * second
    assert {1: 128, 4: 35, 8: 23, 16: 23, 32: 35} == names["counts"]
    assert "The fewest tensors are held with … 8 and 16" in said
