"""Submissions through a class run of the real grader: plan, sandbox, judge, gradebook."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from itertools import count

from edl_labs.course.course_folder import Course as Repository
from edl_labs.course.grade.classrun import ProgressHook, grade
from edl_labs.course.grade.secret_cases import Draws
from edl_labs.course.grade.submission import parse
from tests.course.course_fixture import Course
from tests.marks.submissions import DRAWS, Submission

SEED = 20_270_101
CELL_S = 15.0
Marks = dict[str, dict[str, list[float]]]
"""Points by submission, by exercise, by draw."""


def graded(
    course: Course, asked: Iterable[tuple[Submission, int]], *, jobs: int, progress: ProgressHook | None = None
) -> Marks:
    """The marks of submissions, each for its first so many draws, graded as one class.

    Which draw counts for a student depends on the folder's name, so names are chosen for it. A cell that measures may
    never end with an attack's answers; no honest one takes a tenth of CELL_S.
    """
    folder = Repository(course.root)
    students: dict[tuple[str, int], str] = {}
    _record_seed(folder, course.lab)
    for submission, draws in asked:
        data = json.dumps(submission.make(course)).encode()
        for draw in range(draws):
            students[submission.name, draw] = student = _student(
                submission.name, draw, replace(parse(data), files=course.handed_in).digest
            )
            course.submit(student, data)
    limits = replace(folder.limits, cell_s=CELL_S)
    report = grade(course.lab, course=folder, jobs=jobs, limits=limits, progress=progress)
    rows = {row.student: row for row in report.rows}
    marks: Marks = {}
    for (name, draw), student in students.items():
        if rows[student].state != "graded":
            raise AssertionError(f"{name}, draw {draw}: {rows[student].state}: {rows[student].remarks}")
        for exercise, points in rows[student].marks:
            marks.setdefault(name, {}).setdefault(exercise, []).append(points)
    return marks


def _record_seed(folder: Repository, lab: str) -> None:
    path = folder.grading(lab) / "seed.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"seed": SEED, "draws": DRAWS}))


def _student(name: str, draw: int, digest: str) -> str:
    """The first name of a student whose work of that digest is judged with `draw`."""
    draws = Draws(SEED, DRAWS)
    names = (f"{name.replace(' ', '-')}-{draw}-{number}" for number in count())
    return next(one for one in names if draws.number(one, digest) == draw)
