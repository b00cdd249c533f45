"""The judge's processes of a class: those that compare, the one that draws cases, and those that hold the solution."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from edl_labs.checks import RegisteredExercise
from edl_labs.course.assignment import Assignment
from edl_labs.course.grade.judge_process import Judge, Judged
from edl_labs.course.grade.reference_process import ReferenceProcess
from edl_labs.course.sandbox import Limits
from edl_labs.errors import EdlError


class ClassJudges:
    """As many processes as ever work at a time; threads may share it."""

    def __init__(self, assignment: Assignment, limits: Limits, stopping: threading.Event) -> None:
        self._assignment, self._limits, self._stopping = assignment, limits, stopping
        self._lock, self._drawing = threading.Lock(), threading.Lock()
        self._known: dict[bytes, Judged] = {}
        self._started: list[Judge | ReferenceProcess] = []
        self._free: list[Judge] = []
        self._free_solutions: list[ReferenceProcess] = []
        self._drawer: Judge | None = None

    def close(self) -> None:
        """End every process."""
        with self._lock:
            started = [*self._started]
        for process in started:
            process.close()

    def judge(
        self,
        exercise: RegisteredExercise,
        cases: bytes,
        evidence: bytes,
        wants: bytes,
        *,
        points: float,
        source: Sequence[str] = (),
        files: Mapping[str, bytes] = MappingProxyType({}),
        mistakes: Sequence[dict[str, Any]] = (),
    ) -> Judged:
        """What `Judge.judge` says, of the judge that was free last, or of a new one where none is."""
        try:
            judge = self._free.pop()
        except IndexError:
            judge = self._new_judge()
        try:
            asked = (exercise, cases, evidence, wants)
            return judge.judge(*asked, points=points, source=source, files=files, mistakes=mistakes)
        finally:
            self._free.append(judge)

    def launch(self) -> None:
        """Start one judge while the caller goes on."""
        self._free.append(self._new_judge())

    @contextmanager
    def solution(self) -> Iterator[ReferenceProcess]:
        """A process for the solution's functions, for one submission at a time; it starts when it is first called."""
        try:
            found = self._free_solutions.pop()
        except IndexError:
            found = ReferenceProcess(self._assignment, self._limits)
            with self._lock:
                self._started.append(found)
        try:
            yield found
        finally:
            self._free_solutions.append(found)

    def draw(self, exercise: RegisteredExercise, seed: int) -> bytes:
        """Cases from the one process that draws: threads come one after the other."""
        with self._drawing:
            if self._drawer is None:
                self._drawer = self._new_judge()
            return self._drawer.draw(exercise, seed)

    def _new_judge(self) -> Judge:
        """One that starts while its caller goes on, and knows what all others judged."""
        lab = "" if self._assignment.own_exercises else self._assignment.name
        judge = Judge(self._limits, lab=lab, known=self._known)
        with self._lock:
            if self._stopping.is_set():
                raise EdlError("the run was stopped")
            self._started.append(judge)
        judge.launch()
        return judge
