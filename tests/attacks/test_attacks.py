"""Every attack and accident: no point gained, no honest point lost, and the grader goes on."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import nbformat
import pytest

from edl_labs.course.grade.graded_notebook import graded_notebook
from edl_labs.course.grade.plan import make_plan
from edl_labs.course.grade.result import make_result
from edl_labs.course.grade.submission import parse
from tests.attacks.attack_case import FULL, AttackCase, all_cases
from tests.attacks.bench import Bench

CASES = all_cases()


def parameters() -> list:
    return [pytest.param(case, id=case.name, marks=[pytest.mark.slow] if case.slow else []) for case in CASES]


def outside(bench: Bench) -> str:
    """A digest of all that no submission may touch."""
    state = hashlib.sha256()
    for path in sorted(bench.course.root.rglob("*")):
        if path.is_file() and "references" not in path.parts:
            state.update(str(path).encode() + path.read_bytes())
    return state.hexdigest()


@pytest.mark.parametrize("case", parameters())
def test_attack_comes_to_its_marks(bench: Bench, case: AttackCase):
    before = outside(bench)
    plan = make_plan(bench.assignment, parse(json.dumps(case.notebook(bench.course)).encode()))
    run = bench.examiner.grade(plan)
    result = make_result("key", "lab", "namespaces", plan=plan, run=run, trusted=True)
    notebook = graded_notebook(bench.assignment, plan, run)

    assert case.expect == result.points, [(o.name, o.what, o.why) for o in result.outcomes]
    assert all(set(flag.split(" or ")) & set(result.flags) for flag in case.flags), result
    told = json.dumps([[vars(o) for o in result.outcomes], [cell.get("outputs") for cell in notebook["cells"]]])
    assert [] == [text for text in case.never if text in told]
    assert before == outside(bench)
    assert "<script" not in json.dumps([cell.get("outputs", []) for cell in notebook["cells"]])
    nbformat.validate(nbformat.from_dict(notebook))


def test_an_honest_submission_has_full_marks_and_no_flag_but_trust(bench: Bench):
    plan = make_plan(bench.assignment, parse(json.dumps(bench.course.answered()).encode()))
    result = make_result("k", "lab", "", plan=plan, run=bench.examiner.grade(plan), trusted=True)

    assert FULL == result.points
    assert ("trusting marks",) == result.flags


RESTS_ON_IT = "def box_area(side):\n    return 6 * area(side, side)"
BREAKS = "import sys\nsys.modules['edl_labs.checks'] = None\ndef area(width, height):\n    return 0.0"


@pytest.mark.parametrize(
    ("area", "box_area", "kernels", "points"),
    [
        ("def area(width, height):\n    return 0.0", RESTS_ON_IT, 2, 2.0),
        ("def area(width, height):\n    raise NotImplementedError", "def box_area(side):\n    return 0.0", 2, 0.0),
        (BREAKS, RESTS_ON_IT, 3, 2.0),
    ],
    ids=["earns with a stand-in", "rests on a stub", "earns without the cell that breaks"],
)
def test_what_builds_on_a_wrong_exercise_is_tried_no_oftener_than_it_needs(
    bench: Bench, area: str, box_area: str, kernels: int, points: float
):
    notebook = bench.course.answered({"area": area, "box_area": box_area})
    started = []

    def new_kernel():
        started.append(bench.examiner.runner.new_kernel())
        return started[-1]

    examiner = replace(bench.examiner, runner=replace(bench.examiner.runner, new_kernel=new_kernel))
    run = examiner.grade(make_plan(bench.assignment, parse(json.dumps(notebook).encode())))

    assert (kernels, points) == (len(started), run.outcomes["box_area"].points)


def test_there_are_enough_attacks_and_accidents():
    kinds = [case.kind for case in CASES]

    assert kinds.count("attack") >= 60
    assert kinds.count("accident") >= 30
