"""Every cell of lab09b runs, before anything is written and when all is."""

from __future__ import annotations

import pytest

SMALL = (("request_count = 150", "request_count = 60"),)
WAITING = ("kv_cache", "decode_bound", "batcher", "continuous", "micro_batch")


@pytest.mark.slow
def test_every_cell_of_the_stub_notebook_runs(run_all, capsys):
    run_all(solved=False, small=SMALL)
    said = capsys.readouterr().out

    assert "needs a working" not in said
    assert [] == [name for name in WAITING if f"This cell shows something once {name} is written." not in said]


@pytest.mark.slow
def test_the_solution_shows_what_its_text_says(run_all, capsys):
    names = run_all(solved=True, small=SMALL)
    said = capsys.readouterr().out

    assert "This cell" not in said
    assert "a token leaves 512 KiB, 4096 2 GiB" in said
    assert "context 2000: ridge at batch None" in said
    # "at many times that load, in time"
    assert names["after"] > 20 * names["before"] > 0
