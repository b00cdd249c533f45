"""A class spread over machines: units are written, run by a backend, and merged by the one writer."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from edl_labs.checks.lab_exercises import exercises_folder
from edl_labs.course.course_folder import CourseFolder
from edl_labs.course.grade.classrun import chosen
from edl_labs.course.grade.cluster.backends import Backend
from edl_labs.course.grade.cluster.unit import Unit
from edl_labs.course.grade.grader import Grader
from edl_labs.course.grade.submission import read_submission
from edl_labs.course.sandbox import Level
from edl_labs.errors import EdlError

STUDENTS_A_UNIT = 8  # the sandbox's start, 6 s of CPU, is shared by eight, and a lost machine costs no more than them


def spread_class(
    assignment: str,
    backend: Backend,
    *,
    course: CourseFolder | None = None,
    only: Sequence[str] = (),
    seed: int | None = None,
    level: Level | None = None,
    gpu: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[int, ...]:
    """`spread` for everyone who handed in, or those whose names match a pattern of `only`."""
    course = course or CourseFolder.find()
    course.assignment(assignment)
    students = chosen(course.students(assignment), only)
    return spread(
        assignment, backend, course=course, students=students, seed=seed, level=level, gpu=gpu, progress=progress
    )


def spread(
    assignment: str,
    backend: Backend,
    *,
    course: CourseFolder,
    students: Sequence[str],
    seed: int | None = None,
    level: Level | None = None,
    students_a_unit: int = STUDENTS_A_UNIT,
    gpu: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[int, ...]:
    """Have `backend` work out the results that are not there yet; the exit codes of its units.

    Merge afterwards with `classrun.grade`, which finds the results, and grades here what is missing.
    """
    known = course.assignment(assignment)
    with Grader(course, known, seed=seed, level=level, on_gpu=gpu) as grader:
        missing = [student for student in students if _missing(grader, student)]
        if missing and not gpu:
            grader.prepare()
        own = str(exercises_folder()) if known.own_exercises else ""
        about = (str(course.root.resolve()), assignment)
        units = [
            Unit(*about, tuple(missing[i : i + students_a_unit]), grader.seed, grader.level.value, own, gpu)
            for i in range(0, len(missing), students_a_unit)
        ]
        folder = grader.folder / "units" / f"{os.getpid()}"
    paths = []
    for number, unit in enumerate(units):
        path = folder / f"{number:05}.json"
        unit.write(path)
        paths.append(path)
    codes = []
    try:
        for done, (_, code) in enumerate(backend.run(paths), start=1):
            codes.append(code)
            if progress is not None:
                progress(done, len(paths))
    finally:
        _remove(folder, paths)
    return tuple(codes)


def _missing(grader: Grader, student: str) -> bool:
    folder = grader.course.path("submitted", student=student, assignment=grader.assignment.name)
    try:
        return grader.stored(read_submission(folder, grader.assignment.name, limits=grader.limits)) is None
    except EdlError:
        return False  # grading says what is wrong with it, and needs no machine for that


def _remove(folder: Path, paths: Sequence[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
