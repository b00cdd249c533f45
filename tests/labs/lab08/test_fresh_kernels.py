"""Every cell of lab08 runs, before anything is written and when all is."""

from __future__ import annotations

import pytest

SMALL = (("side = 128", "side = 64"),)
WAITING = ("coalesced", "tile_choice", "order_matters", "first_layers")


@pytest.mark.slow
def test_every_cell_of_the_stub_notebook_runs(run_all, capsys):
    run_all(solved=False, small=SMALL)
    said = capsys.readouterr().out

    assert [] == [name for name in WAITING if f"This cell shows something once {name} is written." not in said]
    assert "modelled: (6, 6) by the warps, 50% active" in said


@pytest.mark.slow
def test_the_solution_shows_what_its_text_says(run_all, capsys):
    run_all(solved=True, small=SMALL)
    said = capsys.readouterr().out

    assert "This cell" not in said
    assert "modelled, short: 4608 sectors" in said
    assert "modelled, yours: 1024 sectors" in said
    assert "modelled, k = 1024: tile 1 in 1 parts" in said
    assert "modelled, k = 65536: tile 0 in 16 parts" in said
