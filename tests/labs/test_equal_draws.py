"""Draws are equally hard: an answer that is wrong with one draw of the cases is wrong with every other."""

from __future__ import annotations

import pytest

from edl_labs.checks import judge
from edl_labs.checks.evidence import collect
from edl_labs.checks.lab_exercises import lab_names, load_lab
from edl_labs.checks.probe_process import ProbeProcess
from edl_labs.checks.spec import given_halves
from edl_labs.course.course_folder import Course
from edl_labs.course.lab.read import read_lab
from tests.course.course_fixture import REPOSITORY

SEEDS = range(500, 508)  # as many as a class has draws
LIMIT_S = 1200.0  # for all cases of one draw, on a machine that others keep busy


def plan_with(factor: float):
    """The read plan whose threshold is `factor` times the right one."""

    def read_plan(wanted, *, seek_s, byte_per_s):
        plan = []
        for shard, start, stop in sorted(wanted):
            if plan and plan[-1][0] == shard and start - plan[-1][2] <= factor * seek_s * byte_per_s:
                plan[-1] = (shard, plan[-1][1], stop)
            else:
                plan.append((shard, start, stop))
        return plan

    return {"read_plan": read_plan}


@pytest.mark.slow
def test_a_wrong_threshold_of_a_read_plan_passes_with_no_draw():
    exercise = next(one for one in load_lab("lab04_data_pipelines") if one.name == "read_plan")
    passed = []
    for seed in SEEDS:
        cases = exercise.draw_cases(seed)
        wants = [record["value"] for record in collect(exercise, plan_with(1.0), given_halves(cases))]
        passed.append(
            judge(exercise, cases, collect(exercise, plan_with(1.25), given_halves(cases)), wants, points=1.0).state
        )

    assert "passed" not in passed


@pytest.mark.slow  # every wrong answer with every draw: minutes a lab
@pytest.mark.timeout(2400)  # lab04 waits out its hanging prefetchers, once for each case and draw
@pytest.mark.parametrize("lab", lab_names())
def test_no_wrong_answer_passes_with_some_draw(lab: str):
    text, exercises = read_lab(Course(REPOSITORY), lab), {one.name: one for one in load_lab(lab) if not one.trains}
    cells = text.namespace_cells()
    drawn = {(name, s): one.draw_cases(s) for name, one in exercises.items() for s in SEEDS}
    with ProbeProcess(cells) as right:
        wants = {
            key: [r["value"] for r in right.collect(key[0], cases, timeout_s=LIMIT_S)] for key, cases in drawn.items()
        }
    passed = []
    with ProbeProcess(cells) as solved:
        for wrong in (one for one in text.mistakes if one.exercise in exercises):
            exercise = exercises[wrong.exercise]
            references = [(used, text.solution_cell(used)) for used in exercise.uses]
            with solved.fork([(wrong.label, wrong.code)]) as worker:
                for seed in SEEDS:
                    key = (wrong.exercise, seed)
                    found = worker.collect(wrong.exercise, drawn[key], references=references, timeout_s=LIMIT_S)
                    if judge(exercise, drawn[key], found, wants[key], points=1.0).state == "passed":
                        passed.append((wrong.label, seed))

    assert [] == passed
