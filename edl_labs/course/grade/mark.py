"""The marks of one submission: evidence is judged as it arrives, and again if a mistake would lose points twice."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace

from edl_labs.checks import Outcome, RegisteredExercise, plain_data
from edl_labs.checks.lab_facts import facts
from edl_labs.checks.spec import cases_of, plain_cases
from edl_labs.course.grade.class_judges import ClassJudges
from edl_labs.course.grade.declared_cells import declared_plan
from edl_labs.course.grade.judge_process import Judge, unjudged
from edl_labs.course.grade.plan import MarkingPlan
from edl_labs.course.grade.probe_run import LATE, CheckPoint, PlanRunner
from edl_labs.course.grade.reference_process import ReferenceProcess, ServedCalls, StandIns, stand_ins
from edl_labs.course.grade.run_record import Incident, ProbedRun
from edl_labs.course.grade.secret_cases import SecretCases
from edl_labs.course.sandbox.kernel.exchange import Violation

_LEAST_S = 1.0  # a notebook's time is no shorter


@dataclass(frozen=True)
class Examiner:
    """Marks plans of one assignment; the sink that has evidence judged against the solution's.

    With `helped_by` it marks what builds on the exercises `wrong`, and takes the solution's functions for theirs.
    """

    runner: PlanRunner
    secrets: Mapping[str, SecretCases]
    judge: Judge | ClassJudges
    solution: ReferenceProcess
    requests: dict[str, bytes] = field(default_factory=dict)
    """The data that is sent to a probe for these secrets, by exercise, encoded once; examiners of a draw share it."""
    helped_by: StandIns = field(default_factory=StandIns)
    wrong: tuple[str, ...] = ()

    def grade(self, plan: MarkingPlan, *, all_cells: bool = True) -> ProbedRun:
        """Every exercise's outcome, and the outputs of every cell that ran.

        Without `all_cells`, demonstrations do not run. Where the evidence of an exercise that was
        attempted is an error, all cells run after all, and that run alone counts. No cell is missing where a stub was
        met, nor, before the judge's own took its place, where something wrong was built on.
        """
        declared = counted = plan if all_cells else declared_plan(plan)
        run = self.runner.probe_run(declared, self)
        alone = {n for n in run.errors if n not in run.outcomes or self._help_for(n, plan, run) is None}
        if declared is not plan and alone.difference(plan.untouched()):
            counted, run = plan, self._again(plan, run)
        run.not_run = frozenset(i for i, cell in enumerate(plan.cells) if cell.runs and not counted.cells[i].runs)
        for exercise in self.runner.assignment.exercises:
            if exercise.name not in run.outcomes:
                what = "the notebook contains no check of this exercise"
                points = self.runner.assignment.points[exercise.name]
                missed = unjudged(exercise, points, what=what, why="the check cell was deleted")
                run.outcomes[exercise.name] = replace(missed, state="not attempted")
        self._stand_in(declared, plan, run)
        return run

    def _again(self, plan: MarkingPlan, before: ProbedRun) -> ProbedRun:
        """A run of all cells in place of the one `before`; a check that timed out there is not repeated."""
        run = self.runner.probe_run(plan.unchecked(before.late), self, hung=before.has_hung)
        run.usage += before.usage
        run.late |= before.late
        run.events += [event for event in before.events if event.where in before.late]
        for name in before.late & before.outcomes.keys():
            run.keep(before.outcomes[name])
        return run

    def take(self, exercise: RegisteredExercise, check: CheckPoint) -> Outcome:
        """The judge's outcome of the evidence; state and points alone where something replaced wrong code."""
        with self.runner.asleep() if getattr(self.secrets, "is_pending", False) else nullcontext():
            secret = self.secrets[exercise.name]
        points = self.runner.assignment.points[exercise.name]
        serve = ServedCalls(self.solution, frozenset(self.helped_by.functions)) if self.wrong else None
        evidence = check.ask(self._request(exercise, secret), serve=serve).data
        asked = (exercise, secret.cases, evidence, secret.wants)
        judged = self.judge.judge(*asked, points=points, source=check.source, files=check.files)
        check.judged(has_errors=judged.has_errors, cpu_s=judged.cpu_s)
        if self.wrong:
            return _bare(judged.outcome, self.wrong)
        return self._named(exercise, check, judged.outcome) if judged.all_values else judged.outcome

    def _named(self, exercise: RegisteredExercise, check: CheckPoint, outcome: Outcome) -> Outcome:
        """The outcome with the message of a known mistake, if the answers to the public cases are that mistake's."""
        known = facts(exercise.lab).mistakes.get(exercise.name, []) if outcome.state in ("wrong", "partly") else []
        if not known:
            return outcome
        check.keep(outcome)
        cases, wants = facts(exercise.lab).golden(exercise.name)
        try:
            evidence = check.ask(self.runner.request(exercise, cases)).data
        except Violation as broken:
            if not broken.alive:
                raise
            return outcome
        public = [plain_data.encode(plain_cases(cases)), evidence, plain_data.encode(wants)]
        said = self.judge.judge(exercise, *public, points=outcome.max_points, mistakes=known).outcome
        if not any((one["what"], one["why"], one["next"]) == (said.what, said.why, said.next) for one in known):
            return outcome
        return replace(outcome, what=said.what, why=said.why, next=said.next)

    def miss(self, exercise: RegisteredExercise, *, what: str, why: str) -> Outcome | None:
        """No points, and why; nothing where the first run has said what there is to say."""
        if self.wrong:
            return None
        points = self.runner.assignment.points[exercise.name]
        if what == LATE:
            return unjudged(exercise, points, what=what, why=why, then="look for an endless loop")
        return unjudged(exercise, points, what=what, why=why)

    def _request(self, exercise: RegisteredExercise, secret: SecretCases) -> bytes:
        """What a probe of the secret cases is sent, encoded once for the class."""
        if exercise.name not in self.requests:
            cases, helped_by = cases_of(plain_data.decode(secret.cases)), self.helped_by
            request = self.runner.request(exercise, cases, functions=helped_by.functions, objects=helped_by.objects)
            self.requests[exercise.name] = request
        return self.requests[exercise.name]

    def _help_for(self, name: str, plan: MarkingPlan, run: ProbedRun) -> tuple[set[str], StandIns] | None:
        """What an attempted exercise builds on that is wrong, and what takes its place; None where there is neither."""
        assignment = self.runner.assignment
        wrong = {n for n in assignment.built_on(name) if n in run.outcomes and run.outcomes[n].state != "passed"}
        if not wrong or run.outcomes[name].state == "passed" or name in plan.untouched():
            return None
        found = stand_ins(assignment, wrong)
        return None if found is None else (wrong, found)

    def _stand_in(self, declared: MarkingPlan, plan: MarkingPlan, run: ProbedRun) -> None:
        """Judge again what builds on something wrong, with the reference in its place, in a kernel of its own.

        The reference stays in a process of the judge: what the kernel gets is its answers to calls. Of that run nothing
        is kept but state and points.
        """
        untouched = set(plan.untouched())
        raised = {cell.known.exercise for index in run.raised if (cell := plan.cells[index]).known}
        for name in [exercise.name for exercise in self.runner.assignment.exercises]:
            if (known := self._help_for(name, plan, run)) is None:
                continue
            wrong, found = known
            self.solution.start()
            helped = replace(self, requests={}, helped_by=found, wrong=tuple(sorted(wrong)))
            # What is wrong may have broken the kernel for what comes after it: in the end without its cells.
            broke = any(run.outcomes[n].state != "not attempted" or n in raised for n in wrong - untouched)
            tries, others = (
                [cells.until(name), *([cells.until(name).without(wrong)] if broke else [])]
                for cells in (declared, plan)
            )
            exercise = self.runner.assignment.exercise(name)
            helped._try_in_turn(tries, exercise, run, after_error=[] if declared is plan else others)

    def _try_in_turn(
        self, tries: list[MarkingPlan], exercise: RegisteredExercise, run: ProbedRun, *, after_error: list[MarkingPlan]
    ) -> None:
        """Until one earns something or times out, all in one notebook's time; `after_error` where the last ended so."""
        left_s, waiting, more = self.runner.limits.notebook_s, [*tries], [*after_error]
        while waiting:
            again = self._stood_in(waiting.pop(0), exercise, run, left_s=left_s)
            better = again.outcomes.get(exercise.name)
            earned = better is not None and _rank(better) > (0.0, False)
            left_s -= again.usage.own_s
            if earned or left_s < _LEAST_S or exercise.name in again.late:
                return
            if not waiting and exercise.name in again.errors:
                waiting, more = more, []

    def _stood_in(self, plan: MarkingPlan, exercise: RegisteredExercise, run: ProbedRun, *, left_s: float) -> ProbedRun:
        """A run of `left_s` seconds with the reference's help; what is better goes into `run`."""
        runner = replace(self.runner, limits=replace(self.runner.limits, notebook_s=left_s))
        again = runner.probe_run(plan, self, hung=run.has_hung)
        run.usage += again.usage
        better = again.outcomes.get(exercise.name)
        if better is not None and _rank(better) > _rank(run.outcomes[exercise.name]):
            run.outcomes[exercise.name] = better
        events = [event for event in again.events if event.where == exercise.name]
        run.events += [Incident(e.kind, e.where, "while the reference replaced the wrong exercises") for e in events]
        return again


def _rank(outcome: Outcome) -> tuple[float, bool]:
    """What is better: more points; for practice, which has none, being right."""
    return outcome.points, outcome.is_practice and outcome.state == "passed"


def _bare(found: Outcome, wrong: tuple[str, ...]) -> Outcome:
    """State and points, and a sentence of ours: what was said in that kernel may be the reference's answers."""
    bare = Outcome(*(found.name, found.lab, found.state, found.points, found.max_points), trusting=found.trusting)
    if found.state == "passed":
        return bare
    return replace(
        bare,
        what=f"partly right when graded with a correct {' and '.join(wrong)} instead of yours",
        why=f"this exercise builds on {wrong[0]}, which is not right yet",
        next=f'once check("{wrong[0]}") passes, run check("{found.name}") in your notebook',
    )
