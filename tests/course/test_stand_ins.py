"""What builds on a wrong exercise of a lab is graded with the judge's own in its place, which no kernel ever holds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from edl_labs.course.assignment import Assignment
from edl_labs.course.course_folder import Course as Repository
from edl_labs.course.grade.grader import Grader
from edl_labs.course.grade.plan import make_plan
from edl_labs.course.grade.reference_process import StandIns, stand_ins
from edl_labs.course.grade.submission import parse
from tests.course.course_fixture import Course, cell_of, make_lab_course, solved

PAIRS = {
    "lab01_gpu_basics": {"wave_quantization": "tile_quantization"},
    "lab02_roofline": {"diagnose": "intensity", "scaling_plan": "network_roofline"},
    "lab03_mixed_precision": {
        "train_it": "dynamic_scale",
        "where_it_breaks": "encode_decode",
        "static_scale": "where_it_breaks",
    },
    "lab05_profiling": {"blame": "name_the_pattern"},
}


@contextmanager
def grader_of(root: Path, lab: str) -> Iterator[tuple[Course, Grader]]:
    course = make_lab_course(root / "course", lab)
    folder = Repository(course.root)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("EDL_LABS_EXERCISES", raising=False)
        with Grader(folder, folder.assignment(lab), seed=11) as grader:
            yield course, grader


def states_of(course: Course, grader: Grader, right: set[str]) -> dict[str, str]:
    """The states of a submission with the solution of the exercises `right` and stubs of all others."""
    notebook, whole = course.released(), solved(course)
    for name in right:
        cell_of(notebook, name)["source"] = cell_of(whole, name)["source"]
    plan = make_plan(grader.assignment, parse(json.dumps(notebook).encode()))
    run = grader.probed(plan, "ada")
    return {name: outcome.state for name, outcome in run.outcomes.items()}


@pytest.mark.slow  # tests/attacks has a pair of its own that goes the same way
@pytest.mark.parametrize("lab", PAIRS)
def test_what_builds_on_a_stub_has_its_points(tmp_path: Path, lab: str):
    with grader_of(tmp_path, lab) as (course, grader):
        right = PAIRS[lab].keys() - set(PAIRS[lab].values())
        states = states_of(course, grader, right)

        assert dict.fromkeys(right, "passed") == {name: states[name] for name in right}
        assert {"not attempted"} == {states[name] for name in states.keys() - right}


def test_every_pair_of_the_labs_is_here(tmp_path: Path):
    found = {}
    for lab in PAIRS:
        folder = Repository(make_lab_course(tmp_path / lab, lab).root)
        exercises = folder.assignment(lab).exercises
        found[lab] = {exercise.name: exercise.uses[0] for exercise in exercises if exercise.uses}

    assert PAIRS == found


def test_a_class_travels_as_nothing_but_what_its_exercise_makes_of_a_library(tmp_path: Path):
    assignment: Assignment = Repository(make_lab_course(tmp_path, "lab03_mixed_precision").root).assignment(
        "lab03_mixed_precision"
    )

    assert StandIns((), ("dynamic_scale",)) == stand_ins(assignment, {"dynamic_scale"})
    assert StandIns(("decode", "encode", "where_it_breaks"), ()) == stand_ins(
        assignment, {"encode_decode", "where_it_breaks"}
    )
