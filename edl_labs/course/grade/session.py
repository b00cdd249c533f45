"""One submission in a sandboxed kernel: its cells in order, a probe at each check, each mark settled when earned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from edl_labs.checks import Exercise, Outcome, plain_data
from edl_labs.course.grade.assignment import Assignment
from edl_labs.course.grade.graded_run import Run, Secret, keep
from edl_labs.course.grade.judge_process import Judge, unjudged
from edl_labs.course.grade.plan import Plan, with_references
from edl_labs.course.grade.replay import Replay
from edl_labs.course.grade.timed import is_timed, timed_outcome
from edl_labs.course.sandbox.limits import DEFAULTS, Limits

if TYPE_CHECKING:
    from edl_labs.course.sandbox.kernel.client import SandboxKernel


class Session:
    """Grades plans of one assignment with kernels from `new_kernel`."""

    def __init__(
        self,
        assignment: Assignment,
        secrets: Mapping[str, Secret],
        *,
        new_kernel: Callable[[], SandboxKernel],
        judge: Judge,
        limits: Limits = DEFAULTS,
        seed: int = 0,
    ) -> None:
        self.assignment, self.secrets, self.judge, self.seed = assignment, secrets, judge, seed
        self.new_kernel, self.limits = new_kernel, limits
        self._requests: dict[str, bytes] = {}

    def grade(self, plan: Plan) -> Run:
        """Every exercise's outcome, and the outputs of every cell."""
        run = Replay(self, plan).run()
        for exercise in self.assignment.exercises:
            if exercise.name not in run.outcomes:
                run.outcomes[exercise.name] = _never_probed(exercise, self.points(exercise.name))
        self._stand_in(plan, run)
        for exercise in filter(is_timed, self.assignment.exercises):
            right = run.outcomes[exercise.name]
            if right.state == "passed":
                run.outcomes[exercise.name] = timed_outcome(self, plan, exercise, right)
        return run

    def request(self, exercise: Exercise) -> bytes:
        """What a probe of the secret cases is sent, encoded once for the class."""
        if exercise.name not in self._requests:
            cases = plain_data.decode(self.secrets[exercise.name].cases)
            what = {"lab": exercise.lab, "name": exercise.name, "cases": cases, "max_bytes": self.limits.evidence_bytes}
            self._requests[exercise.name] = plain_data.encode(what)
        return self._requests[exercise.name]

    def points(self, name: str) -> float:
        """The points of an exercise."""
        return self.assignment.points[name]

    def settle(self, run: Run, exercise: Exercise, evidence: bytes) -> None:
        """Judge evidence, and keep the better outcome where an exercise is probed at several copies of its check."""
        secret, points = self.secrets[exercise.name], self.points(exercise.name)
        keep(run, self.judge.judge(exercise, secret.cases, evidence, secret.wants, points=points))

    def _stand_in(self, plan: Plan, run: Run) -> None:
        """Judge again what builds on something wrong, with the reference in its place, in a kernel of its own.

        That kernel's outputs are dropped and nothing else is probed in it: a reference that a student's code gets hold
        of there leads nowhere.
        """
        untouched = plan.untouched()
        for exercise in self.assignment.exercises:
            wrong = {n for n in self.assignment.built_on(exercise.name) if run.outcomes[n].state != "passed"}
            if run.outcomes[exercise.name].state == "passed" or not wrong or exercise.name in untouched:
                continue
            replay = Replay(self, with_references(plan, self.assignment, wrong), only=exercise.name)
            again = replay.run()
            run.own_s += again.own_s
            run.cpu_s += again.cpu_s
            run.own_cpu_s += again.own_cpu_s
            if exercise.name in again.outcomes:
                keep(run, again.outcomes[exercise.name])
            run.events += [event for event in again.events if event.where == exercise.name]


def _never_probed(exercise: Exercise, points: float) -> Outcome:
    outcome = unjudged(
        exercise, points, what="there is no check of this exercise in the notebook", why="it was deleted"
    )
    return replace(outcome, state="not attempted")
