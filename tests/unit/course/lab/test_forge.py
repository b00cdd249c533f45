"""Forged evidence: which fields it is about, what is said in them, and that answers are left alone."""

from __future__ import annotations

import json

import pytest

from edl_labs.cli.proof_tables import forged_summary
from edl_labs.course.course_folder import Course
from edl_labs.course.lab.forge import ExerciseForgery, Gain, LabForgery, forge
from edl_labs.course.lab.forged_claims import MOST, is_claim, replacements
from edl_labs.course.lab.forged_objects import changes
from tests.unit.course.lab import kit

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


def test_each_field_is_lied_about_however_few_lies_are_asked_for() -> None:
    values = [{"x": 1, "zero": 0, "one": 1, "three": 3}]  # of zero and one some lies are none

    assert {"zero", "one", "three"} == {lie.field for lie in replacements(values, values, ["x"], most=1)}


def test_only_the_cases_that_a_lie_changed_are_named() -> None:
    values = [{"x": 1, "count": 2}, {"x": 1, "count": 0}]

    at_one = next(lie for lie in replacements(values, values, ["x"]) if lie.how == "double at (0, 'count')")
    assert ({0}, values[1]) == (at_one.cases, at_one.values[1])


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


METER = """

class Meter:
    def __init__(self):
        self.count = 0

    def read(self, value):
        self.count += 1
        return value


"""
COUNTED = """
    def probe(self, student, given):
        meter = Meter()
        return {"twice": student.doubled_time(given["x"], meter), "count": meter.count}

    def compare(self, case, got, want):
        if got["count"] != 1:
            raise Wrong("the meter was not read once", why="it counts", next='hint("doubled_time")')
        if not close(got["twice"], 2 * case["x"]):
            raise Wrong("another value came back", why="two runs add up", next='hint("doubled_time")')
"""
UNREAD = """\
# %% mistake="unread"
# told: the meter was not read once
def doubled_time(duration_s, meter):
    return 2 * duration_s


# %% mistake="halved"
# told: another value came back
def doubled_time(duration_s, meter):
    return meter.read(duration_s) / 2
"""


@pytest.fixture
def counted(course: Course) -> Course:
    """The small course, whose judge believes a counter of an object that the student's function is given."""
    module = course.exercises / f"{kit.LAB}.py"
    head, tail = kit.EXERCISES.split("\n\n\n@exercise")
    parts = f"{head}{METER}@exercise{tail}".partition("    def probe")
    module.write_text(parts[0].replace('"all"', '("twice",)') + COUNTED.lstrip("\n"))
    kit.replace(kit.source(course), "def doubled_time(duration_s)", "def doubled_time(duration_s, meter)")
    kit.replace(kit.source(course), "half_of(duration_s)", "half_of(meter.read(duration_s))")
    kit.mistakes(course).write_text(UNREAD)
    return course


def forged(course: Course) -> ExerciseForgery:
    (found,) = forge(course, kit.LAB).exercises
    return found


def test_a_counter_that_is_believed_gains_as_a_claim_and_as_an_attribute(counted: Course) -> None:
    found = forged(counted)

    assert (("count",), ("Meter.count",), False) == (found.claims, found.attributes, found.ok)
    assert {"count", "Meter.count"} == {gain.field for gain in found.gains}
    assert {"unread: 0 points became 2 points"} == {
        f"{str(gain).split(': ')[1]}: {str(gain).split(': ')[-1]}" for gain in found.gains
    }


def test_a_counter_that_only_explains_gains_nothing(counted: Course) -> None:
    kit.replace(counted.exercises / f"{kit.LAB}.py", 'if got["count"] != 1:', 'if got["twice"] == case["x"]:')

    found = forged(counted)

    assert (True, ()) == (found.ok, found.gains)
    assert found.replacements
    assert found.changes


CALLS = [{"Meter.count": 1, "Meter.word": None}, {"Meter.count": 2, "Meter.word": None}]


def test_the_numbers_of_an_object_are_changed_in_each_way_after_all_attributes_once() -> None:
    tried = [(path, how) for path, how, _ in changes(CALLS, turn=0, most=MOST)]

    assert [("Meter.count", "0"), ("Meter.word", "0")] == tried[:2]
    assert [("Meter.count", how) for how in ("1", "half", "double", "told")] == tried[2:]


def test_wrong_answers_share_the_changes_of_objects_where_each_gets_few() -> None:
    few = [changes(CALLS, turn=turn, most=2) for turn in range(3)]

    assert changes(CALLS, turn=0, most=MOST) == [one for every in few for one in every]


def test_the_summary_counts_the_gains_of_trusting_exercises_by_themselves() -> None:
    gain = Gain("mistakes/a.py:1: a", "count", "0 everywhere", 0.0, 1.0)
    tried = {"answers": "all", "claims": ("count",), "replacements": 5, "attributes": ("Meter.count",), "changes": 2}
    parts = [
        ExerciseForgery(name, trusting=trusting, gains=(gain,), cpu_s=0.1, **tried)
        for name, trusting in (("a", True), ("b", False))
    ]

    assert (
        "2 exercises: 2 claims, 10 replacements; 2 attributes of objects, 4 changes; 1 gain, and 1 in trusting "
        "exercises; 3 s of CPU"
    ) == forged_summary([LabForgery("lab80_doubling", tuple(parts), 3.2)])
