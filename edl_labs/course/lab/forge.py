"""Forging the evidence of wrong answers: no claim of a student's process may earn what its answers do not."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from typing import Any

from edl_labs.checks import RegisteredExercise, judge
from edl_labs.checks._judge import judge_case
from edl_labs.checks.probe_process import ProbeProcess
from edl_labs.checks.spec import defines
from edl_labs.course.course_folder import Course
from edl_labs.course.lab.answer_runs import Answer, AnswerRuns, Progress
from edl_labs.course.lab.forged_claims import MOST, Answers, Replacement, claims_of, replacements
from edl_labs.course.lab.forged_programs import opened
from edl_labs.course.lab.goldens import PUBLIC_SEED, exercises_of
from edl_labs.course.lab.mistakes import Mistake
from edl_labs.course.lab.read import read_lab
from edl_labs.values import Value


@dataclass(frozen=True)
class Gain:
    """A lie that earned points: in whose evidence, about which field, how, and the points before and after."""

    file: str
    field: str
    how: str
    before: float
    after: float

    def __str__(self) -> str:
        return f"{self.file}: {self.field}: {self.how}: {self.before:g} points became {self.after:g}"


@dataclass(frozen=True, repr=False)
class ExerciseForgery(Value):
    """What was tried on one exercise. `claims` are the fields that were lied about; `cpu_s` is the judge's time."""

    DERIVED = ("ok",)

    name: str
    trusting: bool
    answers: Answers
    claims: tuple[str, ...]
    replacements: int
    gains: tuple[Gain, ...]
    cpu_s: float

    @property
    def ok(self) -> bool:
        """Whether no lie earned anything; an exercise that says itself that it trusts its student may give some."""
        return self.trusting or not self.gains


@dataclass(frozen=True, repr=False)
class LabForgery(Value):
    """Every exercise of one lab."""

    DERIVED = ("ok",)
    ROWS = "exercises"

    lab: str
    exercises: tuple[ExerciseForgery, ...]

    @property
    def ok(self) -> bool:
        """Whether no lie earned anything."""
        return all(exercise.ok for exercise in self.exercises)


def forge(
    course: Course,
    name: str,
    *,
    exercises: Collection[str] = (),
    most: int = MOST,
    progress: Progress | None = None,
) -> LabForgery:
    """At most `most` lies about the claims in each wrong answer's evidence, under the public seed, and what they earn.

    It raises for a lab that cannot be read or run, and for an exercise that it does not have.
    """
    lab = read_lab(course, name)
    wanted = {lab.exercise(one).name for one in exercises} or {one.name for one in lab.exercises}
    with course.activated():
        registered = {name: one for name, one in exercises_of(course, lab).items() if name in wanted}
        runs = AnswerRuns(lab, registered, 1)
        whole, start = lab.namespace_cells(), partial(ProbeProcess, exercises_folder=course.exercises)
        origin, reference = start(whole), Answer("reference", whole, start, tuple(registered), 1)
        with origin:
            runs.gather([reference], progress)
            runs.want(reference)
            asked = {name for name, one in registered.items() if _has_claims(one, runs.wants[name, PUBLIC_SEED])}
            wrong = [
                (one, Answer(one.label, [(one.label, one.code)], origin.fork, (one.exercise,), 1, one.exercise))
                for one in lab.mistakes
                if one.exercise in asked
            ]
            runs.gather([answer for _, answer in wrong], progress)
        found = [
            _forged(runs, one, [pair for pair in wrong if pair[0].exercise == one.name], most)
            for one in registered.values()
        ]
    return LabForgery(lab.name, tuple(found))


def _has_claims(exercise: RegisteredExercise, wants: list[Any]) -> bool:
    return bool(claims_of(opened(wants), _answers(exercise)))


def _answers(exercise: RegisteredExercise) -> Answers:
    return exercise.spec.answers or "all"


def _forged(
    runs: AnswerRuns, exercise: RegisteredExercise, wrong: list[tuple[Mistake, Answer]], most: int
) -> ExerciseForgery:
    started_s, claims, count, gains = time.process_time(), set[str](), 0, list[Gain]()
    key = (exercise.name, PUBLIC_SEED)
    for one, answer in wrong:
        records = answer.records.get(key)
        if not isinstance(records, list) or any("value" not in record for record in records):
            continue  # it raised or died: there is no evidence to lie about
        evidence = _Evidence(runs, exercise, [record["value"] for record in records])
        for lie in replacements(evidence.values, evidence.wants, _answers(exercise), most=most):
            claims.add(lie.field)
            count += 1
            if evidence.may_gain(lie) and (after := evidence.points(lie.values)) > (before := evidence.points()):
                gains.append(Gain(one.where, lie.field, lie.how, before, after))
    cpu_s = round(time.process_time() - started_s, 3)
    return ExerciseForgery(
        exercise.name, exercise.trusting, _answers(exercise), tuple(sorted(claims)), count, tuple(gains), cpu_s
    )


class _Evidence:
    """One wrong answer's evidence. Cases that a lie left alone are not compared again: replays take their time."""

    def __init__(self, runs: AnswerRuns, exercise: RegisteredExercise, values: list[Any]) -> None:
        key = (exercise.name, PUBLIC_SEED)
        self.exercise, self.cases, self.wants, self.values = exercise, runs.cases[key], runs.wants[key], values
        self.most = runs.lab.exercise(exercise.name).weight
        self.fractions = [self._fraction(at, value) for at, value in enumerate(values)]

    def _fraction(self, at: int, value: Any) -> float:
        return judge_case(self.exercise, self.cases[at], {"value": value}, self.wants[at])[0]

    def may_gain(self, lie: Replacement) -> bool:
        """Whether the shares of all cases come to more with a lie, looking at the worst first."""
        found = list(self.fractions)
        one_costs_all = not defines(type(self.exercise.spec), "combine")
        for at in sorted(range(len(found)), key=found.__getitem__):
            if at in lie.cases:
                found[at] = self._fraction(at, lie.values[at])
            if found[at] <= 0 and one_costs_all:
                return False
        return self.exercise.spec.combine(found) > self.exercise.spec.combine(self.fractions)

    def points(self, values: list[Any] | None = None) -> float:
        """What the judge gives for these values, or for those of the wrong answer."""
        records = [{"value": value} for value in (self.values if values is None else values)]
        return judge(self.exercise, self.cases, records, self.wants, points=self.most).points
