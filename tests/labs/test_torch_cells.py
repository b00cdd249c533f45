"""The cells that have an exercise's program once more in plain torch: where they run, and what they say elsewhere."""

from __future__ import annotations

import linecache
import re
import time
from typing import Any

import pytest
import torch

from edl_labs.course.course_folder import Course
from edl_labs.course.lab.read import read_labs
from edl_labs.course.lab.source import Cell
from edl_labs.device import QUICK, torch_threads
from tests.fake_cuda import NAME, fake_cuda
from tests.labs.conftest import SOLUTIONS

LABS = {lab.name.partition("_")[0]: lab for lab in read_labs(Course(SOLUTIONS.parent))}
# Which lab has which program, and what it needs.
ON_CUDA = [("lab01", "overlap"), ("lab08c", "capture"), ("lab09b", "continuous"), ("lab10b", "single")]
ON_GLOO = [("lab07", "ring"), ("lab07", "buckets"), ("lab07b", "sharded"), ("lab10b", "scaled")]


def calling(lab: str, program: str) -> Cell:
    """The cell that runs a program."""
    (found,) = [cell for cell in LABS[lab].cells if re.search(rf"in_torch\(\s*{program}_in_torch\b", cell.source)]
    return found


def run(lab: str, program: str, *, small: bool = False) -> dict[str, Any]:
    """The cells that define names above a program's text, then its own cells, as a notebook has them."""
    cells, last = LABS[lab].cells, calling(lab, program)
    begins = max(at for at, cell in enumerate(cells[: cells.index(last)]) if cell.kind == "markdown")
    names: dict[str, Any] = {"__name__": "notebook"}
    for at, cell in enumerate(cells[: cells.index(last) + 1]):
        own = at > begins
        if own or cell.role in ("setup", "parameters", "given", "solve"):
            source = (
                re.sub(r"\b(8_000_000|1_000_000|1024|512|256)\b", "16", cell.source) if own and small else cell.source
            )
            file = f"<{lab} {cell.line}>"
            linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
            exec(compile(source, file, "exec"), names)
    return names


@pytest.mark.parametrize(("lab", "program"), [*ON_CUDA, *ON_GLOO])
def test_a_cell_in_torch_has_no_role_and_says_which_call_is_which(lab: str, program: str) -> None:
    at = LABS[lab].cells.index(calling(lab, program))
    before = [cell.source for cell in LABS[lab].cells[:at] if cell.kind == "markdown"][-1]

    assert LABS[lab].cells[at].role is None
    assert before.startswith("**The same in torch.**")
    assert 4 <= before.count("`") // 2


def test_no_other_lab_has_such_cells_unseen() -> None:
    found = {
        (name, program)
        for name, lab in LABS.items()
        for cell in lab.cells
        for program in re.findall(r"in_torch\(\s*(\w+)_in_torch\b", cell.source)
    }

    assert {*ON_CUDA, *ON_GLOO} == found


@pytest.mark.parametrize(("lab", "program"), [*ON_CUDA, *ON_GLOO])
def test_in_a_run_for_marks_it_is_not_here_within_a_second(
    lab: str, program: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(QUICK, "1")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    names = run(lab, program)
    capsys.readouterr()
    began_s = time.process_time()
    exec(compile(calling(lab, program).source, "cell", "exec"), names)

    assert time.process_time() - began_s < 1
    said = capsys.readouterr().out
    assert "not run here: " in said
    assert re.search("^(modelled|recorded)", said.splitlines()[-1])


@pytest.mark.parametrize(("lab", "program"), ON_CUDA)
def test_it_is_measured_where_torch_says_there_is_a_gpu(
    lab: str, program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    # Two threads of torch wait for each other in each operator where something else runs.
    with torch_threads(1), fake_cuda() as device:
        run(lab, program, small=True)

    assert f"measured on {NAME}: " in capsys.readouterr().out
    assert device.operators > 0


@pytest.mark.timeout(300)  # two processes import torch, on a busy machine
@pytest.mark.parametrize(
    ("lab", "program"), [ON_GLOO[0], *(pytest.param(*one, marks=pytest.mark.slow) for one in ON_GLOO[1:])]
)
def test_it_is_measured_on_two_processes(lab: str, program: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(lab, program, small=True)

    assert "measured on 2 processes on this processor: " in capsys.readouterr().out
