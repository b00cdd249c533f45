"""Lies about evidence: which fields they are about, what they say, and that answers are left alone."""

from __future__ import annotations

import json

from edl_labs.course.lab.forged_claims import MOST, is_claim, replacements

RIGHT = [{"scale": 8.0, "steps": [{"moved": 2, "skipped": True}, {"moved": 4, "skipped": False}]}]
WRONG = [{"scale": 4.0, "steps": [{"moved": 6, "skipped": False}, {"moved": 4, "skipped": False}]}]


def test_where_all_is_an_answer_there_are_no_claims() -> None:
    assert [] == replacements(WRONG, RIGHT, "all")


def test_answers_and_what_holds_them_are_left_alone() -> None:
    lies = replacements(WRONG, RIGHT, ["scale", "steps.moved"])

    assert {"steps.skipped"} == {lie.field for lie in lies}
    for lie in lies:
        assert [4.0] == [value["scale"] for value in lie.values]
        assert [6, 4] == [step["moved"] for step in lie.values[0]["steps"]]


def test_a_name_that_begins_like_an_answer_is_a_claim() -> None:
    assert is_claim("scale_was", ["scale"])
    assert not is_claim("scale.now", ["scale"])


def test_a_claim_takes_the_solutions_value_everywhere_and_at_each_place() -> None:
    lies = [lie.values[0]["steps"] for lie in replacements(WRONG, RIGHT, ["scale", "steps.moved"])]

    assert [{"moved": 6, "skipped": True}, {"moved": 4, "skipped": False}] in lies
    assert [{"moved": 6, "skipped": True}, {"moved": 4, "skipped": True}] in lies
    assert [{"moved": 6, "skipped": False}, {"moved": 4, "skipped": True}] in lies


def test_items_of_a_claim_are_dropped_doubled_and_swapped() -> None:
    lies = [lie.values[0]["log"] for lie in replacements([{"x": 1, "log": ["a", "b"]}], [{"x": 2, "log": []}], ["x"])]

    assert all(one in lies for one in ([], ["b"], ["a"], ["a", "a", "b"], ["a", "b", "b"], ["b", "a"]))


def test_every_field_is_lied_about_within_the_limit() -> None:
    names = [f"field{index}" for index in range(150)]
    values = [{"x": 1, **dict.fromkeys(names, 3)}]
    lies = replacements(values, values, ["x"])

    assert MOST == len(lies)
    assert set(names) == {lie.field for lie in lies}


def test_evidence_that_stays_the_same_is_no_lie() -> None:
    values = [{"x": 1, "count": 0}]

    assert [[{"x": 1, "count": 1}]] == [lie.values for lie in replacements(values, values, ["x"])][:1]


def test_in_a_program_what_the_case_fixes_is_a_claim_and_what_is_free_is_not() -> None:
    program = [{"op": "tensor", "tensor": 0, "numel": 8, "dtype": "float32", "name": "x", "fill": "own"}]
    lies = replacements([{"programs": json.dumps([program])}], [{"programs": json.dumps([program])}], "all")

    assert {"programs.tensor.numel", "programs.tensor.tensor"} == {lie.field for lie in lies} - {
        "programs.tensor.dtype",
        "programs.tensor.fill",
    }
    assert [[{**program[0], "numel": 0}]] in [json.loads(lie.values[0]["programs"]) for lie in lies]


def test_a_field_of_an_operation_that_is_named_is_an_answer() -> None:
    scale = {"op": "scale", "stream": 0, "duration_s": 1.0, "reads": [[0, 0, 4]], "writes": [[0, 0, 4]], "factor": 0.5}
    values = [{"programs": json.dumps([[scale]])}]

    assert "programs.scale.factor" in {lie.field for lie in replacements(values, values, ["programs"])}
    named = {lie.field for lie in replacements(values, values, ["programs", "programs.scale.factor"])}
    assert {"programs.scale.duration_s", "programs.scale.reads", "programs.scale.writes"} == named
