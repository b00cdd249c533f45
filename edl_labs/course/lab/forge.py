"""Forges the evidence of wrong answers, to prove that claims of a student's process earn no points."""

from __future__ import annotations

import os
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
from edl_labs.course.lab.forged_objects import ObjectChanges
from edl_labs.course.lab.forged_programs import opened
from edl_labs.course.lab.goldens import PUBLIC_SEED, exercises_of
from edl_labs.course.lab.mistakes import Mistake
from edl_labs.course.lab.read import read_lab
from edl_labs.values import Value

MOST_CASES = 3  # that a change of objects is tried on first, where one wrong case costs a part


@dataclass(frozen=True)
class Gain:
    """A lie that earned points: in whose evidence, about which field, how, and the points before and after."""

    file: str
    field: str
    how: str
    before: float
    after: float

    def __str__(self) -> str:
        return f"{self.file}: {self.field}: {self.how}: {self.before:g} points became {self.after:g} points"


@dataclass(frozen=True, repr=False)
class ExerciseForgery(Value):
    """What was tried on one exercise; `cpu_s` is the judge's time.

    `claims` are the fields that were lied about, `attributes` those of the library's objects that were changed.
    """

    DERIVED = ("ok",)

    name: str
    trusting: bool
    answers: Answers
    claims: tuple[str, ...]
    replacements: int
    attributes: tuple[str, ...]
    changes: int
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
    cpu_s: float
    """CPU time of the judge and of all processes that ran answers."""

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

    As many changes at most of objects that a wrong answer's functions are given, before they run.

    It raises for a lab that cannot be read or run, and for an exercise that it does not have.
    """
    lab, started_s = read_lab(course, name), _cpu_s()
    wanted = {lab.exercise(one).name for one in exercises} or {one.name for one in lab.exercises}
    with course.activated():
        registered = {name: one for name, one in exercises_of(course, lab).items() if name in wanted}
        runs = AnswerRuns(lab, registered, 1)
        whole, start = lab.namespace_cells(), partial(ProbeProcess, exercises_folder=course.exercises)
        origin, reference = start(whole), Answer("reference", whole, start, tuple(registered), 1)
        with origin:
            runs.gather([reference], progress)
            runs.want(reference)
            objects = {
                name: ObjectChanges(lab, one, runs.cases[name, PUBLIC_SEED], origin) for name, one in registered.items()
            }
            asked = {
                name
                for name, one in registered.items()
                if any(objects[name].noted) or _has_claims(one, runs.wants[name, PUBLIC_SEED])
            }
            wrong = [
                (one, Answer(one.label, [(one.label, one.code)], origin.fork, (one.exercise,), 1, one.exercise))
                for one in lab.mistakes
                if one.exercise in asked
            ]
            runs.gather([answer for _, answer in wrong], progress)
            found = [
                _forged(one, objects[one.name], _with_evidence(runs, one, wrong), most) for one in registered.values()
            ]
    return LabForgery(lab.name, tuple(found), round(_cpu_s() - started_s, 1))


def _cpu_s() -> float:
    return sum(os.times()[:4])


def _with_evidence(
    runs: AnswerRuns, exercise: RegisteredExercise, wrong: list[tuple[Mistake, Answer]]
) -> list[tuple[Mistake, _Evidence]]:
    """An exercise's wrong answers but those that raised or died: they leave nothing to lie about."""
    records = [(one, answer.records.get((exercise.name, PUBLIC_SEED))) for one, answer in wrong]
    return [
        (one, _Evidence(runs, exercise, [record["value"] for record in every]))
        for one, every in records
        if one.exercise == exercise.name and isinstance(every, list) and all("value" in record for record in every)
    ]


def _has_claims(exercise: RegisteredExercise, wants: list[Any]) -> bool:
    return bool(claims_of(opened(wants), _answers(exercise)))


def _answers(exercise: RegisteredExercise) -> Answers:
    return exercise.spec.answers or "all"


def _forged(
    exercise: RegisteredExercise, objects: ObjectChanges, wrong: list[tuple[Mistake, _Evidence]], most: int
) -> ExerciseForgery:
    started_s, claims, attributes, gains = time.process_time(), list[str](), list[str](), list[Gain]()
    for number, (one, evidence) in enumerate(wrong):
        for lie in replacements(evidence.values, evidence.wants, _answers(exercise), most=most):
            claims.append(lie.field)
            gains += evidence.gains(one, lie)
        asked = evidence.lost()
        for change in objects.changes(asked, turn=number, most=most):
            attributes.append(change[0])
            values = objects.values((one.label, one.code), change, asked)
            if values is None or not evidence.is_better(asked, values):
                continue
            every = range(len(evidence.values))
            found = objects.values((one.label, one.code), change, every) or evidence.values
            gains += evidence.gains(one, Replacement(change[0], f"{change[1]} before it ran", found, frozenset(every)))
    return ExerciseForgery(
        exercise.name,
        exercise.trusting,
        _answers(exercise),
        *(tuple(sorted(set(claims))), len(claims), tuple(sorted(set(attributes))), len(attributes)),
        *(tuple(gains), round(time.process_time() - started_s, 3)),
    )


class _Evidence:
    """One wrong answer's evidence. Cases that a lie left alone are not compared again: replays take their time."""

    def __init__(self, runs: AnswerRuns, exercise: RegisteredExercise, values: list[Any]) -> None:
        key = (exercise.name, PUBLIC_SEED)
        self.exercise, self.cases, self.wants, self.values = exercise, runs.cases[key], runs.wants[key], values
        self.most = runs.lab.exercise(exercise.name).weight
        self.one_costs_all = not defines(type(exercise.spec), "combine")
        self.fractions = [self._fraction(at, value) for at, value in enumerate(values)]

    def _fraction(self, at: int, value: Any) -> float:
        return judge_case(self.exercise, self.cases[at], {"value": value}, self.wants[at])[0]

    def lost(self) -> list[int]:
        """The cases of which one at least has to come to more before the points do: the worst ones."""
        worst = sorted(range(len(self.fractions)), key=self.fractions.__getitem__)
        return worst[: 1 if self.one_costs_all else MOST_CASES]

    def is_better(self, asked: list[int], values: list[Any]) -> bool:
        """Whether one of these cases comes to more with another value."""
        return any(self._fraction(at, one) > self.fractions[at] for at, one in zip(asked, values, strict=True))

    def gains(self, mistake: Mistake, lie: Replacement) -> list[Gain]:
        """What a lie earns, if anything."""
        if not self._may_gain(lie):
            return []
        before, after = self._points(self.values), self._points(lie.values)
        return [Gain(mistake.where, lie.field, lie.how, before, after)] if after > before else []

    def _may_gain(self, lie: Replacement) -> bool:
        """Whether the shares of all cases come to more with a lie, looking at the worst first."""
        found = list(self.fractions)
        for at in sorted(range(len(found)), key=found.__getitem__):
            if at in lie.cases:
                found[at] = self._fraction(at, lie.values[at])
            if found[at] <= 0 and self.one_costs_all:
                return False
        return self.exercise.spec.combine(found) > self.exercise.spec.combine(self.fractions)

    def _points(self, values: list[Any]) -> float:
        records = [{"value": value} for value in values]
        return judge(self.exercise, self.cases, records, self.wants, points=self.most).points
