"""The grader gives the marks that were recorded: a sample every day, each lab whole in the long run."""

from __future__ import annotations

from pathlib import Path

import pytest

from edl_labs.checks.lab_exercises import lab_names
from tests.marks.grading import Marks, graded
from tests.marks.oracle import as_recorded, differences, draws_of, path_of, read_marks, write_marks
from tests.marks.submissions import full_marks, lab_of, make_oracle_course, submissions

SAMPLE = "lab08b_layouts"  # the cheapest lab
SAMPLED = ("solution", "named", "constant", "wrong 03")


@pytest.fixture(autouse=True)
def _own_exercises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EDL_LABS_EXERCISES", raising=False)


def marks_now(name: str, recorded: Marks, folder: Path, *, jobs: int) -> Marks:
    """What the grader gives for the submissions and draws that are recorded."""
    lab = lab_of(name)
    known = {one.name: one for one in submissions(lab)}
    asked = [(known[one], draws_of(rows)) for one, rows in recorded.items()]
    return as_recorded(lab, graded(make_oracle_course(folder, name), asked, jobs=jobs))


def test_a_sample_of_marks_is_as_recorded(tmp_path: Path) -> None:
    recorded = read_marks(SAMPLE)
    sample = {name: {what: points[:1] for what, points in recorded[name].items()} for name in SAMPLED}

    found = marks_now(SAMPLE, sample, tmp_path, jobs=1)

    assert [] == differences(SAMPLE, sample, found, full=full_marks(lab_of(SAMPLE)))


@pytest.mark.slow
@pytest.mark.timeout(3600)  # some 150 submissions, on a machine that may do other things too
@pytest.mark.parametrize("name", lab_names())
def test_every_mark_is_as_recorded(name: str, tmp_path: Path) -> None:
    recorded = read_marks(name)

    found = marks_now(name, recorded, tmp_path, jobs=2)

    assert [] == differences(name, recorded, found, full=full_marks(lab_of(name)))


@pytest.mark.parametrize("name", lab_names())
def test_every_submission_is_recorded_and_the_solution_has_full_marks(name: str) -> None:
    lab, recorded = lab_of(name), read_marks(name)
    carried = [one for rows in recorded.values() for one in rows if "." in one]

    assert [one.name for one in submissions(lab)] == list(recorded)
    assert {what: set(points) for what, points in recorded["solution"].items()} == {
        what: {most} for what, most in full_marks(lab).items()
    }
    assert {0.0} == {point for points in recorded["stub"].values() for point in points}
    assert sorted(one.label for one in lab.mistakes) == sorted(carried)


def test_a_mark_that_differs_is_named() -> None:
    recorded: Marks = {"wrong 00": {"ring.all_at_once": [0.0, 0.0]}}
    found: Marks = {"wrong 00": {"ring.all_at_once": [0.0, 2.5], "buckets": [1.0, 4.0]}}

    assert [
        "lab07, wrong 00, ring.all_at_once, draw 1: expected 0, got 2.5",
        "lab07, wrong 00, buckets, draw 0: expected 4, got 1",
    ] == differences("lab07", recorded, found, full={"ring": 5.0, "buckets": 4.0})


def test_marks_are_read_as_they_were_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marks: Marks = {"solution": {"ring": [5.0, 5.0]}, "wrong 00": {"ring.all_at_once": [0.0, 1.666667]}}
    monkeypatch.setattr("tests.marks.oracle.DATA", tmp_path)
    write_marks("lab07", marks, ["solution", "wrong 00"])

    assert path_of("lab07").parent == tmp_path
    assert marks == read_marks("lab07")
