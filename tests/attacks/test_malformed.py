"""Malformed notebooks: each gets a clear line or marks, healthy ones beside them are graded, nothing hangs."""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path

import nbformat
import pytest

from edl_labs.course.course_folder import Course as Repository
from edl_labs.course.grade import class_kernels
from edl_labs.course.grade.classrun import grade
from edl_labs.course.grade.graded_notebook import graded_notebook
from edl_labs.course.grade.plan import make_plan
from edl_labs.course.grade.run_record import ProbedRun
from edl_labs.course.grade.submission import Submission, Unreadable, parse
from edl_labs.course.grade.submitted_folder import read_submission
from edl_labs.course.sandbox import Limits
from tests.attacks.attack_case import FULL
from tests.attacks.bench import Bench
from tests.attacks.malformed import draw
from tests.course.course_fixture import LAB, Course


def read(data: bytes) -> Submission | Unreadable:
    try:
        return parse(data)
    except Unreadable as problem:
        return problem


@pytest.mark.parametrize(
    ("seed", "draws"), [(1, 40), *(pytest.param(seed, 150, marks=pytest.mark.slow) for seed in range(1, 8))]
)
def test_malformed_notebooks_give_cells_or_one_clear_line(bench: Bench, seed: int, draws: int):
    rng = random.Random(seed)
    honest = bench.course.answered()
    for _ in range(draws):
        name, data = draw(rng, honest)
        found = read(data)

        if isinstance(found, Unreadable):
            assert found.what, name
            assert "\n" not in found.what, name
        else:
            plan = make_plan(bench.assignment, found)
            notebook = graded_notebook(bench.assignment, plan, ProbedRun())
            nbformat.validate(nbformat.from_dict(notebook))
            assert bench.assignment.by_grade_id.keys() == ids(notebook), name


def ids(notebook: dict) -> set[str]:
    metas = (cell["metadata"].get("nbgrader") for cell in notebook["cells"])
    found = [meta["grade_id"] for meta in metas if meta]
    assert len(found) == len(set(found))
    return set(found)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: path.symlink_to("/etc/passwd"), "link"),
        (lambda path: path.symlink_to(path), "link"),
        (lambda path: os.mkfifo(path), "not a file"),
        (lambda path: path.mkdir(), "cannot be read|not a file"),
        (lambda path: path.write_bytes(b""), "empty"),
        (lambda path: path.with_name("work.zip").write_bytes(b"PK"), "archive"),
        (lambda path: [path.with_name(n).write_bytes(b"{}") for n in ("a.ipynb", "b.ipynb")], "there is no"),
        (lambda path: None, "there is no"),
    ],
)
def test_files_that_are_no_notebook_get_a_clear_line(tmp_path: Path, make, says: str):
    folder = tmp_path / LAB
    folder.mkdir()
    make(folder / f"{LAB}.ipynb")
    with pytest.raises(Unreadable, match=says) as caught:
        read_submission(folder, LAB)

    assert caught.value.why or caught.value.next


def test_file_over_the_limit_is_not_read(tmp_path: Path):
    folder = tmp_path / LAB
    folder.mkdir()
    with (folder / f"{LAB}.ipynb").open("wb") as file:
        file.truncate(Limits().submission_bytes + 1)
    with pytest.raises(Unreadable, match="too large"):
        read_submission(folder, LAB)


@pytest.mark.slow
def test_notebook_of_100_mb_of_outputs_is_read(bench: Bench):
    honest = bench.course.answered()
    output = {"output_type": "stream", "name": "stdout", "text": "x" * 100_000_000}
    honest.cells[1]["outputs"] = [output]
    submission = parse(json.dumps(honest).encode())

    assert len(honest.cells) == len(submission.cells)
    assert sum(len(cell.source) for cell in submission.cells) < 10_000


def test_renamed_notebook_is_found_and_said(tmp_path: Path, bench: Bench):
    folder = tmp_path / LAB
    folder.mkdir()
    (folder / "lab90 (1) final.ipynb").write_text(json.dumps(bench.course.answered()))
    submission = read_submission(folder, LAB)

    assert any("renamed" in note for note in submission.notes)


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_class_of_a_thousand_malformed_notebooks_is_graded(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    shutil.copytree(bench.course.root, tmp_path / "course")
    course = Course(tmp_path / "course")
    monkeypatch.setenv("EDL_LABS_EXERCISES", str(course.exercises))
    monkeypatch.setattr(class_kernels, "ALWAYS", ("edl_labs", "numpy"))
    rng, honest = random.Random(99), course.answered()
    for number in range(1000):
        _, data = draw(rng, honest)
        course.submit(f"m{number:04}", data)
    for number in range(5):
        course.submit(f"healthy{number}", course.answered({"area": f"# {number}\narea = lambda w, h: w * h"}))
    report = grade(LAB, course=Repository(course.root), limits=Limits(cell_s=4.0, notebook_s=60.0))
    rows = [row for row in report.rows if row.student.startswith("m")]

    assert 1000 == len(rows)
    assert [FULL] * 5 == [dict(row.marks) for row in report.rows if row.student.startswith("healthy")]
    assert all(row.remarks and row.remarks[0] for row in rows if row.state == "unreadable")
    assert [] == [row for row in report.rows if row.state == "failed"]
