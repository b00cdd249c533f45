"""A class on a JupyterHub: a student logs in, pulls, opens a lab, checks and hands in; the instructor grades."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from edl_labs.course.course_folder import Course
from edl_labs.course.lab.build import build
from edl_labs.course.lab.publish import build_wheel, publish
from edl_labs.course.own_course import make_course

_NEEDED = ("jupyterhub", "nbgitpuller", "websocket", "configurable_http_proxy")
_MISSING = [name for name in _NEEDED if find_spec(name) is None]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(bool(_MISSING), reason=f"pip install {' '.join(_MISSING)}: docs/hub.md"),
]
LAB, EXERCISE = "lab01_medians", "medians_first"
NOTEBOOK = f"course/labs/{LAB}/{LAB}.ipynb"


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Course:
    """An own course with an exchange."""
    monkeypatch.setenv("EDL_LABS_EXERCISES", "")
    monkeypatch.delenv("EDL_LABS_EXERCISES")
    root = tmp_path / "instructor"
    make_course(root, name="On a hub")
    exchange = tmp_path / "exchange"
    exchange.mkdir(mode=0o777)
    exchange.chmod(0o777)
    with (root / "nbgrader_config.py").open("a") as config:
        config.write(f"\nc.Exchange.root = {str(exchange)!r}\n")
    return Course(root)


def published(course: Course, repository: Path, subject: str) -> None:
    """The students' tree as a commit of the repository that they pull."""
    publish(course, repository)
    git = ("git", "-C", str(repository), "-c", "user.name=edl", "-c", "user.email=edl@example.org")
    if not (repository / ".git").is_dir():
        subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", subject], check=True)


def instructor(course: Course, *words: str) -> str:
    """What a command says in the course's folder."""
    programs = Path(sys.executable).parent
    env = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(words, cwd=course.root, env=env, capture_output=True, text=True, timeout=900)
    assert 0 == done.returncode, done.stdout + done.stderr
    return done.stdout + done.stderr


def solution(course: Course) -> str:
    """The instructor's text of the exercise's cell."""
    cells = json.loads((course.source / LAB / f"{LAB}.ipynb").read_text())["cells"]
    return next("".join(c["source"]) for c in cells if c["metadata"].get("nbgrader", {}).get("grade_id") == EXERCISE)


def test_a_student_works_on_a_hub_and_the_instructor_grades(course: Course, tmp_path: Path) -> None:
    from tests.course.hub import Student, running_hub

    wheel = build_wheel(course, tmp_path / "dist")
    image = tmp_path / "image"  # what a hub's image installs
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target", str(image), str(wheel)]
    subprocess.run(pip, check=True)
    published(course, tmp_path / "public", "labs")
    instructor(course, "nbgrader", "generate_assignment", LAB, "--force")
    instructor(course, "nbgrader", "release_assignment", LAB)
    with running_hub(tmp_path / "hub", {"PYTHONPATH": str(image)}) as hub:
        ada = Student(hub, "ada")
        ada.log_in()
        assert "finished" in ada.pull(tmp_path / "public", "course")
        assert "What to do in a lab" in ada.file("course/labs/START.ipynb")["cells"][0]["source"]

        notebook = ada.file(NOTEBOOK)
        cells = {cell["metadata"].get("nbgrader", {}).get("grade_id", ""): cell for cell in notebook["cells"]}
        with ada.kernel(NOTEBOOK) as kernel:
            for cell in notebook["cells"][1:3]:
                assert "Error" not in kernel.run(cell["source"])
            kernel.run(cells[EXERCISE]["source"])
            assert "not attempted" in kernel.run(cells[f"check_{EXERCISE}"]["source"])
            cells[EXERCISE]["source"] = solution(course)
            kernel.run(cells[EXERCISE]["source"])
            assert "passed, 1 / 1 point" in kernel.run(cells[f"check_{EXERCISE}"]["source"])
        ada.save(NOTEBOOK, notebook)

        source = course.solutions / LAB / f"{LAB}.py"
        source.write_text(source.read_text().replace("# # ", "# # Corrected: ", 1))
        assert build(course).ok
        published(course, tmp_path / "public", "a correction")
        assert "finished" in ada.pull(tmp_path / "public", "course")
        merged = ada.file(NOTEBOOK)["cells"]
        assert "Corrected" in merged[0]["source"]
        assert cells[EXERCISE]["source"] in [cell["source"] for cell in merged]

        submit = f"nbgrader submit {LAB} --course={course.root.name} --Exchange.root={tmp_path / 'exchange'}"
        with ada.kernel(NOTEBOOK) as kernel:
            said = kernel.run(f"!cd .. && {submit} 2>&1")
    assert "Submitted as" in said
    instructor(course, "nbgrader", "collect", LAB)
    (student,) = [path.name for path in (course.root / "course" / "submitted").iterdir()]
    graded = instructor(course, "edl-labs", "grade", LAB)
    shutil.rmtree(tmp_path / "hub")

    assert [student] == [line.split()[1] for line in graded.splitlines() if "graded" in line and student in line]
