"""A class spread over machines: units are written, run by a backend, and merged by the one writer.

A unit is some students of one assignment, graded as a file says (`python -m` this module, then `FILE`). Its exit code:
0 every student's result is there, or is known not to be possible; 1 someone's is not; 2 a bad specification.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from edl_labs.checks.lab_exercises import exercises_folder
from edl_labs.course.course_folder import Course
from edl_labs.course.grade.classrun import chosen
from edl_labs.course.grade.cluster.backends import Backend
from edl_labs.course.grade.files import write_atomically
from edl_labs.course.grade.grader import Grader
from edl_labs.course.grade.submission import Unreadable, read_submission
from edl_labs.course.sandbox import Level
from edl_labs.errors import EdlError, UsageError

SCHEMA = 1


@dataclass(frozen=True)
class Unit:
    """What to grade. `exercises` is the folder of a course's own exercise modules, empty for the package's.

    `gpu`: the kernels see the GPU that was leased to the unit.
    """

    course: str
    assignment: str
    students: tuple[str, ...]
    seed: int
    level: str
    exercises: str = ""
    gpu: bool = False
    draws: int = 1
    all_cells: bool = True

    def write(self, path: Path) -> None:
        """The specification as a file."""
        write_atomically(path, json.dumps({"schema": SCHEMA, **asdict(self)}, sort_keys=True).encode())

    def environment(self) -> dict[str, str]:
        """What the unit's process needs beside its own environment."""
        return {"EDL_LABS_EXERCISES": self.exercises} if self.exercises else {}


def read_unit(path: Path) -> Unit:
    """The specification in a file; UsageError when it does not hold one."""
    try:
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if data.pop("schema") != SCHEMA:
            raise ValueError("another schema")
        unit = Unit(**{**data, "students": tuple(map(str, data["students"]))})
        Level(unit.level)
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UsageError(
            f"{path.name} does not describe a unit of grading", why=str(error), next="edl-labs grade writes them"
        ) from None
    return unit


def run_unit(path: Path) -> int:
    """Grade a unit; its exit code. What went wrong is written to standard error, one line a student."""
    unit = read_unit(path)
    os.environ.update(unit.environment())
    course = Course(Path(unit.course))
    failed = 0
    known, gpu = course.assignment(unit.assignment), leased_gpu(os.environ) if unit.gpu else None
    level = Level(unit.level)
    with Grader(
        course, known, seed=unit.seed, draws=unit.draws, level=level, gpu=gpu, all_cells=unit.all_cells
    ) as grader:
        for student in unit.students:
            try:
                grader.grade(student)
            except Unreadable:
                continue  # for a person, who is told where the class is merged
            except EdlError as error:
                failed += 1
                print(f"{student}: {error.what}", file=sys.stderr)
    return 1 if failed else 0


def leased_gpu(environment: Mapping[str, str]) -> int:
    """The number of the GPU that Ray or Slurm leased to this process, as its device node is called.

    Slurm counts the devices that a job sees from 0, and says in variables of its own which ones they are.
    """
    for name in ("SLURM_STEP_GPUS", "SLURM_JOB_GPUS", "CUDA_VISIBLE_DEVICES"):
        first = environment.get(name, "").split(",")[0].split("-")[0].strip()
        if first.isdigit():
            return int(first)
    why = f"CUDA_VISIBLE_DEVICES is {environment.get('CUDA_VISIBLE_DEVICES', '')!r}, which names none by number"
    raise UsageError("no GPU was leased to this unit", why=why, next="ask for one with --gpus 1, or for none")


def main() -> None:
    """The command."""
    try:
        sys.exit(run_unit(Path(sys.argv[1])))
    except EdlError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()


STUDENTS_A_UNIT = 8  # the sandbox's start, 6 s of CPU, is shared by eight, and a lost machine costs no more than them


def spread_class(
    assignment: str,
    backend: Backend,
    *,
    course: Course | None = None,
    only: Sequence[str] = (),
    seed: int | None = None,
    level: Level | None = None,
    gpu: bool = False,
    all_cells: bool | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[int, ...]:
    """`spread` for everyone who handed in, or those whose names match a pattern of `only`."""
    course = course or Course.find_class()
    course.assignment(assignment)
    students = chosen(course.students(assignment), only)
    return spread(
        *(assignment, backend),
        course=course,
        students=students,
        seed=seed,
        level=level,
        gpu=gpu,
        all_cells=all_cells,
        progress=progress,
    )


def spread(
    assignment: str,
    backend: Backend,
    *,
    course: Course,
    students: Sequence[str],
    seed: int | None = None,
    level: Level | None = None,
    students_a_unit: int = STUDENTS_A_UNIT,
    gpu: bool = False,
    all_cells: bool | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[int, ...]:
    """Have `backend` work out the results that are not there yet; the exit codes of its units.

    Merge afterwards with `classrun.grade`, which finds the results, and grades here what is missing.
    """
    known = course.assignment(assignment)
    with Grader(course, known, seed=seed, level=level, on_gpu=gpu, all_cells=all_cells) as grader:
        missing = [student for student in students if _missing(grader, student)]
        if missing and not gpu:
            grader.prepare()
        own = str(exercises_folder()) if known.own_exercises else ""
        about = (str(course.root.resolve()), assignment)
        units = [
            Unit(
                *about,
                tuple(missing[i : i + students_a_unit]),
                grader.results.draws.seed,
                grader.results.level.value,
                own,
                gpu,
                grader.results.draws.count,
                grader.results.all_cells,
            )
            for i in range(0, len(missing), students_a_unit)
        ]
        folder = grader.results.folder / "units" / f"{os.getpid()}"
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
        submission = read_submission(folder, grader.assignment.name, limits=grader.results.limits)
        return grader.results.stored(submission, student) is None
    except EdlError:
        return False  # grading says what is wrong with it, and needs no machine for that


def _remove(folder: Path, paths: Sequence[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
