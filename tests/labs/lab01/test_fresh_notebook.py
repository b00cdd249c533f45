"""A student who runs all cells before writing anything is stopped by none of them."""

from __future__ import annotations

SMALL = (("launches = 1000", "launches = 20"),)


def test_every_cell_of_the_stub_notebook_runs(run_all, capsys):
    run_all(solved=False, small=SMALL)
    said = capsys.readouterr().out

    for name in ("finish_times", "honest_timer", "wave_quantization", "petabyte", "transfer_overlap"):
        assert f"This cell shows something once {name} is written." in said


def test_no_cell_of_the_solution_notebook_waits_for_anything(run_all, capsys):
    run_all(solved=True, small=SMALL)
    said = capsys.readouterr().out

    assert "This cell" not in said
    assert "1 PB over SATA, read as 6 Gbit/s: 19.3 days" in said
    assert "kernels of 200 µs: host 50 µs, device 2.01 ms" in said
