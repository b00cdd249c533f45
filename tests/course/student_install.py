"""What a student has: a fresh environment with the wheel and `[lab]` alone, and the notebooks that it works on."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from edl_labs.course.course_folder import Course
from edl_labs.course.lab.parsed_lab import Lab
from edl_labs.course.lab.publish import build_wheel

ROOT = Path(__file__).resolve().parents[2]
# The same notebooks as on other systems.
TRY = runpy.run_path(str(ROOT / "scripts" / "try_install.py"), run_name="try_install")
# What pip says when it cannot reach any index; everything else that it says is a failure of ours.
OFFLINE = ("NewConnectionError", "NameResolutionError", "ConnectTimeoutError", "Network is unreachable")


@dataclass(frozen=True)
class StudentInstall:
    """The folder of the environment, in which nothing else lies, and variables that its programs get beside."""

    folder: Path
    variables: tuple[tuple[str, str], ...] = ()

    def run(self, *words: str, cwd: Path, timeout_s: float = 1800.0) -> subprocess.CompletedProcess[str]:
        """`edl-labs WORDS` of that environment, in `cwd`, without anything of this checkout."""
        kept = {
            key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "EDL_LABS", "VIRTUAL"))
        }
        environment = {**kept, "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.defpath}", "HOME": str(self.folder)}
        environment |= dict(self.variables)
        return subprocess.run(
            [str(self.folder / "bin" / "edl-labs"), *words],
            cwd=cwd,
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )


def install(folder: Path) -> None:
    """Make the environment in `folder` as labs/README.md tells students to; skips, saying why, without a network."""
    wheel = build_wheel(Course(ROOT), folder.parent / f"{folder.name}-dist")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--retries", "8"]
    command = [*pip, "--constraint", str(ROOT / "constraints.txt"), f"{wheel}[lab]"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1500, check=False)
    if done.returncode and any(word in done.stderr for word in OFFLINE):
        pytest.skip(f"no package index can be reached: {done.stderr.strip()[-200:]}")
    assert 0 == done.returncode, done.stderr[-2000:]


def report_of(install: StudentInstall, lab: Lab, folder: Path, *, solved: bool) -> tuple[int, dict[str, Any]]:
    """Exit code and report of `edl-labs check` on the lab, in an empty folder."""
    path = TRY["lay_out"](lab, folder, solved=solved)
    done = install.run("check", path.name, "--json", cwd=folder)
    assert done.stdout, done.stderr[-2000:]
    return done.returncode, json.loads(done.stdout)
