"""On macOS and Windows: students work, instructors are told where grading runs, and nothing breaks at an import."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from edl_labs.cli import app
from edl_labs.course.run import doctor
from edl_labs.errors import UsageError

ROOT = Path(__file__).resolve().parents[3]
# What only POSIX has. What runs as a process of its own on Linux may import it at once, and nobody else does.
ONLY_POSIX = {"fcntl", "resource", "pwd", "grp", "termios", "syslog"}
RUN_APART = ("edl_labs/course/sandbox/zygote/",)


def imported_at_once(source: str) -> set[str]:
    """The modules that a file imports when it is imported: not those of its functions."""
    found: set[str] = set()
    waiting: list[ast.AST] = [ast.parse(source)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add((node.module or "").partition(".")[0])
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)
    return found


def test_no_module_imports_at_once_what_only_posix_has() -> None:
    files = [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "edl_labs").rglob("*.py"))]
    asked = {name: imported_at_once((ROOT / name).read_text(encoding="utf-8")) & ONLY_POSIX for name in files}

    assert 600 < len(files)
    assert {} == {name: found for name, found in asked.items() if found and not name.startswith(RUN_APART)}


def test_an_import_in_a_function_is_seen_as_one() -> None:
    assert {"os", "fcntl"} == imported_at_once("import os\nif os.name:\n    import fcntl\n")
    assert set() == imported_at_once("def alone():\n    from resource import getrusage\n")


@pytest.mark.parametrize(
    ("system", "command", "told"),
    [
        ("win32", ["grade", "lab01_gpu_basics"], "grading does not run on Windows"),
        ("win32", ["grade", "lab01_gpu_basics", "--unsafe"], "grading does not run on Windows"),
        ("darwin", ["grade", "lab01_gpu_basics"], "grading does not run on macOS"),
        ("darwin", ["regrade", "lab01_gpu_basics", "bandwidth"], "grading does not run on macOS"),
        ("win32", ["test", "lab01_gpu_basics"], "edl-labs test does not run on Windows"),
    ],
)
def test_an_instructor_is_told_where_grading_runs(
    monkeypatch: pytest.MonkeyPatch, system: str, command: list[str], told: str
) -> None:
    monkeypatch.setattr(sys, "platform", system)

    error = CliRunner().invoke(app, command).exception

    assert isinstance(error, UsageError)
    assert told in str(error)
    assert "container" in str(error)


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_the_doctor_says_so_too(monkeypatch: pytest.MonkeyPatch, system: str) -> None:
    monkeypatch.setattr(sys, "platform", system)

    row = doctor._bubblewrap()

    assert "missing" == row.state
    assert "container" in str(row)
