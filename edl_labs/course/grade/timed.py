"""A timed exercise, which an instructor opts in to: timed from outside, from sending a request to verified bytes.

The spec says `timed = True`, and may say `wanted_ratio` (how fast, as a multiple of the solution's speed), `rounds` and
`claimed_s(value)` (the seconds that the student's own measurement claims). The solution runs in a sandbox of its own,
in turn with the student's; each round has cases of its own, and counts only while its results are right.
"""

from __future__ import annotations

import hashlib
import math
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from edl_labs.checks import Exercise, Outcome, plain_data
from edl_labs.course.grade.plan import Plan, solution_plan
from edl_labs.course.sandbox.kernel.errors import KernelDied, Violation
from edl_labs.units import seconds as seconds_text

if TYPE_CHECKING:
    from edl_labs.course.grade.session import Session
    from edl_labs.course.sandbox.kernel.client import Answer, SandboxKernel

INCONCLUSIVE = "inconclusive"
ROUNDS, WARM_UP, LEVEL = 16, 2, 0.95
CLAIM_FACTOR = 2.0
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


def timed_outcome(session: Session, plan: Plan, exercise: Exercise, right: Outcome) -> Outcome:
    """The outcome of a right answer once it is timed: passed, too slow, or for a person to decide."""
    try:
        with _QUIET, session.new_kernel() as student, session.new_kernel() as solution:
            replay(session, student, plan, exercise.name)
            replay(session, solution, solution_plan(session.assignment), exercise.name)
            found = _rounds(session, exercise, student, solution)
    except (KernelDied, Violation) as end:
        what = "your code could not be timed"
        return replace(right, state="wrong", points=0.0, what=what, why=str(end.why or end.what))
    return found if isinstance(found, Outcome) else _verdict(exercise, right, found)


def replay(session: Session, kernel: SandboxKernel, plan: Plan, name: str) -> None:
    """Run a plan's cells up to the last check of an exercise."""
    from edl_labs.course.grade.replay import SETUP

    if session.assignment.own_exercises:
        kernel.ask(SETUP, b"", timeout_s=session.limits.cell_s)
    last = max((i for i, cell in enumerate(plan.cells) if cell.probes == name), default=-1)
    for cell in plan.cells[: last + 1]:
        if cell.runs:
            kernel.run(cell.source, timeout_s=session.limits.cell_s)


def _rounds(session: Session, exercise: Exercise, student: SandboxKernel, solution: SandboxKernel) -> Timing | Outcome:
    """Round after round in changing order; the first wrong result or refused claim ends it."""
    mine: list[float] = []
    theirs: list[float] = []
    for number in range(WARM_UP + int(getattr(exercise.spec, "rounds", ROUNDS))):
        cases = exercise.draw_cases(_round_seed(session.seed, number))
        pair = [(student, mine), (solution, theirs)]
        answers = {}
        for kernel, times in pair if number % 2 else reversed(pair):
            answers[id(times)] = _asked(session, kernel, exercise, cases)
            times.append(answers[id(times)].elapsed_s)
        empty_s = solution.answer('answer(b"")', timeout_s=session.limits.cell_s).elapsed_s
        problem = _problem(session, exercise, cases, answers[id(mine)], answers[id(theirs)], empty_s=empty_s)
        if problem is not None:
            return problem
    return timing(mine[WARM_UP:], theirs[WARM_UP:])


def timing(student_s: list[float], solution_s: list[float]) -> Timing:
    """The interval of the speed ratio from paired rounds."""
    from edl_labs.stats import sign_flip_interval

    logs = [math.log(theirs / mine) for mine, theirs in zip(student_s, solution_s, strict=True)]
    found = sign_flip_interval(logs, level=LEVEL)
    return Timing(tuple(student_s), tuple(solution_s), math.exp(found.low), math.exp(found.high))


def _asked(session: Session, kernel: SandboxKernel, exercise: Exercise, cases: list[Any]) -> Answer:
    from edl_labs.course.grade.replay import PROBE

    most = session.limits.evidence_bytes
    what = {"lab": exercise.lab, "name": exercise.name, "cases": cases, "max_bytes": most}
    timeout_s = min(exercise.timeout_s, session.limits.probe_s)
    return kernel.answer(PROBE, plain_data.encode(what), timeout_s=timeout_s, max_bytes=most)


def _problem(
    session: Session, exercise: Exercise, cases: list[Any], mine: Answer, theirs: Answer, *, empty_s: float
) -> Outcome | None:
    """The outcome that ends the timing, if this round has one."""
    wants = [record.get("value") for record in plain_data.decode(theirs.data)]
    points = session.points(exercise.name)
    outcome = session.judge.judge(
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


def _claimed_s(exercise: Exercise, evidence: bytes) -> float | None:
    """What the student's own measurements add up to; NaN for a claim that is no number."""
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
