"""A course with a lab of edl_labs, from a checkout and from the instructors' wheel, from its first command to marks."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import nbformat
import pytest

from edl_labs.course.course_folder import Course as Repository
from edl_labs.course.lab.publish import build_wheel
from tests.course.course_fixture import REPOSITORY, Course, solved

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
LAB = "lab08b_layouts"


def instructors_install(folder: Path) -> Path:
    """`edl-labs` of a fresh environment: the instructors' wheel, and what else this environment has but edl_labs."""
    wheel = build_wheel(Repository(REPOSITORY), folder / "dist", judge=True)
    venv.create(folder / "env", with_pip=True)
    python = folder / "env" / "bin" / "python"
    site = next((folder / "env" / "lib").glob("python*/site-packages"))
    (site / "others.pth").write_text(next(path for path in sys.path if path.endswith("site-packages")))
    subprocess.run([str(python), "-m", "pip", "install", "-q", "--no-deps", "--no-index", str(wheel)], check=True)
    return python.with_name("edl-labs")


def run(program: Path, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """`edl-labs WORDS` in `cwd`, without anything of this checkout but what the program has installed."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "EDL_LABS", "VIRTUAL"))}
    kept["PATH"] = os.pathsep.join([str(program.parent), str(Path(sys.executable).parent), kept["PATH"]])  # alembic
    kept["JUPYTER_PATH"] = str(Path(sys.prefix, "share", "jupyter"))  # nbconvert's templates
    return subprocess.run([str(program), *words], cwd=cwd, env=kept, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("installed", ["checkout", "wheel"])
def test_a_term_with_a_lab_of_edl_labs(installed: str, tmp_path: Path):
    here = Path(sys.executable).with_name("edl-labs")
    program = instructors_install(tmp_path) if installed == "wheel" else here
    root = tmp_path / "my-course"

    def verb(*words: str) -> str:
        done = run(program, *words, cwd=root if root.exists() else tmp_path)
        assert 0 == done.returncode, f"{words}: {done.stderr[-2000:]}"
        return done.stdout

    verb("course", "my-course", "--labs", LAB)
    assert (REPOSITORY / "labs" / LAB / f"{LAB}.ipynb").read_bytes() == (
        root / "labs" / LAB / f"{LAB}.ipynb"
    ).read_bytes()
    with (root / "course.toml").open("a") as file:
        file.write(f'[late]\nper_day = 0.5\n[[assignment]]\nname = "{LAB}"\ndue = 2026-11-01T12:00:00\n')
    course = Course(root, LAB, own_exercises=False)
    late = course.submit("ada", solved(course))
    (late.parent / "timestamp.txt").write_text("2026-11-01 18:00:00 UTC")
    course.submit("bob", nbformat.read(root / "labs" / LAB / f"{LAB}.ipynb", as_version=4))
    graded = json.loads(verb("grade", LAB, "--json"))
    verb("report", LAB)
    verb("feedback", LAB)
    assert "0 files changed" in verb("course", ".", "--upgrade")  # keeps dates and marks
    verb("export", LAB, "--to", "csv", "--out", "marks.csv")
    verb("publish", "../public")
    marks = {row["student"]: row for row in csv.DictReader((root / "marks.csv").read_text("utf-8-sig").splitlines())}

    assert {"ada", "bob"} == set(marks), graded
    assert ("3.5", "7", "3.5") == tuple(marks["ada"][key] for key in ("points", "of", "penalty"))
    assert "0" == marks["bob"]["points"]
    assert (tmp_path / "public" / "labs" / LAB / f"{LAB}.ipynb").is_file()


def test_a_lab_that_the_course_has_not_is_one_command_away(tmp_path: Path):
    (tmp_path / "nbgrader_config.py").write_text((REPOSITORY / "nbgrader_config.py").read_text())
    said = run(Path(sys.executable).with_name("edl-labs"), "grade", LAB, cwd=tmp_path).stderr

    assert f"edl-labs course . --labs {LAB}" in said
    assert "edl-labs build" not in said
