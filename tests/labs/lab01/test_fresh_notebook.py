"""A student who runs all cells before writing anything is stopped by none of them."""

from __future__ import annotations

import pytest

from edl_labs.course.lab.source import parse
from tests.labs.lab01.conftest import SOURCE

CELLS = [cell for cell in parse(SOURCE.read_text(encoding="utf-8"), file=SOURCE.name) if cell.kind == "code"]


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
        source = source.replace("launches = 1000", "launches = 20")
        exec(compile(source, f"{cell.label}, line {cell.line}", "exec"), names)


def test_every_cell_of_the_stub_notebook_runs(off_screen, capsys):
    run_all(solved=False)
    said = capsys.readouterr().out

    for name in ("finish_times", "honest_timer", "wave_quantization", "petabyte", "transfer_overlap"):
        assert f"This cell shows something once {name} is written." in said


def test_no_cell_of_the_solution_notebook_waits_for_anything(off_screen, capsys):
    run_all(solved=True)
    said = capsys.readouterr().out

    assert "This cell" not in said
    assert "1 PB over SATA, read as 6 Gbit/s: 19.3 days" in said
    assert "kernels of 200 µs: host 50 µs, device 2.01 ms" in said
