"""Proving a lab: each of the five things can fail, and says so."""

from __future__ import annotations

import json

import pytest

from edl_labs.course.course_folder import Course
from edl_labs.course.lab.build import build
from edl_labs.course.lab.hostile import hostile_cells
from edl_labs.course.lab.proofs import ExerciseProof, LabProof
from edl_labs.course.lab.prove import prove
from edl_labs.course.lab.read import read_lab
from edl_labs.errors import EdlError
from tests.unit.course.lab import kit

DRAW = "[float(x) for x in rng.uniform(1, 2, 4)]"


def proved(course: Course, *, seeds: int = 2) -> LabProof:
    """The proof of the small lab, built first."""
    build(course)
    return prove(course, kit.LAB, seeds=seeds)


@pytest.fixture
def without_hostile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves the hostile submissions out, for tests of the other four things."""
    monkeypatch.setattr("edl_labs.course.lab.prove.hostile_cells", lambda lab: {})


SAME = f"solutions/{kit.LAB}/mistakes/doubled_time.py:1: same"


def doubled(proof: LabProof) -> ExerciseProof:
    """The proof of the exercise in code."""
    return proof.exercises[0]


def change_compare(course: Course, old: str, new: str) -> None:
    """Change the exercise's module."""
    kit.replace(course.exercises / f"{kit.LAB}.py", old, new)


def test_a_complete_lab_is_proved(course: Course) -> None:
    steps: list[tuple[int, int]] = []
    build(course)

    proof = prove(course, kit.LAB, seeds=4, progress=lambda done, total, text: steps.append((done, total)))

    one = doubled(proof)
    assert ([], True) == (proof.problems, proof.ok)
    assert "not attempted, 0 points" == one.stub.text
    assert "full marks with 4 seeds" == one.solution.text
    assert [
        ("the duration came back as it was", "the duration came back as it was"),
        ("the duration was squared", "the duration was squared"),
    ] == [(known.told, known.said) for known in one.mistakes]
    assert (True, "3 submissions get the same result with and without demonstrations") == (
        one.declared.ok,
        one.declared.text,
    )
    count = 3 + 2 + len(hostile_cells(read_lab(course, kit.LAB)))
    assert [*((done, count) for done in range(1, count + 1)), (1, 3), (2, 3), (3, 3)] == steps


@pytest.mark.slow
@pytest.mark.usefixtures("without_hostile")
def test_a_proof_is_plain_json(course: Course) -> None:
    proof = proved(course)

    data = json.loads(json.dumps(proof.to_json()))

    assert (1, kit.LAB, True, 2) == (data["schema"], data["lab"], data["ok"], data["seeds"])
    assert ["doubled_time", "why_twice"] == [one["name"] for one in data["exercises"]]


@pytest.mark.usefixtures("without_hostile")
def test_prose_is_exempt_but_for_hints(course: Course) -> None:
    prose = proved(course).exercises[1]

    assert (True, "prose, marked by hand", "2 hints") == (prose.ok, prose.solution.text, prose.hints.text)


@pytest.mark.usefixtures("without_hostile")
def test_a_probe_that_swallows_the_stub_is_found(course: Course) -> None:
    change_compare(
        course,
        '        return student.doubled_time(given["x"])',
        '        try:\n            return student.doubled_time(given["x"])\n'
        "        except NotImplementedError:\n            return 0.0",
    )

    assert doubled(proved(course)).stub.text == "wrong, 0 points: another value came back"


@pytest.mark.usefixtures("without_hostile")
def test_a_solution_that_fails_under_some_seed_is_found(course: Course) -> None:
    change_compare(
        course,
        DRAW,
        "[float(rng.integers(0, 6)) for _ in range(4)]",
    )

    proof = proved(course, seeds=20)

    assert not doubled(proof).solution.ok
    assert "points: the duration came back as it was" in doubled(proof).solution.text


@pytest.mark.usefixtures("without_hostile")
@pytest.mark.parametrize(
    ("demonstration", "said"),
    [
        (
            "half_of = abs",
            "solution: 2 points (passed) with the declared cells, 0 points (another value came back) with all",
        ),
        (
            "doubled_time.size = size\nassert size > 1",
            "does not run from top to bottom: cell at line 31: AssertionError",
        ),
    ],
)
def test_a_demonstration_that_changes_what_an_answer_gives_is_found(course: Course, demonstration: str, said: str):
    path = course.solutions / kit.LAB / f"{kit.LAB}.py"
    path.write_text(path.read_text().replace("print(size)", demonstration))

    assert said in doubled(proved(course)).declared.text


@pytest.mark.usefixtures("without_hostile")
def test_a_demonstration_that_only_a_fork_cannot_go_on_from_makes_no_difference(course: Course):
    """Autograd is one: its threads are not in a fork."""
    at_home = (
        "import os\nhome, plain_half_of = os.getpid(), half_of\n"
        "def half_of(value_s):\n    assert os.getpid() == home\n    return plain_half_of(value_s)"
    )
    path = course.solutions / kit.LAB / f"{kit.LAB}.py"
    path.write_text(path.read_text().replace("print(size)", at_home))

    declared = doubled(proved(course)).declared

    assert (True, "3 submissions get the same result with and without demonstrations") == (declared.ok, declared.text)


@pytest.mark.usefixtures("without_hostile")
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("float(x) for x", "float(x) + __import__('random').random() for x", "different cases for the same seed"),
        (
            'if close(got, case["x"])',
            "if {}['nothing']",
            r"compare\(\) of doubled_time raised KeyError on the solution",
        ),
    ],
)
def test_what_no_build_takes_is_said_by_the_proof_too(course: Course, old: str, new: str, said: str) -> None:
    """Else an exercise was called complete, or told of without type and line, until somebody built."""
    build(course)
    change_compare(course, old, new)

    with pytest.raises(EdlError, match=said):
        prove(course, kit.LAB, seeds=2)


def test_a_solution_that_gives_something_else_each_time_is_found(course: Course) -> None:
    random = "    import os\n    return int.from_bytes(os.urandom(4), 'big') + twice"
    kit.replace(kit.source(course), "    return twice", random)

    assert not doubled(proved(course)).solution.ok


@pytest.mark.usefixtures("without_hostile")
def test_a_wrong_answer_that_loses_nothing_is_found(course: Course) -> None:
    kit.replace(kit.mistakes(course), "return duration_s", "return duration_s + duration_s")

    assert [f"doubled_time: {SAME}: seed 1: it gets full marks"] == proved(course).problems


@pytest.mark.usefixtures("without_hostile")
def test_a_wrong_answer_that_is_told_something_else_is_found(course: Course) -> None:
    kit.replace(kit.mistakes(course), "# told: the", "# told: No, the")

    told = "seed 1: the message is 'the duration came back as it was'; "
    told += "it does not contain 'No, the duration came back as it was'"
    assert [f"doubled_time: {SAME}: {told}"] == proved(course).problems


@pytest.mark.usefixtures("without_hostile")
def test_a_wrong_answer_that_does_not_run_is_found(course: Course) -> None:
    kit.replace(kit.mistakes(course), "return duration_s\n", "return duration_s\n\n\nundefined_name\n")

    assert "it does not run: " in proved(course).problems[0]


@pytest.mark.usefixtures("without_hostile")
def test_a_wrong_answer_that_is_a_stub_is_found(course: Course) -> None:
    kit.replace(kit.mistakes(course), "return duration_s", "raise NotImplementedError")

    assert proved(course).problems[0].endswith("seed 1: it counts as not attempted")


@pytest.mark.usefixtures("without_hostile")
def test_a_mistake_that_costs_another_exercise_too_is_found(course: Course) -> None:
    kit.add_second(course, uses="")

    problems = proved(course).problems

    assert 2 == len(problems)
    assert all("quadrupled_time also loses points, with seed 1" in problem for problem in problems)


@pytest.mark.usefixtures("without_hostile")
def test_an_exercise_whose_solution_fails_is_said_once_and_not_for_each_wrong_answer(course: Course) -> None:
    kit.add_second(course, uses=', uses=("doubled_time",)')
    random = "    import os\n    return os.urandom(1)[0] + doubled_time(doubled_time(duration_s))"
    kit.replace(kit.source(course), "    return doubled_time(doubled_time(duration_s))", random)

    problems = proved(course).problems

    assert ["quadrupled_time: solution"] == [": ".join(problem.split(": ")[:2]) for problem in problems][:1]
    assert not [problem for problem in problems if problem.startswith("doubled_time")]


@pytest.mark.usefixtures("without_hostile")
def test_a_mistake_costs_once_where_the_other_exercise_says_what_it_uses(course: Course) -> None:
    kit.add_second(course, uses=', uses=("doubled_time",)')

    assert [] == proved(course).problems


def test_a_compare_that_accepts_anything_is_found(course: Course) -> None:
    change_compare(course, "if not close(got, want):", "if got is None:")

    found = doubled(proved(course)).hostile

    assert not found.ok
    assert "a submission that returns" in found.text


@pytest.mark.slow
def test_a_compare_that_trusts_equality_is_no_way_in_because_objects_do_not_travel(course: Course) -> None:
    change_compare(course, DRAW, "[float(x) for x in rng.integers(10, 99, 4)]")  # so short that goldens keep it all
    change_compare(course, "if not close(got, want):", "if got != want:")

    assert doubled(proved(course)).hostile.ok


def test_cases_that_never_differ_are_found_because_one_answer_serves_for_ever(course: Course) -> None:
    change_compare(course, DRAW, "[1.5] * 4")

    found = doubled(proved(course)).hostile

    assert "a submission that always returns its first answer scores 2 points with seed 1" == found.text


@pytest.mark.slow
def test_a_case_that_a_constant_answers_is_found_where_parts_are_paid(course: Course) -> None:
    change_compare(course, DRAW, "[0.0, 1.25, 1.5, 3.0]")
    change_compare(
        course,
        '        if close(got, case["x"]):',
        '        if case["x"] == 0.0 or close(got, want):\n            return\n        if close(got, case["x"]):',
    )
    change_compare(
        course,
        "    def compare",
        "    def combine(self, fractions):\n        return sum(fractions) / 4\n\n    def compare",
    )

    assert "scores 0.5 points" in doubled(proved(course)).hostile.text


@pytest.mark.usefixtures("without_hostile")
def test_a_submission_that_ends_the_process_scores_nothing_and_the_rest_is_still_proved(course: Course) -> None:
    path = kit.mistakes(course)
    kit.replace(path, "return duration_s", "import os\n    os._exit(0)")

    problems = proved(course).problems

    assert 1 == len(problems)
    assert "gave no answer" in problems[0]


@pytest.mark.usefixtures("without_hostile")
def test_a_solution_that_does_not_run_raises_with_the_cell(course: Course) -> None:
    build(course)
    kit.replace(kit.source(course), "def half_of", "undefined_name\ndef half_of")

    with pytest.raises(EdlError, match="the solution does not run") as caught:
        prove(course, kit.LAB, seeds=1)
    assert "given" in caught.value.why or "line 16" in caught.value.why


@pytest.mark.slow
@pytest.mark.usefixtures("without_hostile")
def test_an_exercise_that_trains_is_proved_with_few_seeds(course: Course) -> None:
    change_compare(course, '@exercise("doubled_time")', '@exercise("doubled_time", trains=True)')

    assert "full marks with 2 seeds" == doubled(proved(course, seeds=20)).solution.text
