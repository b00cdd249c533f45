"""Every cell of lab09 runs, before anything is written and when all is."""

from __future__ import annotations

import pytest

SMALL = (("training_steps = 120", "training_steps = 24"), ("test_images = 2000", "test_images = 200"))
WAITING = ("fold_batch_norm", "calibrate", "int8_product", "two_of_four", "memory_plan", "fuse_and_tune")


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
    assert "12 layers became 8" in said
    assert "1.125 B a weight for 2" in said
