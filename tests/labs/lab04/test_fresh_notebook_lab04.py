"""A student who runs all cells before writing anything is stopped by none of them."""

from __future__ import annotations

import pytest

SMALL = (("images = 96", "images = 24"), ("seconds = 2.0", "seconds = 0.1"))
pytestmark = pytest.mark.slow


def test_every_cell_of_the_stub_notebook_runs(run_all, capsys):
    run_all(solved=False, small=SMALL)["scratch"].cleanup()
    said = capsys.readouterr().out

    for name in ("read_plan", "stage_ladder", "predict_workers", "pack_sequences", "overlap_plan"):
        assert f"This cell shows something once {name} is written." in said


def test_no_cell_of_the_solution_notebook_waits_for_anything(run_all, capsys):
    run_all(solved=True, small=SMALL)["scratch"].cleanup()
    said = capsys.readouterr().out

    assert "This cell" not in said
    assert "hdd: in order 675 ms, scattered 8.67 s, 12.8 times as long" in said
    assert "naive: predicted      -, measured here" in said
