"""Grades submissions of one assignment: plans, runs in kernels, judges outside them, and stores a result."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice

from edl_labs.course.assignment import Assignment
from edl_labs.course.course_folder import Course
from edl_labs.course.grade.broken_cells import tell_broken_cells
from edl_labs.course.grade.class_judges import ClassJudges
from edl_labs.course.grade.class_kernels import ClassKernels
from edl_labs.course.grade.class_results import ClassResults
from edl_labs.course.grade.graded_notebook import graded_notebook
from edl_labs.course.grade.known_timeouts import KnownTimeouts
from edl_labs.course.grade.mark import Examiner
from edl_labs.course.grade.plan import MarkingPlan, make_plan
from edl_labs.course.grade.probe_run import PlanRunner
from edl_labs.course.grade.reference import reference
from edl_labs.course.grade.result import Result, make_result
from edl_labs.course.grade.run_record import ProbedRun, Usage
from edl_labs.course.grade.secret_cases import ClassSecrets, SecretCases
from edl_labs.course.grade.student_names import check_folder
from edl_labs.course.grade.submission import Submission
from edl_labs.course.grade.submitted_folder import read_submission
from edl_labs.course.sandbox import Level, Limits, best_level
from edl_labs.course.sandbox.kernel.pool import KernelPool
from edl_labs.device import free_bytes, usable_cores
from edl_labs.errors import EdlError

_BESIDE_BYTES = 700_000_000  # measured in lab05 and lab07: the kernels' parent, the writer, and the judge that draws
_SLOT_BYTES = 400_000_000  # measured in lab07, whose judges import torch: a judge and a reference for each slot
_MANY = 1 << 20  # as many as ask, where nobody has said how many at a time
_SLEEPERS = 5  # submissions in hand for each that computes, where checks sleep
_LOOKED_AT = 4  # submissions for each draw: with so many, 98 of 100 draws have been asked for


def slots_that_fit(free: int, *, memory_bytes: int) -> int:
    """How many kernels may take all of `memory_bytes` at a time, besides what a class run takes itself; at least one.

    >>> slots_that_fit(8_000_000_000, memory_bytes=3 << 30), slots_that_fit(0, memory_bytes=3 << 30)
    (2, 1)
    """
    return max(1, (free - _BESIDE_BYTES) // (memory_bytes + _SLOT_BYTES))


@contextmanager
def released(turn: threading.Semaphore) -> Iterator[None]:
    """While active, somebody else may have the turn that the caller has."""
    turn.release()
    try:
        yield
    finally:
        turn.acquire()


@dataclass(frozen=True)
class Step:
    """What is being done with a submission, and since when by the monotonic clock."""

    student: str
    where: str
    since_s: float


class Grader:
    """Grades submissions of one assignment; threads may share it. The sandbox starts when it is first needed, if it has
    not `begun`.

    `gpu` is the number of the one GPU that kernels see; none see any otherwise. `on_gpu` without it finds what was
    graded on a GPU elsewhere, and grades nothing. `begun` is of `begin_pool`, with the same level and limits. All else
    is as `ClassResults` has it.
    """

    def __init__(
        self,
        course: Course,
        assignment: Assignment,
        *,
        seed: int | None = None,
        draws: int | None = None,
        level: Level | None = None,
        limits: Limits | None = None,
        fresh: bool = False,
        gpu: int | None = None,
        on_gpu: bool = False,
        all_cells: bool | None = None,
        begun: KernelPool | None = None,
    ) -> None:
        for exercise in assignment.exercises:
            exercise.drawing()  # an install without the judge's parts says so before anything starts
        self.course, self.assignment, self.fresh, self.stopping = course, assignment, fresh, threading.Event()
        level, limits, on_gpu = level or best_level(), limits or course.limits, on_gpu or gpu is not None
        results = partial(ClassResults, course, assignment, seed=seed, draws=draws, all_cells=all_cells)
        self.results = results(level=level, limits=limits, on_gpu=on_gpu)
        kernels = partial(ClassKernels, assignment, level=level, limits=limits, stopping=self.stopping)
        self.kernels = kernels(gpu=gpu, on_gpu=on_gpu, begun=begun)
        self.judges = ClassJudges(assignment, limits, self.stopping)
        self._timeouts = KnownTimeouts(self.results.folder / "timeouts", assignment, limits=limits, fresh=fresh)
        self.at_work: dict[int, Step] = {}
        """By thread, the cell or check that is running for a student."""
        self._solutions, self._at_once = threading.Semaphore(usable_cores()), threading.Semaphore(_MANY)
        self._lock = threading.Lock()
        self._secrets: dict[int, ClassSecrets] = {}
        self._requests: dict[int, dict[str, bytes]] = {}

    def __enter__(self) -> Grader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End every kernel and judge."""
        self.stopping.set()
        self.kernels.close()
        self.judges.close()

    def grade(self, student: str) -> tuple[Result, bool]:
        """One student's result, and whether it was there already. Unreadable is all that a student can bring about."""
        submission = self._submission(student)
        stored = None if self.fresh else self.results.stored(submission, student)
        if stored is not None:
            return stored, True
        try:
            with self._at_once:
                return self._graded(submission, student), False
        finally:
            self.at_work.pop(threading.get_ident(), None)

    def _submission(self, student: str) -> Submission:
        check_folder(student)
        folder = self.course.path("submitted", student=student, assignment=self.assignment.name)
        return read_submission(folder, self.assignment.name, limits=self.results.limits)

    def _graded(self, submission: Submission, student: str) -> Result:
        """Plan, run, judge, result."""
        plan, draw, level = make_plan(self.assignment, submission), self._draw(submission, student), self.results.level
        run = self.probed(plan, student, draw)
        tell_broken_cells(plan, run, limits=self.results.limits)
        key = self.results.key(submission, student)
        made = partial(make_result, key, self.assignment.name, level.value, trusted=level.trusted, draw=draw)
        result = made(plan=plan, run=run)
        if self.stopping.is_set():
            raise EdlError("the run was stopped")
        self.results.store.save(result, graded_notebook(self.assignment, plan, run, limits=self.results.limits))
        return result

    def probed(self, plan: MarkingPlan, student: str, draw: int = 0) -> ProbedRun:
        """The runs of a plan, with the evidence of each check judged against that of one draw's solution."""
        secrets, requests = self.secrets(draw), self._requests.setdefault(draw, {})
        began_s = time.monotonic()
        with self.judges.solution() as solution:
            limits = self.results.limits
            asleep, watch = partial(released, self._at_once), partial(self._watch, student)
            runner = PlanRunner(self.assignment, self.kernels.new_kernel, limits, watch, asleep, self._timeouts)
            examiner = Examiner(runner, secrets, self.judges, solution, requests)
            run = examiner.grade(plan, all_cells=self.results.all_cells)
        run.usage += Usage(wall_s=time.monotonic() - began_s)
        return run

    def _watch(self, student: str, where: str) -> None:
        self.at_work[threading.get_ident()] = Step(student, where, time.monotonic())

    def _draw(self, submission: Submission, student: str) -> int:
        return self.results.draw_of(submission, student)

    def prepare(self) -> None:
        """Work out the secret cases and the solution's evidence, so that others who share the folder need not."""
        for draw in range(self.results.draws.count):
            self.secrets(draw).wait()

    def expect(self, students: Iterable[str], *, at_once: int) -> int:
        """Begin with what the first of `students` will ask for: while the kernels' parent starts, cases are drawn.

        From now on `at_once` submissions compute at a time, and as many solutions: how many threads keep them busy.
        """
        self._solutions, self._at_once = threading.Semaphore(at_once), threading.Semaphore(at_once)
        if self._prefetch(students):
            self.judges.launch()
        if not any(exercise.sleeps for exercise in self.assignment.exercises):
            return at_once
        room = slots_that_fit(free_bytes() or 0, memory_bytes=self.results.limits.memory_bytes)
        return max(at_once, min(at_once * _SLEEPERS, room))

    def _prefetch(self, students: Iterable[str]) -> bool:
        """Have drawn what the first students will ask for; whether anything will be."""
        draws: set[int] = set()
        count = self.results.draws.count
        for student in islice(students, _LOOKED_AT * count):
            with suppress(EdlError):
                submission = self._submission(student)
                if self.fresh or self.results.stored(submission, student) is None:
                    draws.add(draw := self._draw(submission, student))
                    self.secrets(draw)
            if len(draws) == count:
                break
        return bool(draws)

    def secrets(self, draw: int) -> ClassSecrets:
        """The secret cases of a draw with the solution's evidence, computed while its first submissions run."""
        with self._lock:
            if draw not in self._secrets or self._secrets[draw].failed:
                self._secrets[draw] = ClassSecrets(partial(self._reference, self.results.draws.seed_of(draw)))
            return self._secrets[draw]

    def _reference(self, seed: int) -> dict[str, SecretCases]:
        solutions, results = self._solutions, self.results
        asleep = partial(released, solutions)
        runner = PlanRunner(self.assignment, self.kernels.solution_kernel, results.limits, asleep=asleep)
        given = partial(reference, runner, folder=results.folder / "references", on_gpu=results.on_gpu)
        return given(seed=seed, draw=self.judges.draw, turn=solutions)
