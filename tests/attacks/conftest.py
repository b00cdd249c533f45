"""One released course and one pool of sandboxes for all attacks."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from edl_labs.course.course_folder import Course as Repository
from edl_labs.course.grade.judge_process import Judge
from edl_labs.course.grade.mark import Examiner
from edl_labs.course.grade.probe_run import PlanRunner
from edl_labs.course.grade.reference import reference
from edl_labs.course.grade.reference_process import ReferenceProcess
from edl_labs.course.sandbox import Limits
from edl_labs.course.sandbox.kernel.pool import KernelPool
from tests.attacks.bench import Bench
from tests.course.course_fixture import LAB, Course, make_course
from tests.course.once import once

LIMITS = Limits(
    memory_bytes=600 << 20, processes=64, inodes=5_000, start_s=60.0, grace_s=0.7, cell_s=4.0, notebook_s=90.0
)
PRELOAD = ("edl_labs", "numpy", "edl_labs.checks.evidence", "matplotlib.pyplot")
SEED = 20_260_101


@pytest.fixture(scope="package")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """The fixture course with a victim in it, and sandboxes."""
    root = tmp_path_factory.mktemp("attacked") / "course"
    shutil.copytree(once(tmp_path_factory, "released", make_course), root)
    course = Course(root)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EDL_LABS_EXERCISES", str(course.exercises))
        folder = Repository(course.root)
        assignment = folder.assignment(LAB)
        course.submit("victim", course.answered())
        with KernelPool(limits=LIMITS, preload=PRELOAD) as pool, Judge(LIMITS) as judge:

            def new_kernel():
                return pool.kernel(files=assignment.files)

            runner = PlanRunner(assignment, new_kernel, LIMITS)
            known = reference(runner, seed=SEED, folder=folder.grading(LAB) / "references")
            solution = ReferenceProcess(assignment, LIMITS)
            yield Bench(course, assignment, Examiner(runner, known, judge, solution))
            solution.close()
