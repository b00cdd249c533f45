"""A student who runs all cells of the lab before writing anything is stopped by none of them."""

from __future__ import annotations

import pytest

from edl_labs.course.lab.source import parse
from tests.labs.lab05.conftest import SOURCE

CELLS = [cell for cell in parse(SOURCE.read_text(encoding="utf-8"), file=SOURCE.name) if cell.kind == "code"]
SMALL = (
    ("batch_size = 8", "batch_size = 2"),
    ("train_steps = 30", "train_steps = 4"),
    ("_seconds = 2.0", "_seconds = 0.4"),
    ("compare_profilers = True", "compare_profilers = False"),
)


@pytest.fixture
def off_screen():
    import matplotlib

    matplotlib.use("Agg")
    yield
    from matplotlib import pyplot

    pyplot.close("all")


def run_all(*, solved: bool) -> None:
    names = {"__name__": "notebook"}
    for cell in CELLS:
        if cell.role == "check":
            continue
        source = cell.source if solved or cell.role != "solve" else cell.stub
        for large, small in SMALL:
            source = source.replace(large, small)
        exec(compile(source, f"{cell.label}, line {cell.line}", "exec"), names)


@pytest.mark.slow
def test_every_cell_of_the_stub_notebook_runs(off_screen, capsys):
    run_all(solved=False)
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
def test_no_cell_of_the_solution_notebook_waits_for_anything(off_screen, capsys):
    run_all(solved=True)
    said = capsys.readouterr().out

    assert "This cell" not in said
    assert "deck [000]: N W R R S N W R R S N N" in said
    assert "1 blocks on 108 SMs (computed): the monitor says 100%, SMs at work   0.9%" in said
