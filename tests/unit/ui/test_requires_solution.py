"""Cells that use a student's function wait for it with a word, and never stop a notebook."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from edl_labs.ui import requires_solution as module
from edl_labs.ui.requires_solution import requires_solution


def test_a_stub_is_told_in_one_line(capsys):
    with requires_solution("petabyte"):
        raise NotImplementedError

    assert "This cell shows something once petabyte is written.\n" == capsys.readouterr().out


def test_a_broken_function_is_named_with_its_error(capsys):
    with requires_solution("petabyte"):
        raise ValueError("no such unit")

    assert (
        'This cell needs a working petabyte, which raised ValueError: no such unit; check("petabyte") says more.\n'
        == capsys.readouterr().out
    )


def test_a_figure_that_was_begun_is_not_shown_empty():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.figure()
    before = pyplot.get_fignums()
    with requires_solution("petabyte"):
        pyplot.figure()
        raise NotImplementedError

    assert before == pyplot.get_fignums()
    with requires_solution("petabyte"):
        pyplot.figure()
    assert len(before) + 1 == len(pyplot.get_fignums())
    pyplot.close("all")


def test_a_working_function_runs_and_nothing_is_added(capsys):
    with requires_solution("petabyte"):
        print("19 days")

    assert "19 days\n" == capsys.readouterr().out


def test_a_block_that_never_ends_is_stopped_with_a_word(capsys):
    with requires_solution("petabyte", limit_s=0.2):
        while True:
            pass

    assert (
        "This cell was stopped after 0.2 s: look for a loop in petabyte that never ends, "
        'or, on a slow machine, allow more time: requires_solution("petabyte", limit_s=1).\n'
    ) == capsys.readouterr().out


def test_a_block_has_the_time_that_it_is_given(monkeypatch: pytest.MonkeyPatch):
    given_s = []
    monkeypatch.setattr(module, "time_limit", lambda limit_s: given_s.append(limit_s) or nullcontext())

    with requires_solution("petabyte", limit_s=600):
        pass
    with requires_solution("petabyte"):
        pass

    assert [600, 120] == given_s


def test_a_name_of_an_earlier_cell_is_no_mistake_of_the_function(capsys):
    with requires_solution("petabyte"):
        exec("units.seconds(1)", {})

    out = capsys.readouterr().out
    assert out.startswith(
        "This cell needs units, which is undefined now. It is defined in an earlier cell (it starts with `"
    )
    assert out.endswith("run the cells above (menu Run, Run All Above Selected Cell), then this one again.\n")


def test_a_name_that_no_cell_of_the_lab_defines_is(capsys):
    with requires_solution("petabyte"):
        exec("unitz.seconds(1)", {})

    assert "which raised NameError: name 'unitz' is not defined" in capsys.readouterr().out
