"""Cells that use a student's function wait for it with a word, and never stop a notebook."""

from __future__ import annotations

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
