"""Limits of grading: each can be set in course.toml, none to nonsense, and what is set is what is used."""

from __future__ import annotations

import json
import re
from dataclasses import fields, replace
from pathlib import Path

import pytest

from edl_labs.course.assignment import Assignment
from edl_labs.course.course_file import set_limits
from edl_labs.course.course_folder import Course
from edl_labs.course.grade.graded_notebook import graded_notebook
from edl_labs.course.grade.plan import MarkingPlan, PlannedCell
from edl_labs.course.grade.run_record import ProbedRun
from edl_labs.course.grade.submission import Unreadable
from edl_labs.course.grade.submitted_folder import read_submission
from edl_labs.course.policy import read_policy
from edl_labs.course.sandbox.limits import DEFAULTS, Limits
from edl_labs.errors import UsageError

USUAL_KEY = (
    "({'memory_bytes': 3221225472, 'processes': 256, 'open_files': 1024, 'file_bytes': 268435456, "
    "'home_bytes': 268435456, 'tmp_bytes': 268435456, 'shm_bytes': 268435456, 'inodes': 20000, 'cpu_s': 1800, "
    "'threads': 1, 'message_bytes': 16777216, 'cell_messages': 50000, 'cell_bytes': 67108864, 'kept_bytes': 2097152, "
    "'notebook_bytes': 536870912, 'start_s': 30.0, 'grace_s': 2.0}, "
    "{'cell_s': 120.0, 'notebook_s': 900.0, 'deaths': 12})"
)
DOCS = Path(__file__).parents[4] / "docs" / "grading.md"


def course(folder: Path, text: str) -> Course:
    (folder / "course.toml").write_text(text, encoding="utf-8")
    return Course(folder)


def test_the_usual_limits_name_results_as_they_always_did(tmp_path: Path):
    assert USUAL_KEY == DEFAULTS.key()
    assert USUAL_KEY == Course(tmp_path).limits.key()
    assert USUAL_KEY == set_limits({"cell_s": 120}).key()


@pytest.mark.parametrize("limit", fields(Limits), ids=lambda limit: limit.name)
def test_every_limit_can_be_set_and_changes_a_results_name(tmp_path: Path, limit):
    value = 900 if limit.name == "cpu_s" else limit.metadata["least"] + 1
    found = course(tmp_path, f"[limits]\n{limit.name} = {value}\n").limits

    assert replace(DEFAULTS, **{limit.name: value}) == found
    assert (found.key() != DEFAULTS.key()) == (limit.name != "draws")  # a result's name holds its own draw instead
    assert type(limit.default) is type(getattr(found, limit.name))


@pytest.mark.parametrize("limit", fields(Limits), ids=lambda limit: limit.name)
def test_every_limit_is_in_the_documentation(limit):
    assert re.search(rf"`{limit.name}`", DOCS.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("cell_s = -1", "cell_s is -1"),
        ("cell_s = nan", "cell_s is nan"),
        ("cell_s = inf", "cell_s is inf"),
        ('cell_s = "2 min"', "cell_s is '2 min'"),
        ("deaths = true", "deaths is True"),
        ("deaths = 1.5", "deaths is 1.5"),
        ("memory_bytes = 3", "memory_bytes is 3"),
        ("memory_bytes = 9_000_000_000_000", "memory_bytes is 9000000000000"),
        ("notebook_s = 3600", "cpu_s is 1800"),
        ("memory = 1", "[limits] has no entry 'memory'"),
    ],
)
def test_nonsense_is_refused_with_what_why_and_what_next(tmp_path: Path, text: str, what: str):
    with pytest.raises(UsageError, match=re.escape(f"course.toml: {what}")) as refused:
        _ = course(tmp_path, f"[limits]\n{text}\n").limits

    assert refused.value.next


def test_limits_that_are_no_table_are_refused(tmp_path: Path):
    with pytest.raises(UsageError, match="limits is not a table"):
        _ = course(tmp_path, "limits = 3").limits


def test_the_rest_of_the_course_reads_a_file_with_limits(tmp_path: Path):
    (tmp_path / "course.toml").write_text("[limits]\ncell_s = 60\n")

    assert 0.0 == read_policy(tmp_path).late.per_day


def test_a_set_limit_refuses_what_the_usual_one_lets_pass(tmp_path: Path):
    cells = [{"cell_type": "code", "source": f"x = {number}", "metadata": {}} for number in range(11)]
    folder = tmp_path / "lab"
    folder.mkdir()
    (folder / "lab.ipynb").write_text(json.dumps({"cells": cells, "nbformat": 4}))

    assert 11 == len(read_submission(folder, "lab").cells)
    with pytest.raises(Unreadable, match="too many cells"):
        read_submission(folder, "lab", limits=course(tmp_path, "[limits]\nsubmission_cells = 10").limits)


def test_a_set_limit_cuts_what_is_shown(tmp_path: Path):
    assignment = Assignment("lab", (), (), {}, {}, False)
    plan = MarkingPlan((PlannedCell("code", "x", runs=True),), ())
    run = ProbedRun(outputs={0: [{"output_type": "stream", "name": "stdout", "text": "line\n" * 20}]})
    limits = course(tmp_path, "[limits]\nshown_lines = 10").limits
    text = graded_notebook(assignment, plan, run, limits=limits)["cells"][0]["outputs"][0]["text"]

    assert "line\n" * 9 + "... Output truncated ..." == text


def test_a_course_may_ask_for_every_cell(tmp_path: Path):
    assert not Course(tmp_path).all_cells
    assert course(tmp_path, "[grading]\nall_cells = true\n").all_cells
    read_policy(tmp_path)


@pytest.mark.parametrize("text", ["[grading]\nall_cells = 1\n", "[grading]\nall_cels = true\n", "grading = true\n"])
def test_what_grading_cannot_mean_is_refused(tmp_path: Path, text: str):
    with pytest.raises(UsageError, match=r"course\.toml"):
        _ = course(tmp_path, text).all_cells
