"""One released course and one pool of sandboxes for all attacks."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "course"))

from course_fixture import LAB, Course, make_course

from edl_labs.grading.assignment import Assignment
from edl_labs.grading.course_folder import CourseFolder
from edl_labs.grading.judge_process import Judge
from edl_labs.grading.kernel.pool import KernelPool
from edl_labs.grading.reference import reference
from edl_labs.grading.sandbox import Limits
from edl_labs.grading.session import Budget, Session

LIMITS = Limits(memory_bytes=600 << 20, processes=64, inodes=5_000, start_s=60.0, grace_s=0.7)
BUDGET = Budget(cell_s=4.0, notebook_s=90.0)
SEED = 20_260_101


@dataclass
class Bench:
    """What an attack is tried on."""

    course: Course
    assignment: Assignment
    session: Session


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """The fixture course with a gradebook, and a session that grades in sandboxes."""
    course = make_course(tmp_path_factory.mktemp("attacked") / "course")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EDL_LABS_EXERCISES", str(course.exercises))
        folder = CourseFolder(course.root)
        assignment = folder.assignment(LAB)
        course.submit("victim", course.answered())
        preload = ("edl_labs", "numpy", "edl_labs.checks.evidence", "matplotlib.pyplot")
        with KernelPool(limits=LIMITS, preload=preload) as pool, Judge() as judge:

            def new_kernel():
                return pool.kernel(files=assignment.files)

            known = reference(assignment, seed=SEED, folder=folder.grading(LAB) / "references", new_kernel=new_kernel)
            yield Bench(
                course, assignment, Session(assignment, known, new_kernel=new_kernel, judge=judge, budget=BUDGET)
            )
