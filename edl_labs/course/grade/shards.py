"""A class in parts, on machines that share the course's folder: a shard grades some of the students.

A shard writes results alone, each whole and under a name that says all it depends on. It may run twice, or be killed;
`edl-labs grade` enters the finished ones into the gradebook, and grades what is missing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Self

from edl_labs.course.course_folder import Course
from edl_labs.course.grade.classrun import chosen
from edl_labs.course.grade.grader import Grader
from edl_labs.course.grade.secret_cases import has_seed
from edl_labs.course.grade.submission import Unreadable
from edl_labs.course.sandbox import Level
from edl_labs.errors import EdlError, UsageError
from edl_labs.values import Value


@dataclass(frozen=True)
class Shard:
    """Part `number` of `count`, from 1 on."""

    number: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """The shard that "3/8" names; UsageError for anything else."""
        found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text)
        number, count = map(int, found.groups()) if found else (0, 0)
        if not 1 <= number <= count:
            why = "a shard is written as its number and the number of shards: 1/8 to 8/8"
            raise UsageError(f"{text!r} is not a shard", why=why, next="write, for example, --shard 3/8")
        return cls(number, count)

    def of(self, students: Sequence[str]) -> list[str]:
        """Its students: every `count`-th, so that shards differ by one student at most.

        >>> Shard(2, 3).of(["ann", "bob", "eve", "joe", "sue"])
        ['bob', 'sue']
        """
        return sorted(students)[self.number - 1 :: self.count]


@dataclass(frozen=True, repr=False)
class ShardReport(Value):
    """What came of a shard; `failed` has who could not be graded, and why. Unreadable ones are left to the merge."""

    DERIVED = ("exit_code",)

    assignment: str
    shard: str
    graded: int
    kept: int
    unreadable: int
    failed: tuple[tuple[str, str], ...]

    @property
    def exit_code(self) -> int:
        """0, or 1 where a student could not be graded."""
        return 1 if self.failed else 0


def prepare(
    assignment: str, *, course: Course, seed: int | None = None, level: Level | None = None, on_gpu: bool = False
) -> int:
    """Record the class's seed, and work out its secret cases with the solution's evidence; the seed.

    With `on_gpu` the first shard works them out: the evidence of a GPU is another one.
    """
    with Grader(course, course.assignment(assignment), seed=seed, level=level, on_gpu=on_gpu) as grader:
        if not on_gpu:
            grader.prepare()
        return grader.results.draws.seed


def grade_shard(
    assignment: str,
    shard: Shard,
    *,
    course: Course,
    only: Sequence[str] = (),
    jobs: int = 1,
    level: Level | None = None,
    gpu: int | None = None,
    all_cells: bool | None = None,
    progress: Callable[[int, int, str], None] = lambda done, total, student: None,
) -> ShardReport:
    """Grade one shard of who handed in, `jobs` at a time. UsageError without a recorded seed: each would draw its own.

    `gpu` is the number of the one GPU that its kernels see.
    """
    known = course.assignment(assignment)
    if not has_seed(course.grading(assignment)):
        why = "without a recorded seed, each shard would draw its own secret cases"
        raise UsageError(f"{assignment} is not prepared", why=why, next=f"run edl-labs grade {assignment} --prepare")
    students = shard.of(chosen(course.students(assignment), only))
    states: list[str] = []
    failed: list[tuple[str, str]] = []
    with Grader(course, known, level=level, gpu=gpu, all_cells=all_cells) as grader:
        hands = max(1, min(grader.expect(students, at_once=jobs), len(students)))
        with ThreadPoolExecutor(hands) as pool:
            for student, (state, why) in zip(students, pool.map(partial(_state, grader), students), strict=True):
                states.append(state)
                failed += [(student, why)] if state == "failed" else []
                progress(len(states), len(students), student)
    graded, kept, unreadable = (states.count(state) for state in ("graded", "kept", "unreadable"))
    return ShardReport(assignment, f"{shard.number}/{shard.count}", graded, kept, unreadable, tuple(failed))


def _state(grader: Grader, student: str) -> tuple[str, str]:
    try:
        return ("kept" if grader.grade(student)[1] else "graded"), ""
    except Unreadable as unreadable:
        return "unreadable", unreadable.what
    except UsageError:
        raise
    except EdlError as error:
        return "failed", error.what


def leased_gpu(environment: Mapping[str, str]) -> int:
    """The number of the GPU that Ray or Slurm leased to this process, as its device node is called.

    Slurm counts the devices that a job sees from 0, and says in variables of its own which ones they are.
    """
    for name in ("SLURM_STEP_GPUS", "SLURM_JOB_GPUS", "CUDA_VISIBLE_DEVICES"):
        first = environment.get(name, "").split(",")[0].split("-")[0].strip()
        if first.isdigit():
            return int(first)
    why = (
        f"CUDA_VISIBLE_DEVICES is {environment.get('CUDA_VISIBLE_DEVICES', '')!r}, which does not name a GPU by number"
    )
    raise UsageError("no GPU was leased to this shard", why=why, next="lease a GPU with --gpus 1, or leave --gpus out")
