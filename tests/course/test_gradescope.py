"""The zip for Gradescope: what it holds, what students read of it, and that its autograder grades as the class does."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from edl_labs.checks import Outcome
from edl_labs.course.course_folder import Course as Repository
from edl_labs.course.grade.result import Result
from edl_labs.course.grade.secret_cases import class_draws
from edl_labs.course.grade.submission import Unreadable
from edl_labs.course.groups import read_groups
from edl_labs.course.marks.gradescope import gradescope_zip
from edl_labs.course.marks.gradescope_run import results, unread, write_results
from edl_labs.errors import UsageError
from tests.course.course_fixture import LAB, POINTS, SOLUTIONS, Course, solve_cell

# What the specification names; anything else Gradescope would pass over in silence.
KEYS = {"score", "execution_time", "output", "output_format", "test_output_format", "test_name_format", "visibility"}
KEYS |= {"stdout_visibility", "extra_data", "tests", "leaderboard"}
TEST_KEYS = {"score", "max_score", "status", "name", "name_format", "number", "output", "output_format", "tags"}
TEST_KEYS |= {"visibility", "extra_data"}


@pytest.fixture
def folder(released: Course, monkeypatch: pytest.MonkeyPatch) -> Repository:
    monkeypatch.setenv("EDL_LABS_EXERCISES", str(released.exercises))
    return Repository(released.root)


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "edl_labs-1.0+judge-py3-none-any.whl"
    path.write_bytes(b"a wheel")
    return path


def outcome(name: str, state: str, points: float, **said: str) -> Outcome:
    return Outcome(name, LAB, state, points, float(POINTS[name]), **said)


def result(*outcomes: Outcome, **more: object) -> Result:
    return Result("key", LAB, "namespaces", outcomes, **more)  # type: ignore[arg-type]


def test_each_exercise_is_a_test_in_the_labs_order_and_prose_is_left_to_a_person(folder: Repository):
    wrong = outcome("area", "wrong", 0.0, what="the area is wrong", case_text="area(2, 3)", printed="secret")
    found = results(folder.assignment(LAB), result(outcome("halves", "partly", 1.0), wrong, notes=("it was mended",)))
    area, halves = found["tests"]

    assert ("area", "1", 0.0, 2.0, "failed") == tuple(
        area[k] for k in ("name", "number", "score", "max_score", "status")
    )
    assert ("halves", "2", 1.0, 2.0) == tuple(halves[k] for k in ("name", "number", "score", "max_score"))
    assert "the area is wrong" in area["output"]
    assert not [text for text in ("area(2, 3)", "secret") if text in json.dumps(found)]
    assert "it was mended\nA person gives the 2 points for written answers (why_square)." == found["output"]
    assert found.keys() <= KEYS
    assert {key for test in found["tests"] for key in test} <= TEST_KEYS


def test_who_sends_what_cannot_be_read_is_told_at_once(folder: Repository):
    found = unread(folder.assignment(LAB), Unreadable("the notebook is empty", why="0 bytes", next="save it first"))

    assert "the notebook is empty\n  why: 0 bytes\n  next: save it first" == found["output"]
    assert list(SOLUTIONS) == [test["name"] for test in found["tests"]]
    assert {0.0} == {test["score"] for test in found["tests"]}


def test_results_are_there_whole_or_not_at_all(tmp_path: Path):
    with pytest.raises(TypeError):
        write_results(tmp_path, {"tests": object()})
    assert not (tmp_path / "results" / "results.json").exists()
    write_results(tmp_path, {"tests": []})

    assert {"tests": []} == json.loads((tmp_path / "results" / "results.json").read_text())


def test_the_zip_has_its_scripts_at_the_root_and_the_classs_own_draws(folder: Repository, wheel: Path, tmp_path: Path):
    made = gradescope_zip(LAB, tmp_path / "out.zip", course=folder, wheel=wheel)
    with zipfile.ZipFile(made.archive) as archive:
        modes = {entry.filename: entry.external_attr >> 16 for entry in archive.infolist()}
        setup, settings = archive.read("setup.sh"), json.loads(archive.read("settings.json"))
    scripts = ("setup.sh", "run_autograder")

    assert [0o755] * 2 == [modes[name] for name in scripts]
    assert f"source/{wheel.name}[instructor,lab]".encode() in setup
    assert {f"course/build/source/{LAB}/{LAB}.ipynb", f"course/edl_labs/exercises/{LAB}.py"} <= modes.keys()
    assert class_draws(folder.grading(LAB)).seed == settings["seed"]
    assert (7.0, 2.0) == (made.points, made.by_hand)
    for name in scripts:
        with zipfile.ZipFile(made.archive) as archive:
            subprocess.run(["bash", "-n"], input=archive.read(name), check=True)


def test_what_course_toml_says_of_grading_goes_along_and_the_files_that_it_names_do_not(
    folder: Repository, wheel: Path, tmp_path: Path
):
    own = shutil.copytree(folder.root, tmp_path / "own")
    (own / "groups.csv").write_text("group,id\nred,ana\n")
    said = '[course]\nname = "Mine"\nroster = "no.csv"\ngroups = "groups.csv"\n'
    (own / "course.toml").write_text(f"{said}[limits]\ncell_s = 240\n[grading]\nall_cells = true\n")
    made = gradescope_zip(LAB, tmp_path / "out.zip", course=Repository(own), wheel=wheel)
    with zipfile.ZipFile(made.archive) as archive:
        archive.extractall(tmp_path / "there")
    there = Repository(tmp_path / "there" / "course")

    assert (240, True) == (there.limits.cell_s, there.all_cells)
    assert {} == read_groups(there.root, LAB).by_student
    assert "ana" in read_groups(own, LAB).by_student


def test_a_course_of_ones_own_is_told_which_wheel_it_needs(folder: Repository, tmp_path: Path):
    own = shutil.copytree(folder.root, tmp_path / "own")
    shutil.copytree(own / "exercises", own / "edl_labs" / "exercises")
    with pytest.raises(UsageError, match="the wheel for grading is missing") as caught:
        gradescope_zip(LAB, tmp_path / "out.zip", course=Repository(own))

    assert "--wheel FILE" in caught.value.next


def test_a_wheel_without_the_judge_is_refused(folder: Repository, tmp_path: Path):
    with pytest.raises(UsageError, match="this wheel cannot grade"):
        gradescope_zip(LAB, tmp_path / "out.zip", course=folder, wheel=Path("edl_labs-1.0-py3-none-any.whl"))


@pytest.mark.slow
@pytest.mark.parametrize("handed_in", ["one wrong", "cut off"])
def test_its_autograder_grades_a_submission(folder: Repository, wheel: Path, tmp_path: Path, handed_in: str):
    """The harness's own layout: the zip unpacked to source/, the script beside it, the upload in submission/."""
    made, root = gradescope_zip(LAB, tmp_path / "out.zip", course=folder, wheel=wheel), tmp_path / "autograder"
    with zipfile.ZipFile(made.archive) as archive:
        archive.extractall(root / "source")
    (root / "submission").mkdir()
    answers = Course(folder.root).answered({"halves": solve_cell("halves", body="return []")})
    text = json.dumps(answers)
    (root / "submission" / "my work.ipynb").write_text(text if handed_in == "one wrong" else text[:300])
    (root / "submission_metadata.json").write_text('{"users": [{"id": 7, "name": "Ada", "email": "ada@example.org"}]}')
    env = {key: value for key, value in os.environ.items() if key != "EDL_LABS_EXERCISES"}
    env |= {"AUTOGRADER_ROOT": str(root), "AUTOGRADER_PYTHON": sys.executable}
    subprocess.run(["bash", root / "source" / "run_autograder"], cwd=root, env=env, check=True, timeout=600)
    found = json.loads((root / "results" / "results.json").read_text())
    scores = {test["name"]: test["score"] for test in found["tests"]}

    if handed_in == "one wrong":
        assert {**{name: float(POINTS[name]) for name in SOLUTIONS}, "halves": 0.0} == scores
        assert "renamed to my work.ipynb" in found["output"]
    else:
        assert {0.0} == set(scores.values())
        assert "the notebook is not JSON" in found["output"]
