"""One submission's marks: evidence judged as it comes, and judged again where a mistake would cost twice.

An exercise that an instructor opts in to is timed as well, from outside, from sending a request to verified bytes. Its
spec says `timed = True`, and may say `wanted_ratio` (how fast, as a multiple of the solution's speed), `rounds` and
`claimed_s(value)` (the seconds that the student's own measurement claims). The solution runs in a sandbox of its own,
in turn with the student's; each round has cases of its own, and counts only while its results are right.
"""

from __future__ import annotations

import hashlib
import math
import threading
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from edl_labs.checks import Exercise, Outcome, plain_data
from edl_labs.course.grade.hung_calls import HungCalls
from edl_labs.course.grade.judge_process import FreeJudge, Judge, unjudged
from edl_labs.course.grade.needed_cells import thrifty
from edl_labs.course.grade.plain_code import is_plain
from edl_labs.course.grade.plan import MarkingPlan, solution_plan
from edl_labs.course.grade.probe_run import LATE, AtCheck, PlanRunner
from edl_labs.course.grade.reference_process import ReferenceProcess, ServedCalls, StandIns, stand_ins
from edl_labs.course.grade.run_record import Mishap, ProbedRun
from edl_labs.course.grade.secret_cases import SecretCases
from edl_labs.course.sandbox.kernel.client import Answer
from edl_labs.units import seconds as seconds_text

INCONCLUSIVE = "inconclusive"
ROUNDS, WARM_UP = 16, 2  # the sign-flip interval of 16 pairs has 65,536 flips; the first rounds import and cache
LEVEL = 0.95  # the usual level of an interval
CLAIM_FACTOR = 2.0  # work between the student's clocks is at least half of what the request does
_LEAST_S = 1.0  # a notebook's time is no shorter
# Two timed exercises at once would be each other's noise.
_QUIET = threading.Lock()


@dataclass(frozen=True)
class Timing:
    """Student's and solution's seconds a round, from outside, and the bounds of the speed ratio."""

    student_s: tuple[float, ...]
    solution_s: tuple[float, ...]
    low: float
    high: float


def is_timed(exercise: Exercise) -> bool:
    """Whether the instructor opted in."""
    return bool(getattr(exercise.spec, "timed", False))


def timed_outcome(
    runner: PlanRunner, judge: Judge | FreeJudge, plan: MarkingPlan, exercise: Exercise, right: Outcome, *, seed: int
) -> Outcome:
    """The outcome of a right answer once it is timed: passed, too slow, or for a person to decide."""
    # The kernels that are compared have no second try, and no time that hangs on what came before.
    # Who has the quiet keeps the core, too: another that took it would wait for the quiet.
    once = replace(runner, limits=replace(runner.limits, deaths=0, notebook_s=math.inf), asleep=nullcontext)
    with _QUIET:
        run = once.probe_run(plan.until(exercise.name, once=True), _Contest(once, judge, right, seed))
    return run.outcomes[exercise.name]


@dataclass(frozen=True)
class _Contest:
    """A sink, first of the student's run, which waits at its check, then of the solution's: there they take turns."""

    runner: PlanRunner
    judge: Judge | FreeJudge
    right: Outcome
    seed: int
    student: AtCheck | None = None

    def take(self, exercise: Exercise, check: AtCheck) -> Outcome | None:
        """The outcome of round after round."""
        if self.student is not None:
            found = self._rounds(exercise, self.student, check)
            return found if isinstance(found, Outcome) else _verdict(exercise, self.right, found)
        solution = solution_plan(self.runner.assignment).until(exercise.name, once=True)
        return self.runner.probe_run(solution, replace(self, student=check)).outcomes.get(exercise.name)

    def miss(self, exercise: Exercise, *, what: str, why: str) -> Outcome:
        """One of the two never came to the check, or not through the rounds."""
        return replace(self.right, state="wrong", points=0.0, what="your code could not be timed", why=why or what)

    def _rounds(self, exercise: Exercise, student: AtCheck, solution: AtCheck) -> Timing | Outcome:
        """Round after round in changing order; the first wrong result or refused claim ends it."""
        mine: list[float] = []
        theirs: list[float] = []
        for number in range(WARM_UP + int(getattr(exercise.spec, "rounds", ROUNDS))):
            cases = exercise.draw_cases(_round_seed(self.seed, number))
            request = self.runner.request(exercise, cases)
            pair = [(student, mine), (solution, theirs)]
            answers = {}
            for check, times in pair if number % 2 else reversed(pair):
                answers[id(times)] = check.ask(request)
                times.append(answers[id(times)].elapsed_s)
            empty_s = solution.empty_s()
            problem = self._problem(exercise, cases, answers[id(mine)], answers[id(theirs)], empty_s=empty_s)
            if problem is not None:
                return problem
        return timing(mine[WARM_UP:], theirs[WARM_UP:])

    def _problem(
        self, exercise: Exercise, cases: list[Any], mine: Answer, theirs: Answer, *, empty_s: float
    ) -> Outcome | None:
        """The outcome that ends the timing, if this round has one."""
        wants = [record.get("value") for record in plain_data.decode(theirs.data)]
        points = self.right.max_points
        outcome = self.judge.judge(
            exercise, plain_data.encode(cases), mine.data, plain_data.encode(wants), points=points
        )
        if outcome.state != "passed":
            return outcome
        claimed_s = _claimed_s(exercise, mine.data)
        if claimed_s is not None and not _possible(claimed_s, outside_s=mine.elapsed_s, empty_s=empty_s):
            return replace(
                outcome,
                state="wrong",
                points=0.0,
                what="the claimed time is not what a clock outside saw",
                why=f"{seconds_text(claimed_s)} claimed, {seconds_text(mine.elapsed_s)} from request to result",
                next="measure with the clock you were given, and drain the device before you read it",
            )
        return None


def timing(student_s: list[float], solution_s: list[float]) -> Timing:
    """The interval of the speed ratio from paired rounds."""
    from edl_labs.stats import sign_flip_interval  # numpy with it, which no other mark needs here

    logs = [math.log(theirs / mine) for mine, theirs in zip(student_s, solution_s, strict=True)]
    found = sign_flip_interval(logs, level=LEVEL)
    return Timing(tuple(student_s), tuple(solution_s), math.exp(found.low), math.exp(found.high))


def _claimed_s(exercise: Exercise, evidence: bytes) -> float | None:
    """What the student's own measurements add up to; NaN where the claim is not a number."""
    claim = getattr(exercise.spec, "claimed_s", None)
    if claim is None:
        return None
    try:
        return math.fsum(float(claim(record["value"])) for record in plain_data.decode(evidence))
    except Exception:
        return math.nan


def _possible(claimed_s: float, *, outside_s: float, empty_s: float) -> bool:
    """Whether a claim fits into what was seen from outside, and fills it up to a factor and the cost of asking."""
    return (outside_s - empty_s) / CLAIM_FACTOR - empty_s <= claimed_s <= outside_s


def _verdict(exercise: Exercise, right: Outcome, found: Timing) -> Outcome:
    wanted = float(getattr(exercise.spec, "wanted_ratio", 1.0))
    saw = f"{found.low:.2f} to {found.high:.2f} times the solution's speed; {wanted:g} is wanted"
    if found.low >= wanted:
        return right
    if found.high < wanted:
        what = "the result is right, and too slow"
        return replace(right, state="wrong", points=0.0, what=what, why=saw, next=f'hint("{exercise.name}")')
    what = "the result is right; the clock cannot tell whether it is fast enough"
    return replace(right, state=INCONCLUSIVE, points=0.0, what=what, why=saw, next="your instructor decides")


def _round_seed(seed: int, number: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed}/round/{number}".encode()).digest()[:8], "little")


@dataclass(frozen=True)
class Examiner:
    """Marks plans of one assignment; the sink that has evidence judged against the solution's."""

    runner: PlanRunner
    secrets: Mapping[str, SecretCases]
    judge: Judge | FreeJudge
    solution: ReferenceProcess
    seed: int = 0
    requests: dict[str, bytes] = field(default_factory=dict)
    """What a probe of these secrets is sent, by exercise, encoded once; all examiners of a draw may share it."""

    def grade(self, plan: MarkingPlan, *, whole: bool = True) -> ProbedRun:
        """Every exercise's outcome, and the outputs of every cell that ran.

        Unless the `whole` notebook is asked for, cells that no mark needs do not run. Where anything else than a value
        came of that, an error or no answer, the whole notebook runs after all, and that alone counts.
        """
        spare = plan if whole else thrifty(plan)
        hung = HungCalls(plan, spare)
        run = self.runner.probe_run(spare, self, hung=hung)
        if spare is not plan and (run.events or run.unsure.difference(plan.untouched())):
            taken, spare = run.usage, plan
            run = self.runner.probe_run(plan, self, hung=hung)
            run.usage += taken
        run.spared = frozenset(i for i, cell in enumerate(plan.cells) if cell.runs and not spare.cells[i].runs)
        for exercise in self.runner.assignment.exercises:
            if exercise.name not in run.outcomes:
                what = "there is no check of this exercise in the notebook"
                missed = self.miss(exercise, what=what, why="it was deleted")
                run.outcomes[exercise.name] = replace(missed, state="not attempted")
        self._stand_in(spare, plan, run, hung)
        for exercise in filter(is_timed, self.runner.assignment.exercises):
            right = run.outcomes[exercise.name]
            if right.state == "passed":
                found = timed_outcome(self.runner, self.judge, plan, exercise, right, seed=self.seed)
                run.outcomes[exercise.name] = found
        return run

    def take(self, exercise: Exercise, check: AtCheck) -> Outcome:
        """The judge's outcome of the evidence."""
        with self.runner.asleep() if getattr(self.secrets, "is_pending", False) else nullcontext():
            secret = self.secrets[exercise.name]
        points = self.runner.assignment.points[exercise.name]
        evidence = check.ask(self._request(exercise, secret)).data
        outcome = self.judge.judge(exercise, secret.cases, evidence, secret.wants, points=points)
        if not self.judge.all_values:
            check.doubt()
        return outcome

    def miss(self, exercise: Exercise, *, what: str, why: str) -> Outcome:
        """No points, and why."""
        points = self.runner.assignment.points[exercise.name]
        if what == LATE:
            return unjudged(exercise, points, what=what, why=why, then="look for a loop that never ends")
        return unjudged(exercise, points, what=what, why=why)

    def _request(self, exercise: Exercise, secret: SecretCases) -> bytes:
        """What a probe of the secret cases is sent, encoded once for the class."""
        if exercise.name not in self.requests:
            self.requests[exercise.name] = self.runner.request(exercise, plain_data.decode(secret.cases))
        return self.requests[exercise.name]

    def _stand_in(self, spare: MarkingPlan, plan: MarkingPlan, run: ProbedRun, hung: HungCalls) -> None:
        """Judge again what builds on something wrong, with the reference in its place, in a kernel of its own.

        The reference stays in a process of the judge: what the kernel gets is its answers to calls. Of that run nothing
        is kept but state and points.
        """
        assignment, untouched = self.runner.assignment, set(plan.untouched())
        for exercise in assignment.exercises:
            wrong = {n for n in assignment.built_on(exercise.name) if run.outcomes[n].state != "passed"}
            if run.outcomes[exercise.name].state == "passed" or not wrong or exercise.name in untouched:
                continue
            found = stand_ins(assignment, wrong)
            if found is None:
                continue
            self.solution.start()
            sink = _StoodIn(self, found, tuple(sorted(wrong)))
            until = plan.until(exercise.name)
            tries = [until] if spare is plan else [spare.until(exercise.name), until]
            # What is wrong may have broken the kernel for what comes after it: in the end without its cells.
            tries += [until.without(wrong)] if wrong - untouched else []
            texts = [c.source for c in until.cells if c.runs and c.known and c.known.exercise in wrong]
            self._try_in_turn(tries, exercise, sink, run, quiet=is_plain(texts), hung=hung)

    def _try_in_turn(
        self,
        tries: list[MarkingPlan],
        exercise: Exercise,
        sink: _StoodIn,
        run: ProbedRun,
        *,
        quiet: bool,
        hung: HungCalls,
    ) -> None:
        """Until one earns something, all in one notebook's time.

        Where what is wrong is `quiet`, plain code that breaks nothing unseen, values without a mishap end it too: they
        are wrong, and another run finds the same.
        """
        left_s = self.runner.limits.notebook_s
        for plan in tries:
            again = self._stood_in(plan, exercise, sink, run, left_s=left_s, hung=hung)
            better = again.outcomes.get(exercise.name)
            earned = better is not None and _rank(better) > (0.0, False)
            left_s -= again.usage.own_s
            if earned or left_s < _LEAST_S or (quiet and not again.events and not again.unsure):
                return

    def _stood_in(
        self, plan: MarkingPlan, exercise: Exercise, sink: _StoodIn, run: ProbedRun, *, left_s: float, hung: HungCalls
    ) -> ProbedRun:
        """A run of `left_s` seconds with the reference's help; what is better goes into `run`."""
        runner = replace(self.runner, limits=replace(self.runner.limits, notebook_s=left_s))
        again = runner.probe_run(plan, sink, hung=hung)
        run.usage += again.usage
        better = again.outcomes.get(exercise.name)
        if better is not None and _rank(better) > _rank(run.outcomes[exercise.name]):
            run.outcomes[exercise.name] = better
        events = [event for event in again.events if event.where == exercise.name]
        run.events += [Mishap(e.kind, e.where, "with the judge's own in place of what is wrong") for e in events]
        return again


def _rank(outcome: Outcome) -> tuple[float, bool]:
    """What is better: more points; for practice, which has none, being right."""
    return outcome.points, outcome.is_practice and outcome.state == "passed"


@dataclass(frozen=True)
class _StoodIn:
    """A sink that has one exercise probed with something in place of the `wrong` ones that it uses."""

    examiner: Examiner
    found: StandIns
    wrong: tuple[str, ...]

    def take(self, exercise: Exercise, check: AtCheck) -> Outcome:
        """State and points, and a sentence of ours: what was said in that kernel may be the reference's answers."""
        examiner, secret = self.examiner, self.examiner.secrets[exercise.name]
        functions, objects = self.found.functions, self.found.objects
        request = examiner.runner.request(
            exercise, plain_data.decode(secret.cases), functions=functions, objects=objects
        )
        evidence = check.ask(request, serve=ServedCalls(examiner.solution, frozenset(functions))).data
        points = examiner.runner.assignment.points[exercise.name]
        found = examiner.judge.judge(exercise, secret.cases, evidence, secret.wants, points=points)
        if not examiner.judge.all_values:
            check.doubt()
        bare = Outcome(*(found.name, found.lab, found.state, found.points, found.max_points), trusting=found.trusting)
        if found.state == "passed":
            return bare
        return replace(
            bare,
            what=f"part of it is right, with the right {' and '.join(self.wrong)} in place of yours",
            why=f"it builds on {self.wrong[0]}, which is not right yet",
            next=f'check("{exercise.name}") in your notebook, after check("{self.wrong[0]}") has passed',
        )

    def miss(self, exercise: Exercise, *, what: str, why: str) -> None:
        """Nothing is kept: the first run has said what there is to say."""
