"""One submission's marks: evidence judged as it comes, and judged again where a mistake would cost twice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from edl_labs.checks import Exercise, Outcome, plain_data
from edl_labs.course.grade.judge_process import Judge, unjudged
from edl_labs.course.grade.plan import MarkingPlan, with_references
from edl_labs.course.grade.probe_run import AtCheck, PlanRunner, ProbedRun
from edl_labs.course.grade.secret_cases import SecretCases
from edl_labs.course.grade.timed import is_timed, timed_outcome


@dataclass(frozen=True)
class Examiner:
    """Marks plans of one assignment; the sink that has evidence judged against the solution's."""

    runner: PlanRunner
    secrets: Mapping[str, SecretCases]
    judge: Judge
    seed: int = 0
    _requests: dict[str, bytes] = field(default_factory=dict)

    def grade(self, plan: MarkingPlan) -> ProbedRun:
        """Every exercise's outcome, and the outputs of every cell."""
        run = self.runner.probe_run(plan, self)
        for exercise in self.runner.assignment.exercises:
            if exercise.name not in run.outcomes:
                what = "there is no check of this exercise in the notebook"
                missed = self.miss(exercise, what=what, why="it was deleted")
                run.outcomes[exercise.name] = replace(missed, state="not attempted")
        self._stand_in(plan, run)
        for exercise in filter(is_timed, self.runner.assignment.exercises):
            right = run.outcomes[exercise.name]
            if right.state == "passed":
                found = timed_outcome(self.runner, self.judge, plan, exercise, right, seed=self.seed)
                run.outcomes[exercise.name] = found
        return run

    def take(self, exercise: Exercise, check: AtCheck) -> Outcome:
        """The judge's outcome of the evidence."""
        secret, points = self.secrets[exercise.name], self.runner.assignment.points[exercise.name]
        evidence = check.ask(self._request(exercise, secret)).data
        return self.judge.judge(exercise, secret.cases, evidence, secret.wants, points=points)

    def miss(self, exercise: Exercise, *, what: str, why: str) -> Outcome:
        """No points, and why."""
        return unjudged(exercise, self.runner.assignment.points[exercise.name], what=what, why=why)

    def _request(self, exercise: Exercise, secret: SecretCases) -> bytes:
        """What a probe of the secret cases is sent, encoded once for the class."""
        if exercise.name not in self._requests:
            self._requests[exercise.name] = self.runner.request(exercise, plain_data.decode(secret.cases))
        return self._requests[exercise.name]

    def _stand_in(self, plan: MarkingPlan, run: ProbedRun) -> None:
        """Judge again what builds on something wrong, with the reference in its place, in a kernel of its own.

        That kernel's outputs are dropped and nothing else is probed in it: a reference that a student's code gets hold
        of there leads nowhere.
        """
        assignment, untouched = self.runner.assignment, plan.untouched()
        for exercise in assignment.exercises:
            wrong = {n for n in assignment.built_on(exercise.name) if run.outcomes[n].state != "passed"}
            if run.outcomes[exercise.name].state == "passed" or not wrong or exercise.name in untouched:
                continue
            again = self.runner.probe_run(with_references(plan, assignment, wrong).until(exercise.name), self)
            run.usage += again.usage
            run.keep(again.outcomes.get(exercise.name))
            run.events += [event for event in again.events if event.where == exercise.name]
