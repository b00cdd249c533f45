"""A student who runs all cells before writing anything is stopped by none of them."""

from __future__ import annotations

import pytest

SMALL = (("steps = 120", "steps = 30"), ("matrix = 4096", "matrix = 512"))
WAITING = ("encode_decode", "where_it_breaks", "accumulate_sum", "static_scale", "dynamic_scale", "train_it")


@pytest.mark.slow
def test_every_cell_of_the_stub_notebook_runs(run_all, capsys):
    run_all(solved=False, small=SMALL)
    said = capsys.readouterr().out

    for name in WAITING:
        assert f"This cell shows something once {name} is written." in said


@pytest.mark.slow
def test_no_cell_of_the_solution_notebook_waits_for_anything(run_all, capsys):
    run_all(solved=True, small=SMALL)
    said = capsys.readouterr().out

    assert "This cell" not in said
    assert "bf16: one after another 4, yours 10" in said
    assert "deck 002: 18 bytes" in said
