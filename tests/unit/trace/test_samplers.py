"""Samplers: their formats, their reasons, and three tools on one program."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

from edl_labs.errors import UsageError
from edl_labs.trace import Samples, attach, side_by_side
from edl_labs.trace import samplers as module
from edl_labs.trace.samplers import code_line, parse_raw

RAW = "main (a.py:1);load (a.py:5) 6\nmain (a.py:1) 3\nmain (a.py:1);load (a.py:5);main (a.py:1) 1\nnot a sample\n"
PROGRAM = """
import time

def fast():
    return sum(range(50_000))

def slow():
    total = 0
    for number in range(300_000):
        total += number
    return total

begun = time.process_time()
while time.process_time() - begun < 2.0:
    fast()
    slow()
"""


def test_own_time_counts_the_top_of_each_stack() -> None:
    assert {"load (a.py:5)": 0.6, "main (a.py:1)": 0.4} == Samples(parse_raw(RAW)).own()


def test_cumulative_time_counts_a_recursive_function_once() -> None:
    assert {"main (a.py:1)": 1.0, "load (a.py:5)": 0.7} == Samples(parse_raw(RAW)).cumulative()


def test_a_missing_tool_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_tool", lambda name: None)

    assert "not installed" in attach().refused


def test_a_process_that_is_none_is_a_reason() -> None:
    if module.find_tool("py-spy") is None:
        pytest.skip("py-spy is not installed")
    found = attach(2**22 + 1, duration_s=1)

    assert found.refused
    assert 0 == found.total


@pytest.mark.parametrize(
    ("scope", "words"), [("1", "only its children"), ("2", "only root"), ("3", "no process"), ("0", "SYS_PTRACE")]
)
def test_why_it_is_forbidden_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scope: str, words: str) -> None:
    setting = tmp_path / "ptrace_scope"
    setting.write_text(scope)
    monkeypatch.setattr(module, "_YAMA", setting)

    assert words in module.why_not("Error: Permission Denied: try again as root")


def test_no_time_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot sample"):
        attach(duration_s=0)


def test_no_program_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot find none"):
        side_by_side(tmp_path / "none.py")


def test_a_program_that_fails_is_refused(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("raise ValueError('too short')")
    with pytest.raises(UsageError, match="too short"):
        side_by_side(program)


def test_a_program_is_found_by_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "program.py").write_text("def work():\n    return sum(range(100_000))\n\nwork()\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(import_module("edl_labs.trace.samplers"), "find_tool", lambda name: None)

    assert "cProfile" in side_by_side("program.py").shares


def test_leave_to_look_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[int] = []
    monkeypatch.setattr(module, "_let_look", said.append)
    monkeypatch.setattr(module, "find_tool", lambda name: "py-spy")
    monkeypatch.setattr(module, "_sampled", lambda *_: Samples({}))
    attach()

    assert [-1, 0] == said


@pytest.mark.slow
def test_three_tools_agree_on_the_slow_function(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    found = side_by_side(program)

    assert set(found.shares) | set(found.missing) == {"cProfile", "py-spy", "scalene"}
    assert all("slow" == max(shares, key=lambda name: shares[name]) for shares in found.shares.values())
    assert "plain" in str(found)


@pytest.mark.slow
def test_a_running_process_is_sampled_or_the_reason_is_told(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.replace("< 2.0", "< 20.0"))
    with subprocess.Popen([sys.executable, str(program)]) as running:
        try:
            found = attach(running.pid, duration_s=1)
        finally:
            running.kill()

    assert found.refused or any("slow" in frame for frame in found.own())


def test_a_line_in_a_notebook_is_named_by_its_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = SimpleNamespace(_filename_map={"/tmp/ipykernel_7/760589466.py": 3})
    shell = SimpleNamespace(compile=compiled)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))

    assert code_line("/tmp/ipykernel_7/760589466.py", 8, "step") == "cell 3(8): step"
    assert code_line("/home/a/train.py", 8, "step") == "train.py(8): step"


def test_a_line_of_a_program_is_named_by_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)

    assert code_line("/home/a/train.py", 8, "step") == "train.py(8): step"
