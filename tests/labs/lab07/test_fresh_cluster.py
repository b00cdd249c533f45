"""Every cell of lab07 runs, before anything is written and when all is."""

from __future__ import annotations

import pytest

SMALL = (("ranks = 8\nblocks = 48", "ranks = 4\nblocks = 12"),)
WAITING = ("ring", "pick_collective", "buckets")


@pytest.mark.slow
def test_every_cell_of_the_stub_notebook_runs(run_all, capsys):
    run_all(solved=False, small=SMALL)
    said = capsys.readouterr().out

    assert [] == [name for name in WAITING if f"This cell shows something once {name} is written." not in said]


@pytest.mark.slow
def test_the_solution_shows_what_its_text_says(run_all, capsys):
    run_all(solved=True, small=SMALL)
    said = capsys.readouterr().out

    assert "This cell" not in said
    assert "the two cross at 226 kB" in said
    assert "64 ranks, 1 kB: ring 2.52 ms" in said
    assert "112 ms for 400 empty sums" in said
    assert "What happens is … a wrong b, then a hang" in said
