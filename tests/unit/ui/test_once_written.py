"""Cells that use a student's function wait for it with a word, and never stop a notebook."""

from __future__ import annotations

import pytest

from edl_labs.ui import once_written as module
from edl_labs.ui.once_written import once_written


def test_a_stub_is_told_in_one_line(capsys):
    with once_written("petabyte"):
        raise NotImplementedError

    assert "This cell shows something once petabyte is written.\n" == capsys.readouterr().out


def test_a_broken_function_is_named_with_its_error(capsys):
    with once_written("petabyte"):
        raise ValueError("no such unit")

    assert (
        'This cell needs a working petabyte, which raised ValueError: no such unit; check("petabyte") says more.\n'
        == capsys.readouterr().out
    )


def test_a_working_function_runs_and_nothing_is_added(capsys):
    with once_written("petabyte"):
        print("19 days")

    assert "19 days\n" == capsys.readouterr().out


def test_a_block_that_never_ends_is_stopped_with_a_word(capsys, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "_LIMIT_S", 0.2)

    with once_written("petabyte"):
        while True:
            pass

    assert (
        "This cell was stopped after 0.2 s: look for a loop in petabyte that never ends.\n" == capsys.readouterr().out
    )


def test_a_name_of_an_earlier_cell_is_no_mistake_of_the_function(capsys):
    with once_written("petabyte"):
        exec("units.seconds(1)", {})

    out = capsys.readouterr().out
    assert out.startswith("This cell needs units, which an earlier cell (it begins with `")
    assert out.endswith("run the cells above (Run, Run All Above Selected Cell), then this one again.\n")


def test_a_name_that_no_cell_of_the_lab_defines_is(capsys):
    with once_written("petabyte"):
        exec("unitz.seconds(1)", {})

    assert "which raised NameError: name 'unitz' is not defined" in capsys.readouterr().out
