"""From the plain student install, wheel and `[lab]` alone, every lab runs to its end, unsolved and solved."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from edl_labs.course.course_folder import Course
from edl_labs.course.lab.read import read_labs
from edl_labs.course.run.doctor import LAB_PACKAGES
from tests.course.once import once
from tests.course.student_install import ROOT, StudentInstall, install, report_of

LABS = {lab.name: lab for lab in read_labs(Course(ROOT))}
# Making the environment downloads torch; a lab with quick parameters takes up to some minutes on a busy machine.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


@pytest.fixture(scope="session")
def student(tmp_path_factory: pytest.TempPathFactory) -> StudentInstall:
    return StudentInstall(once(tmp_path_factory, "student-install", install))


def states(lab: str, of_code: str) -> set[str]:
    """What a lab's exercises come to: those in prose, if it has any, are marked by hand."""
    return {"marked by hand" if one.kind == "explain" else of_code for one in LABS[lab].exercises}


@pytest.mark.parametrize("lab", LABS)
def test_a_solved_lab_has_full_marks_and_no_cell_that_breaks(lab: str, student: StudentInstall, tmp_path: Path) -> None:
    code, report = report_of(student, LABS[lab], tmp_path, solved=True)

    assert [] == report["failures"]
    assert states(lab, "passed") == {e["state"] for e in report["exercises"]}
    assert 0 == code


@pytest.mark.parametrize("lab", LABS)
def test_an_unsolved_lab_runs_to_its_end_with_no_point(lab: str, student: StudentInstall, tmp_path: Path) -> None:
    code, report = report_of(student, LABS[lab], tmp_path, solved=False)

    assert [] == report["failures"]
    assert states(lab, "not attempted") == {e["state"] for e in report["exercises"]}
    assert (1, 0) == (code, report["points"])


@pytest.fixture(scope="session")
def elsewhere(student: StudentInstall, tmp_path_factory: pytest.TempPathFactory) -> StudentInstall:
    """The same environment on a system without what only Linux has."""
    folder = tmp_path_factory.mktemp("elsewhere")
    text = (Path(__file__).parent / "elsewhere.py").read_text(encoding="utf-8")
    (folder / "sitecustomize.py").write_text(text, encoding="utf-8")
    return replace(student, variables=(("PYTHONPATH", str(folder)),))


def test_elsewhere_has_nothing_that_only_linux_has(elsewhere: StudentInstall, tmp_path: Path) -> None:
    ask = "import os, signal, multiprocessing as m; print(hasattr(os, 'fork'), hasattr(signal, 'SIGALRM'))"
    more = "print(m.get_start_method(), os.path.exists('/proc/self'))"
    triton = "import importlib.util as u; print(u.find_spec('triton'))"
    environment = {**os.environ, **dict(elsewhere.variables)}
    command = [str(elsewhere.folder / "bin" / "python"), "-c", f"{ask}; {more}; {triton}"]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)

    assert ["False False", "spawn False", "None"] == done.stdout.split("\n")[:3]


@pytest.mark.parametrize("solved", [False, True], ids=["unsolved", "solved"])
@pytest.mark.parametrize("lab", LABS)
def test_a_lab_runs_where_only_what_windows_has_too_is_there(
    lab: str, solved: bool, elsewhere: StudentInstall, tmp_path: Path
) -> None:
    _, report = report_of(elsewhere, LABS[lab], tmp_path, solved=solved)

    assert [] == report["failures"]
    assert states(lab, "passed" if solved else "not attempted") == {e["state"] for e in report["exercises"]}


@pytest.mark.parametrize("lab", LABS)
def test_the_doctor_finds_what_it_installs_and_names_the_rest(
    lab: str, student: StudentInstall, tmp_path: Path
) -> None:
    done = student.run("doctor", "--lab", lab, "--json", cwd=tmp_path)

    rows = {row["name"]: row for row in json.loads(done.stdout)["rows"]}
    packages = LAB_PACKAGES.get(lab, ())
    assert {p.name: "ok" if p.extra == "lab" else "missing" for p in packages} == {
        p.name: rows[p.name]["state"] for p in packages
    }
    assert 0 == done.returncode


def test_start_lays_out_every_lab(student: StudentInstall, tmp_path: Path) -> None:
    done = student.run("start", "my-labs", "--no-open", "--json", cwd=tmp_path)

    assert (0, sorted(LABS)) == (done.returncode, sorted(json.loads(done.stdout)["labs"]))
    assert all((tmp_path / "my-labs" / lab / f"{lab}.ipynb").is_file() for lab in LABS)
