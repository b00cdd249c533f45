"""The report on a class: whose notebook reaches for the exercises' own modules, and which hints stand in it."""

from __future__ import annotations

import json

import pytest

from edl_labs.checks.outcome_display import Hint
from edl_labs.cli import instructors
from edl_labs.course.assignment import Assignment, KnownCell
from edl_labs.course.grade.submission import Submission, SubmittedCell, parse
from edl_labs.course.marks.class_page import _facts, _odd, _summary
from edl_labs.course.marks.class_report import (
    ClassOverview,
    ExerciseOverview,
    _exercise,
    imports_exercises,
    likenesses,
    minutes_at_work,
    shown_hints,
)
from edl_labs.course.marks.student_marks import ExerciseMark, StudentMarks


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from edl_labs.exercises.lab02_roofline import layer_diagnosis", True),
        ("import edl_labs.exercises.lab01_gpu_basics.judge as j", True),
        ("from edl_labs import check, exercises", True),
        ("importlib.import_module('edl_labs.exercises')", True),
        ("import edl_labs\nedl_labs . exercises", True),
        ("from edl_labs import check\n# the exercises of this lab", False),
        ("from edl_labs.roofline import bound", False),
    ],
)
def test_a_notebook_that_names_the_exercises_modules_is_seen(source, expected) -> None:
    assert expected == imports_exercises(source)


def shown(name: str, number: int, *, total: int = 3, lines: bool = False) -> SubmittedCell:
    """A cell below which a hint stands, as Jupyter saves it."""
    text = repr(Hint(name, number, total, "Look at the first call."))
    data = {"text/plain": [text] if lines else text, "text/html": f"<b>Hint {number} of {total}</b>"}
    output = {"output_type": "display_data", "data": data, "metadata": {}}
    return SubmittedCell("code", "c", f'hint("{name}")', outputs=json.dumps([output]).encode())


def test_the_furthest_hint_that_stands_in_a_notebook_counts():
    cells = (shown("honest_timer", 1), shown("honest_timer", 3, lines=True), shown("honest_timer", 2), shown("ring", 1))

    assert {"honest_timer": 3, "ring": 1} == shown_hints(Submission(cells))


def test_no_output_and_other_text_show_no_hint():
    asked = SubmittedCell("code", "c", 'hint("honest_timer")')
    said = SubmittedCell("code", "d", "", outputs=b'[{"text": "a hint 2 of 3 for you: \xff"}]')

    assert {} == shown_hints(Submission((asked, said, shown("ring", 1, total=0))))


def ran(*moments: str) -> Submission:
    """A notebook as JupyterLab saves it with "Record timing" on, read as a hand-in is."""
    cells = [
        {
            "cell_type": "code",
            "id": f"c{n}",
            "source": "1",
            "outputs": [],
            "execution_count": None,
            "metadata": {"execution": {"iopub.execute_input": moment}} if moment else {},
        }
        for n, moment in enumerate(moments)
    ]
    return parse(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode())


def test_minutes_at_work_leave_breaks_out_whatever_the_order():
    times = [f"2026-11-23T18:{minute:02}:00.000000Z" for minute in (30, 0, 4, 10)]
    night = [f"2026-11-24T09:0{minute}:00Z" for minute in (0, 3)]

    assert 10 + 20 + 3 == minutes_at_work(ran(*times, *night, "", "no time"))
    assert minutes_at_work(ran(*times, "", "")) is None


def test_the_page_says_how_long_students_worked_where_that_is_known():
    one = ClassOverview("lab90", 2, (), 9.0, (), (2.0,), (), (), at_work=(50.0, 90.0))

    assert "median 70 min of work (in 2 notebooks with recorded times), median grading time 2.0 min" in _summary(one)
    assert "min of work" not in _summary(ClassOverview("lab90", 2, (), 9.0, (), (2.0,), (), ()))


def test_the_page_says_in_how_many_notebooks_hints_stand():
    assert "3 notebooks with hints (median 2)" in _facts(ExerciseOverview("ring", 2.0, (1.0,), hints=(1, 2, 3)))
    assert "hint" not in _facts(ExerciseOverview("ring", 2.0, (1.0,)))


LOOP = """
def finish(program, launch):
    host = device = 0.0
    for op, seconds in program:
        if op == "launch":
            host += launch
            device = max(device, host) + seconds
        else:
            host = max(host, device) + seconds
    return host, max(host, device)
"""


@pytest.mark.parametrize(("students", "alike"), [(2, 0), (7, 0), (8, 1)])
def test_in_a_small_class_who_answered_as_the_solution_does_is_not_alike(students: int, alike: int):
    cell = KnownCell("code", "c", "def finish(program, launch):\n    ...", LOOP, {}, "solve", "finish")
    renamed = LOOP.replace("host", "now").replace("op", "kind")
    others = {
        f"s{n}": {"finish": f"def finish(p, l):\n    return {'+-*/%@<'[n % 7] * 60}"} for n in range(students - 2)
    }
    own = {"ann": {"finish": LOOP}, "bob": {"finish": renamed}, **others}
    pairs, _ = likenesses(Assignment("lab", (cell,), (), {}, {}, True), own)

    assert alike == len([pair for pair in pairs if ("ann", "bob") == (pair.first, pair.second)])


def student(name: str, **mark: object) -> StudentMarks:
    one = ExerciseMark("why", max_points=2.0, **mark)  # type: ignore[arg-type]
    return StudentMarks(name, "", "", "", (one,), points=one.points, max_points=2.0)


def test_while_prose_waits_its_mean_is_of_what_a_person_marked():
    empty, waits = student("ann", points=0.0), student("bob", points=0.0, waiting=True)
    marked = student("cleo", points=1.5, by_hand=True)
    before = _exercise("why", [empty, waits], {}, is_prose=True)
    after = _exercise("why", [empty, waits, marked], {}, is_prose=True)
    done = _exercise("why", [empty, marked], {}, is_prose=True)

    assert "1 left empty; 1 not yet marked." == _facts(before)
    assert "75% of 2 points on average over the 1 answer marked so far; 1 left empty; 1 not yet marked." == _facts(
        after
    )
    assert ("38% of 2 points on average; 1 left empty.", 0.375) == (_facts(done), done.mean)


def test_zeros_of_the_judge_count_while_a_person_decides_about_others():
    decide = student("ann", points=0.0, waiting=True)

    assert (0.0,) == _exercise("why", [decide, student("bob", points=0.0)], {}, is_prose=False).shares


def test_whom_to_look_at_has_mended_notebooks_with_what_was_mended_and_trusting_marks_in_one_line():
    trusting = tuple((f"s{n:02}", ("trusting marks",)) for n in range(25))
    report = ClassOverview(
        *("lab90", 26, (), 9.0, (), ()),
        flags=(("ann", ("mended",)), ("bob", ("killed", "trusting marks")), *trusting),
        pairs=(),
        notes=(("ann", ("the check of area was missing and was restored",)),),
    )
    *people, last = _odd(report)

    assert [("ann", "the check of area was missing and was restored"), ("bob", "killed")] == people
    assert ("26 students", True, False) == (last[0], "bob, s00" in last[1], "s24" in last[1])


@pytest.mark.parametrize(
    ("points", "shares", "said"), [(2.0, (1.0, 0.5), "75%"), (2.0, (0.0,), "0%"), (2.0, (), "–"), (0.0, (), "practice")]
)
def test_the_table_says_no_mean_where_there_is_none(points: float, shares: tuple[float, ...], said: str) -> None:
    assert said == instructors._mean(ExerciseOverview("one", points, shares))
