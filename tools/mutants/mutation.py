"""Proving by mutation: small mistakes in each solution, of which the checks must notice nearly all."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any

from edl_labs.checks import Case, RegisteredExercise, judge
from edl_labs.checks.probe_process import ProbeDied, ProbeProcess
from edl_labs.checks.spec import read_here
from edl_labs.course.course_folder import Course
from edl_labs.course.lab.answer_runs import AT_ONCE
from edl_labs.course.lab.goldens import PUBLIC_SEED, alike, exercises_of, values
from edl_labs.course.lab.parsed_lab import Lab
from edl_labs.course.lab.prove import WRONG_SEEDS
from edl_labs.course.lab.read import read_lab
from edl_labs.errors import EdlError, SourceError
from edl_labs.values import Value
from tools.mutants.changes import Mutant, mutants_of, sampled

EQUIVALENTS = "equivalent.toml"
TARGET = 0.95  # of the mutants that are not equivalent, for each exercise
INPUTS = 10_000  # on which an equivalent mutant must agree with the solution
READ_BY_ANOTHER = 0.1  # share of mutants called equivalent beyond which one author's word is too little
# A mutant may be this much slower than the solution, and these seconds more, before it counts as hanging.
_SLOWER, _MORE_S = 10.0, 5.0
Progress = Callable[[int, int, str], None]
Step = Callable[[str, int], None]  # what is at work, and how many mutants it is done with


@dataclass(frozen=True)
class Survivor:
    """A mutant with full marks under `seeds_passed` of the seeds. `change` is its one line of difference."""

    line: int
    change: str
    seeds_passed: int


@dataclass(frozen=True, repr=False)
class MutatedExercise(Value):
    """What mutants of one solution came to. `sometimes` lost points, but not under every seed; they are killed too."""

    DERIVED = ("ok", "share")

    name: str
    mutants: int
    killed: int
    equivalent: int
    survivors: tuple[Survivor, ...]
    sometimes: tuple[Survivor, ...]
    problems: tuple[str, ...]
    remarks: tuple[str, ...]
    seconds: float

    @property
    def share(self) -> float:
        """The share of the mutants that are not equivalent which lost points; 1 where there are none."""
        return self.killed / (self.killed + len(self.survivors)) if self.killed + len(self.survivors) else 1.0

    @property
    def ok(self) -> bool:
        """Whether enough of them lost points, and each equivalent one was found to be so."""
        return self.share >= TARGET and not self.problems


@dataclass(frozen=True, repr=False)
class LabMutation(Value):
    """The exercises of one lab whose solutions were mutated."""

    DERIVED = ("ok",)
    ROWS = "exercises"

    lab: str
    seeds: int
    exercises: tuple[MutatedExercise, ...]

    @property
    def ok(self) -> bool:
        """Whether it holds of every exercise."""
        return all(exercise.ok for exercise in self.exercises)


@dataclass(frozen=True)
class Equivalent:
    """An entry of equivalent.toml: a mutant that gives what the solution gives, why, and how that was checked.

    `checked` is empty where drawn inputs check it, which is done again each time.
    """

    exercise: str
    mutant: str
    reason: str
    checked: str = ""


def read_equivalents(course: Course, lab: Lab) -> list[Equivalent]:
    """The entries of a lab's equivalent.toml; none where it has no such file, SourceError for one that is not right."""
    path = lab.folder / EQUIVALENTS
    if not path.is_file():
        return []
    file = course.shown(path)
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8")).get("equivalent", [])
        found = [Equivalent(**table) for table in tables]
    except (tomllib.TOMLDecodeError, TypeError, UnicodeDecodeError) as error:
        need = "write [[equivalent]] tables of exercise, mutant, reason and, where no inputs check it, checked"
        raise SourceError("not a list of equivalent mutants", file=file, line=1, why=str(error), next=need) from None
    code = [one.name for one in lab.exercises if one.kind == "code"]
    for one in found:
        if one.exercise not in code:
            raise SourceError(f"{one.exercise!r} is not a code exercise of this lab", file=file, line=1)
        if not str(one.reason).strip():
            raise SourceError(f"{one.mutant!r} has no reason", file=file, line=1, next="explain why it is equivalent")
    return found


def mutate(
    course: Course,
    lab: Lab | str,
    exercises: Iterable[str] = (),
    *,
    seeds: int = WRONG_SEEDS,
    sample: int | None = None,
    inputs: int = INPUTS,
    progress: Progress | None = None,
) -> LabMutation:
    """Every mutant of the solutions of a lab (or of the `exercises` named), judged as a wrong answer would be.

    `sample` takes so many of each exercise, always the same ones. It raises for a lab that cannot be read or run.
    """
    lab = read_lab(course, lab) if isinstance(lab, str) else lab
    listed = read_equivalents(course, lab)
    names = [one.name for one in lab.exercises if one.kind == "code"]
    chosen = [lab.exercise(name).name for name in exercises] or names
    with course.activated():
        registered = exercises_of(course, lab)
        runs = [_Mutating(course, lab, registered[name], seeds, sample, inputs) for name in names if name in chosen]
        total, done = sum(len(run.mutants) for run in runs), 0

        def step(what: str, count: int) -> None:
            nonlocal done
            done += count
            if progress is not None:
                progress(min(done, total), total, f"{lab.name}: {what}")

        with ThreadPoolExecutor(AT_ONCE) as pool:
            futures = [pool.submit(run.run, [e for e in listed if e.exercise == run.name], step) for run in runs]
            for future in as_completed(futures):
                future.result()
            found = tuple(future.result() for future in futures)
    return LabMutation(lab.name, seeds, found)


class _Mutating:
    """The mutants of one exercise, one after another in forks of one process that ran the solution."""

    def __init__(
        self, course: Course, lab: Lab, exercise: RegisteredExercise, seeds: int, sample: int | None, inputs: int
    ) -> None:
        self.course, self.lab, self.exercise, self.inputs = course, lab, exercise, inputs
        self.name, self.points = exercise.name, lab.exercise(exercise.name).weight
        self.all = mutants_of(lab.cell("solve", self.name))
        self.mutants = sampled(self.all, sample)
        seeds = 1 if exercise.trains else seeds
        drawn = (exercise.draw_cases(PUBLIC_SEED + i) for i in range(seeds))
        self.cases = [read_here(exercise.spec, cases, lab.handed_in) for cases in drawn]
        self.cpu_s = self.wall_s = exercise.timeout_s
        self.worker: ProbeProcess | None = None

    def run(self, listed: list[Equivalent], step: Step) -> MutatedExercise:
        start_s = time.monotonic()
        try:
            wants = self._reference()
            passed = []
            for mutant in self.mutants:
                passed.append(self._passed(mutant, wants))
                step(f"mutants of {self.name}", 1)
            problems, remarks = self._check(
                listed, {m.identity: count for m, count in zip(self.mutants, passed, strict=True)}, step
            )
        finally:
            self._close()
        return self._result(listed, passed, problems, remarks, time.monotonic() - start_s)

    def _result(
        self, listed: list[Equivalent], passed: list[int], problems: list[str], remarks: list[str], seconds: float
    ) -> MutatedExercise:
        same, count = {one.mutant for one in listed}, len(self.cases)
        kept = [(m, seeds) for m, seeds in zip(self.mutants, passed, strict=True) if m.identity not in same]
        survivors = tuple(Survivor(m.line, m.identity, seeds) for m, seeds in kept if seeds == count)
        sometimes = tuple(Survivor(m.line, m.identity, seeds) for m, seeds in kept if 0 < seeds < count)
        return MutatedExercise(
            name=self.name,
            mutants=len(self.mutants),
            killed=len(kept) - len(survivors),
            equivalent=len(self.mutants) - len(kept),
            survivors=survivors,
            sometimes=sometimes,
            problems=tuple(problems),
            remarks=tuple(remarks),
            seconds=seconds,
        )

    def _reference(self) -> list[list[Any]]:
        """What the solution gives; how long it takes says when a mutant hangs.

        Imports, there and here where evidence is read, are no part of that: seconds of them give each mutant minutes.
        """
        self._records(None, self.cases[0][:1])
        start_s = time.monotonic()
        records = self._records(None, [case for cases in self.cases for case in cases])
        if records is None:
            raise EdlError(f"{self.lab.name}: the solution of {self.name} ended its process", next="fix its cell")
        took_s = time.monotonic() - start_s
        self.cpu_s = self.wall_s = _SLOWER * took_s + _MORE_S
        return [values(part, exercise=self.name, lab=self.lab.name) for part in self._by_seed(records)]

    def _by_seed(self, records: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
        parts, at = [], 0
        for cases in self.cases:
            parts.append(records[at : at + len(cases)])
            at += len(cases)
        return parts

    def _passed(self, mutant: Mutant, wants: list[list[Any]]) -> int:
        """Under how many seeds the mutant gets full marks."""
        records = self._records(mutant, [case for cases in self.cases for case in cases])
        if records is None:
            return 0
        judged = (
            judge(self.exercise, cases, part, want, points=self.points)
            for cases, part, want in zip(self.cases, self._by_seed(records), wants, strict=True)
        )
        return sum(outcome.state == "passed" for outcome in judged)

    def _records(self, mutant: Mutant | None, cases: list[Any], *, times: float = 1.0) -> list[dict[str, Any]] | None:
        """Evidence of a mutant, of the solution for None; None when its process died or took too long."""
        changed = [] if mutant is None else [(f"solve {self.name}", mutant.source)]
        try:
            worker = self._open()
            cpu_s, wall_s = times * self.cpu_s, times * self.wall_s
            found = worker.collect_each(self.name, cases, changed=[changed], cpu_s=cpu_s, wall_s=wall_s)
            return None if found is None else found[0]
        except ProbeDied:
            self._close()
            return None

    def _open(self) -> ProbeProcess:
        if self.worker is None:
            worker = ProbeProcess(self.lab.namespace_cells(), exercises_folder=self.course.exercises)
            self.worker = worker.__enter__()
            if worker.error:
                raise EdlError(
                    f"{self.lab.name}: the solution does not run",
                    why=worker.error,
                    next="fix the cell that raised this error",
                )
        return self.worker

    def _close(self) -> None:
        if self.worker is not None:
            self.worker.__exit__()
            self.worker = None

    def _check(self, listed: list[Equivalent], passed: dict[str, int], step: Step) -> tuple[list[str], list[str]]:
        """What is wrong with the entries of equivalent.toml, and what a person should look at."""
        known, problems = {mutant.identity: mutant for mutant in self.all}, []
        count = len(self.cases)
        drawn = [one.mutant for one in listed if not one.checked and passed.get(one.mutant, count) == count]
        differing = self._differing([known[identity] for identity in drawn if identity in known], step)
        for one in listed:
            if one.mutant not in known:
                problems.append(f"equivalent.toml lists {one.mutant!r}, but this mutant no longer exists")
            elif passed.get(one.mutant, count) < count:
                problems.append(f"equivalent.toml lists {one.mutant!r}, but it loses points")
            elif one.mutant in differing:
                problems.append(f"equivalent.toml lists {one.mutant!r}, but its results differ on drawn inputs")
        share = len(listed) / max(1, len(self.all))
        remark = f"{share:.0%} of its mutants are listed as equivalent: ask another person to check equivalent.toml"
        return problems, [remark] if share > READ_BY_ANOTHER else []

    def _differing(self, mutants: list[Mutant], step: Step) -> set[str]:
        """Which of them give other evidence than the solution in `inputs` drawn cases, but for floats' last digits.

        Cases, and what the solution gives, are made once for all of them: that is most of the time.
        """
        alive, seed, left = list(mutants), PUBLIC_SEED, self.inputs
        usual = sum(map(len, self.cases))
        while left > 0 and alive:
            cases: list[Case] = []
            while len(cases) < min(left, 20 * usual):
                cases += self.exercise.draw_cases(seed)
                seed += 1
            times = max(1.0, len(cases) / usual)
            want = self._records(None, cases, times=times)
            records = {one: self._records(one, cases, times=times) for one in alive}
            alive = [one for one, got in records.items() if got is not None and alike(got, want)]
            left -= len(cases)
            step(f"equivalent mutants of {self.name}, {max(left, 0)} cases left", 0)
        return {one.identity for one in mutants if one not in alive}
