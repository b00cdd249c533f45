"""Every cell of lab08c runs, before anything is written and when all is; its network is lab08b's."""

from __future__ import annotations

import pytest

from tests.labs.conftest import SOLUTIONS, cells_of

SMALL = (("compile_here = True", "compile_here = False"), ("compare_s = 4.0", "compare_s = 0.5"))


@pytest.mark.slow
def test_every_cell_of_the_stub_notebook_runs(run_all, capsys):
    run_all(solved=False, small=SMALL)
    said = capsys.readouterr().out

    assert "This cell shows something once capture is written." in said


@pytest.mark.slow
def test_the_solution_shows_what_its_text_says(run_all, capsys):
    run_all(solved=True, small=SMALL)
    said = capsys.readouterr().out

    assert "This cell" not in said
    assert "modelled, with the loops: 421 µs, replayed 127 µs" in said
    assert "block: break in" in said
    assert "mended_block: recompile" in said
    assert "fixed: recorded, torch" in said


def test_both_labs_mend_one_network(cells):
    other = cells_of(str(SOLUTIONS.parent / "tests" / "labs" / "lab08b" / "test_fresh_layouts.py"))
    networks = [[cell.source for cell in lab if "def network(" in cell.source] for lab in (cells, other)]

    assert [1, 1] == list(map(len, networks))
    assert networks[0] == networks[1]
