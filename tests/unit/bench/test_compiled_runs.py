"""A compiled function against itself: recorded where nothing compiles, and when its first call has paid."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from edl_labs.bench.compiled_runs import CompiledRun, compiled_run
from edl_labs.errors import EdlError
from edl_labs.hardware import recordings

NAME = "cpu_compiled_network"


def test_the_recording_is_given_where_nothing_is_compiled():
    found = recordings.load(NAME)
    run = compiled_run(lambda: None, budget_s=0.1, recorded=(NAME, 1), here=False)

    assert run.is_recorded
    assert (found.values("eager")[1], found.values("compiled, warm")[1]) == (run.eager_s, run.warm_s)
    assert str(run).startswith("recorded, torch ")


def test_without_a_recording_the_error_says_what_to_install():
    with pytest.raises(EdlError, match="cannot be compiled here") as raised:
        compiled_run(lambda: None, budget_s=0.1, here=False)

    assert "install a C++ compiler" in str(raised.value)


def test_a_tool_chain_that_fails_is_no_error_where_there_is_a_recording(monkeypatch):
    torch = pytest.importorskip("torch")

    def refused(function):
        raise RuntimeError("no compiler")

    monkeypatch.setattr(torch, "compile", refused)

    assert compiled_run(lambda: None, budget_s=0.1, recorded=(NAME, 0)).is_recorded


@pytest.mark.parametrize(("warm_s", "high", "calls"), [(0.01, 0.55, 800), (0.01, 1.02, None), (0.03, 0.9, None)])
def test_the_first_call_is_paid_for_where_a_warm_one_is_surely_quicker(warm_s, high, calls):
    run = CompiledRun(eager_s=0.02, first_call_s=8.0, warm_s=warm_s, low=0.45, high=high, machine="a laptop")

    assert calls == run.paid_after


def test_eager_and_compiled_are_compared(monkeypatch):
    """With a compiler that changes nothing: the call that compiles is timed apart from the others."""
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch, "compile", lambda function: function)
    x = torch.ones(1000)

    run = compiled_run(lambda: x * 2, budget_s=0.2, equal=torch.equal)

    assert not run.is_recorded
    assert run.first_call_s > 0
    assert run.low <= run.high


def test_a_machine_with_cudas_tools_and_no_gpu_writes_nothing_in_red():
    """In a process of its own: torch says it once, when the module is imported."""
    quiet, loud = (
        "from edl_labs.bench.compiled_runs import _import_quietly as f; f()",
        "import torch.utils.cpp_extension",
    )
    environment = {**os.environ, "CUDA_HOME": "/usr/local", "CUDA_VISIBLE_DEVICES": ""}
    said = [
        subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True).stderr
        for code in (quiet, loud)
    ]

    assert ["", True] == [said[0], "No CUDA runtime is found" in said[1]]
