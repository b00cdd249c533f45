"""A student who runs all cells of the lab before writing anything is stopped by none of them."""

from __future__ import annotations

import pytest

SMALL = (
    ("batch_size = 8", "batch_size = 2"),
    ("train_steps = 30", "train_steps = 4"),
    ("_seconds = 2.0", "_seconds = 0.4"),
    ("compare_profilers = True", "compare_profilers = False"),
)


@pytest.mark.slow
def test_every_cell_of_the_stub_notebook_runs(run_all, capsys):
    run_all(solved=False, small=SMALL)
    said = capsys.readouterr().out

    for name in (
        "self_times",
        "read_a_sampler",
        "schedule_states",
        "layer_profiler",
        "blame",
        "most_to_gain",
        "planted",
    ):
        assert f"This cell shows something once {name} is written." in said


@pytest.mark.slow
def test_no_cell_of_the_solution_notebook_waits_for_anything(run_all, capsys):
    run_all(solved=True, small=SMALL)
    said = capsys.readouterr().out

    assert "This cell" not in said
    assert "deck [000]: N W R R S N W R R S N N" in said
    assert "1 blocks on 108 SMs (computed): the monitor says 100%, SMs at work   0.9%" in said
