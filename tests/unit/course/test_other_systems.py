"""On macOS and Windows: students work, instructors are told where grading runs, and nothing breaks at an import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from edl_labs.cli import app
from edl_labs.course.run import doctor
from edl_labs.errors import UsageError

ROOT = Path(__file__).resolve().parents[3]
# What only POSIX has; `edl_labs.cli` imports its verbs' modules when they run, so they are imported by name here.
WITHOUT = """
import importlib, pkgutil, sys
for name in ("fcntl", "resource", "grp", "syslog"):
    sys.modules[name] = None
import edl_labs
ran_apart = ("edl_labs.course.sandbox.zygote", "edl_labs.exercises", "edl_labs.labs")
for found in pkgutil.walk_packages(edl_labs.__path__, "edl_labs."):
    if found.name.startswith(ran_apart) or found.name.endswith("__main__"):
        continue
    try:
        importlib.import_module(found.name)
    except ImportError as error:
        if "halted; None in sys.modules" in str(error):
            print(found.name, error)
"""


def test_every_module_can_be_imported_without_what_only_posix_has():
    done = subprocess.run([sys.executable, "-c", WITHOUT], cwd=ROOT, capture_output=True, text=True, timeout=300)

    assert ("", 0) == (done.stdout, done.returncode), done.stderr[-2000:]


@pytest.mark.parametrize(
    ("system", "command", "told"),
    [
        ("win32", ["grade", "lab01_gpu_basics"], "grading does not run on Windows"),
        ("win32", ["grade", "lab01_gpu_basics", "--unsafe"], "grading does not run on Windows"),
        ("darwin", ["grade", "lab01_gpu_basics"], "grading does not run on macOS"),
        ("darwin", ["regrade", "lab01_gpu_basics", "bandwidth"], "grading does not run on macOS"),
        ("win32", ["test", "lab01_gpu_basics"], "the proof of a lab does not run on Windows"),
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
