"""Programs in plain torch: measured where they can run, with a reason and a told figure where they cannot."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import pytest
import torch

from edl_labs.device import QUICK
from edl_labs.ui import in_torch as module
from edl_labs.ui.in_torch import in_torch

CELLS = {
    "right": 'def right():\n    x = torch.ones(4)\n    return {"sum": lambda: x.add_(1), "ranks": 2}\n',
    "wrong": 'def wrong():\n    raise ValueError("no such tensor")\n',
    "unwritten": "def unwritten():\n    raise NotImplementedError\n",
    "endless": "def endless():\n    while True:\n        pass\n",
}


def defined(name: str, text: str = "") -> Callable[..., Any]:
    """A function as a notebook's cell defines it, which also shows something."""
    source = (text or CELLS[name]) + 'print("shown")\n'
    file = f"<cell {name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    names: dict[str, Any] = {"torch": torch}
    exec(compile(source, file, "exec"), names)
    found: Callable[..., Any] = names[name]
    return found


def test_without_cuda_the_told_figure_is_shown(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)

    in_torch(dict, told="modelled: 3 ms")

    expected = "not run here: there is no CUDA device. The program above is what would run.\nmodelled: 3 ms\n"
    assert expected == capsys.readouterr().out


def test_what_needs_no_cuda_is_timed_here(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.delenv(QUICK, raising=False)
    calls: list[int] = []

    in_torch(lambda: {"call": lambda: calls.append(1), "count": 3}, anywhere=True)

    said = capsys.readouterr().out
    assert said.startswith("measured on ")
    assert said.endswith("count 3\n")
    assert 6 == len(calls)


def test_a_quick_run_starts_no_process(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setenv(QUICK, "1")
    monkeypatch.setattr(module.subprocess, "Popen", None)

    in_torch(defined("right"), ranks=2)
    in_torch(defined("right"), anywhere=True)

    assert 2 == capsys.readouterr().out.count("not run here: this is a quick run.")


@pytest.mark.timeout(300)  # two processes import torch, on a busy machine
def test_two_processes_run_the_cell_and_what_it_shows_is_left_out(capsys: Any) -> None:
    program = defined("right")
    capsys.readouterr()

    in_torch(program, ranks=2)

    said = capsys.readouterr().out
    assert said.startswith("measured on 2 processes on this processor: sum ")
    assert said.endswith("ranks 2\n")


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_failure_is_said_and_what_is_not_written_is_raised(capsys: Any) -> None:
    in_torch(defined("wrong"), ranks=2)

    assert "a process ended with 'ValueError: no such tensor'" in capsys.readouterr().out
    with pytest.raises(NotImplementedError):
        in_torch(defined("unwritten"), ranks=2)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_processes_that_do_not_end_are_ended(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(module, "_LIMIT_S", 20.0)

    in_torch(defined("endless"), ranks=2)

    assert "its processes did not end within 20 s" in capsys.readouterr().out


def test_a_function_without_a_cell_is_not_run(capsys: Any) -> None:
    in_torch(eval("lambda: {}"), ranks=2)

    assert "the source of <lambda> is not in a cell" in capsys.readouterr().out


def test_a_cell_with_magic_is_not_run(capsys: Any) -> None:
    program = defined("right")
    linecache.cache["<cell right>"] = (1, None, ["%time 1\n"], "<cell right>")

    in_torch(program, ranks=2)

    assert "its cell is not plain Python" in capsys.readouterr().out
