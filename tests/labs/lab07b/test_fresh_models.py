"""Every cell of lab07b runs, before anything is written and when all is."""

from __future__ import annotations

import pytest

SMALL = (("layer_count = 6", "layer_count = 4"),)
WAITING = ("sharded_step", "pipeline", "zero", "layout")


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
    assert "gpipe: 228 ms, idle 16" in said
    assert "stage 2: 16.6 GB held, 29.5 GB sent" in said
    assert "400 GB/s between nodes: {'dp': 16, 'tp': 1, 'pp': 1" in said
