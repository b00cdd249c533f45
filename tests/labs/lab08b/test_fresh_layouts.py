"""Every cell of lab08b runs, before anything is written and when all is."""

from __future__ import annotations

import pytest

SMALL = (("compile_here = True", "compile_here = False"), ("compare_s = 4.0", "compare_s = 0.5"))


@pytest.mark.slow
def test_every_cell_of_the_stub_notebook_runs(run_all, capsys):
    run_all(solved=False, small=SMALL)
    said = capsys.readouterr().out

    assert [] == [
        name for name in ("strides", "fuse") if f"This cell shows something once {name} is written." not in said
    ]


@pytest.mark.slow
def test_the_solution_shows_what_its_text_says(run_all, capsys):
    run_all(solved=True, small=SMALL)
    said = capsys.readouterr().out

    assert "This cell" not in said
    assert "yours:              12 operators in 7 kernels, 30.4 MB moved of 45.1 MB" in said
    assert "NHWC input and output, fp16, yours: 747 kB" in said
    assert "slow: 30 operators in 3 kernels" in said
    assert "recorded, torch" in said
