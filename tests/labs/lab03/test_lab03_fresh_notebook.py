"""A student who runs all cells before writing anything is stopped by none of them."""

from __future__ import annotations

import pytest

from edl_labs.course.lab.source import parse
from tests.labs.lab03.conftest import SOURCE

CELLS = [cell for cell in parse(SOURCE.read_text(encoding="utf-8"), file=SOURCE.name) if cell.kind == "code"]
WAITING = ("encode_decode", "where_it_breaks", "accumulate_sum", "static_scale", "dynamic_scale", "train_it")


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
        source = source.replace("steps = 120", "steps = 30").replace("matrix = 4096", "matrix = 512")
        exec(compile(source, f"{cell.label}, line {cell.line}", "exec"), names)


def test_every_cell_of_the_stub_notebook_runs(off_screen, capsys):
    run_all(solved=False)
    said = capsys.readouterr().out

    for name in WAITING:
        assert f"This cell shows something once {name} is written." in said


def test_no_cell_of_the_solution_notebook_waits_for_anything(off_screen, capsys):
    run_all(solved=True)
    said = capsys.readouterr().out

    assert "This cell" not in said
    assert "bf16: one after another 4, yours 10" in said
    assert "deck 002: 18 bytes" in said
