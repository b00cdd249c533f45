"""Results: JSON that stays as it was stored, and one value for what grading took."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from edl_labs.checks import Outcome
from edl_labs.course.grade.classrun import ClassReport, StudentRow
from edl_labs.course.grade.result import Result, ResultStore, result_key
from edl_labs.course.grade.run_record import Incident, Usage
from edl_labs.errors import UsageError

TOOK = {"own_s": 1.5, "wall_s": 2.5, "cpu_s": 3.0, "own_cpu_s": 1.0, "peak_bytes": 1024}
# As `edl-labs grade` stored it before results said their kind.
STORED = {
    "schema": 1,
    "key": "k",
    "assignment": "lab01",
    "level": "namespaces",
    "outcomes": [
        {
            "name": "area",
            "lab": "lab01",
            "state": "partly",
            "points": 1.0,
            "max_points": 2.0,
            "what": "too small",
            "why": "",
            "next": "",
            "case_index": 3,
            "case_text": "",
            "cases_right": 1,
            "cases_total": 2,
            "trusting": False,
            "printed": "",
        }
    ],
    "notes": ["a cell was missing"],
    "events": [{"kind": "timeout", "where": "area", "why": ""}],
    "flags": ["timeout"],
    "answers": [["prose", "00ff"]],
    "untouched": ["check_area"],
    **TOOK,
}
RESULT = Result(
    "k",
    "lab01",
    "namespaces",
    (Outcome("area", "lab01", "partly", 1.0, 2.0, what="too small", case_index=3, cases_right=1, cases_total=2),),
    ("a cell was missing",),
    (Incident("timeout", "area"),),
    ("timeout",),
    (("prose", "00ff"),),
    ("check_area",),
    Usage(**TOOK),
)


def test_a_result_that_was_stored_before_is_read():
    assert RESULT == Result.from_json(STORED)
    assert RESULT == Result.from_json(json.dumps(STORED))


def test_a_result_keeps_its_keys_and_comes_back():
    tree = json.loads(json.dumps(RESULT.to_json()))

    assert {**STORED, "outcomes": tree["outcomes"], "kind": "result", "draw": 0, "judge_cpu_s": 0.0} == tree
    assert STORED["outcomes"][0].items() <= tree["outcomes"][0].items()
    assert RESULT == Result.from_json(tree)


@pytest.mark.parametrize("tree", ["", "[]", "[1]", "{}", '{"schema": 2}', json.dumps({**STORED, "schema": 2})])
def test_anything_else_is_no_result(tree: str):
    with pytest.raises(UsageError, match="not a result"):
        Result.from_json(tree)


def test_names_of_results_stay_what_they_were():
    key = result_key("work", "lab", seed=7, level="namespaces", limits="usual")

    assert "8c26510e373e14b002b8747b90303de84bc64ffd" == key


def test_usage_of_two_runs_is_their_sum_and_the_higher_peak():
    both = Usage(1.0, 2.0, 3.0, 0.5, 100) + Usage(own_s=1.0, peak_bytes=70)

    assert Usage(2.0, 2.0, 3.0, 0.5, 100) == both


def test_a_row_of_the_class_has_the_usage_among_its_keys():
    row = StudentRow("ana", "graded", 3.0, 4.0, marks=(("area", 3.0),), usage=Usage(**TOOK))
    report = ClassReport("lab01", "namespaces", 7, 1, 2.0, (row,))
    told = report.to_json()

    assert TOOK.items() <= told["rows"][0].items()
    assert "usage" not in told["rows"][0]
    assert [["area", 3.0]] == told["rows"][0]["marks"]
    assert (0, 1) == (told["exit_code"], told["schema"])


def test_who_opens_a_store_leaves_what_others_are_writing(tmp_path: Path) -> None:
    """A leaderboard that is followed reads the results while a class is graded; only the grader cleans up."""
    store = ResultStore(tmp_path)
    part = tmp_path / ".k.json.0.part"
    part.write_bytes(b"half of a result")
    ResultStore(tmp_path)

    assert part.exists()
    store.remove_parts()
    assert not part.exists()
