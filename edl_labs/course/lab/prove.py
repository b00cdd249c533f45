"""Proving a lab: stub, solution, wrong answers, hints, hostile submissions and library functions as answers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import partial

from edl_labs.checks import Outcome
from edl_labs.checks.probe_process import Cell, ProbeProcess
from edl_labs.course.course_folder import Course
from edl_labs.course.lab.answer_runs import Answer, AnswerRuns, Progress
from edl_labs.course.lab.declared_proof import DeclaredProof
from edl_labs.course.lab.goldens import PUBLIC_SEED, exercises_of
from edl_labs.course.lab.hostile import hostile_cells
from edl_labs.course.lab.library_calls import Earned, earned_by_library
from edl_labs.course.lab.mistakes import Mistake
from edl_labs.course.lab.pairs import confused, jargon, shown
from edl_labs.course.lab.parsed_lab import Lab, LabExercise
from edl_labs.course.lab.places import check_places
from edl_labs.course.lab.proofs import NOT_TRIED, ExerciseProof, Found, LabProof, MistakeProof
from edl_labs.course.lab.read import read_lab

AGAIN_SEEDS = 20  # two runs of the solution that differ at all differ soon; more seeds are for the cases' sake
WRONG_SEEDS = 3  # a mistake shows in nearly every case; each further seed costs every wrong answer a run
HOSTILE_SEEDS = 2  # what answers nothing fits the cases of one seed by chance, hardly those of two
LIBRARY_SEEDS = 2  # a library function that earns points by chance under one does not under both


def prove(
    course: Course,
    lab: Lab | str,
    *,
    exercises: Collection[str] = (),
    seeds: int = 20,
    adapters: bool = False,
    quick: bool = False,
    progress: Progress | None = None,
) -> LabProof:
    """The proof of every exercise of a lab, or of those named. It raises for a lab that cannot be read or run, and
    for an exercise that it does not have.

    With `adapters` library functions are tried behind adapters too. A `quick` proof runs stub, solution and mistakes
    once, under the public seed, and tries nothing else.
    """
    lab = read_lab(course, lab) if isinstance(lab, str) else lab
    check_places(course, lab, goldens=True)
    wanted = {lab.exercise(name).name for name in exercises} or {one.name for one in lab.exercises}
    with course.activated():
        registered = {name: exercise for name, exercise in exercises_of(course, lab).items() if name in wanted}
        seeds = 1 if quick else max(1, seeds)
        proving = (_QuickProving if quick else _Proving)(course, AnswerRuns(lab, registered, seeds), seeds)
        if registered:
            proving.run(progress, adapters=adapters)
        proofs = [proving.proof(one) for one in lab.exercises if one.name in wanted]
    return LabProof(lab.name, seeds, tuple(proofs))


class _Proving:
    def __init__(self, course: Course, runs: AnswerRuns, seeds: int) -> None:
        self.course, self.runs, self.lab, self.registered = course, runs, runs.lab, runs.registered
        whole, names, few = self.lab.namespace_cells(), tuple(self.registered), min(seeds, WRONG_SEEDS)
        start = partial(ProbeProcess, exercises_folder=course.exercises)
        self.origin = start(whole)
        self.reference = Answer("reference", whole, start, names, seeds)
        self.solution = Answer("solution", whole, start, names, min(seeds, AGAIN_SEEDS))
        self.stubs = Answer("stubs", _stubs(self.lab), start, names, 1)
        self.mistakes = {
            one.label: Answer(one.label, [(one.label, one.code)], self.origin.fork, names, few, one.exercise)
            for one in self.lab.mistakes
            if one.exercise in self.registered
        }
        self.hostile = {
            what: Answer(what, [(what, code)], self.origin.fork, names, min(few, HOSTILE_SEEDS))
            for what, code in hostile_cells(self.lab).items()
        }
        self.declared = DeclaredProof(course, runs, self.solution, self.mistakes)
        self.solved: dict[str, Found] = {}
        self.library: dict[str, list[Earned]] = {}

    def run(self, progress: Progress | None, *, adapters: bool = False) -> None:
        """Run every answer; afterwards each holds its records."""
        answers = [self.reference, self.solution, self.stubs, *self.mistakes.values(), *self.hostile.values()]
        with self.origin:
            self.runs.gather(answers, progress)
        self.runs.want(self.reference)
        self.runs.learn(self.mistakes)
        self.declared.run(progress)
        few = {key: want for key, want in self.runs.wants.items() if key[1] < PUBLIC_SEED + LIBRARY_SEEDS}
        cases = self.runs.cases
        self.library = earned_by_library(self.course, self.lab, self.registered, cases, few, adapted=adapters)

    def proof(self, one: LabExercise) -> ExerciseProof:
        """The five things about one exercise."""
        enough = len(one.hints) >= 2
        hints = Found(enough, f"{len(one.hints)} hints")
        if one.kind == "explain":
            exempt = Found(True, "prose, marked by hand")
            return ExerciseProof(one.name, one.kind, one.points, exempt, exempt, (), hints, exempt)
        mistakes = tuple(self._mistake(known) for known in self.lab.mistakes if known.exercise == one.name)
        return ExerciseProof(
            name=one.name,
            kind=one.kind,
            points=one.points,
            stub=self._stub(one.name),
            solution=self._solution(one.name),
            mistakes=mistakes,
            hints=hints,
            hostile=self._hostile(one.name),
            declared=self._declared(one.name),
            library=_from_library(self.library.get(one.name, []), one.library),
            pairs=self._pairs(one.name, {known.name for known in mistakes if not known.ok}),
        )

    def _stub(self, name: str) -> Found:
        seen = self.runs.outcome(self.stubs, name, PUBLIC_SEED)
        if isinstance(seen, str):
            return Found(False, seen)
        ok = seen.state == "not attempted" and seen.points == 0
        return Found(ok, f"{seen.state}, {seen.points:g} points" + ("" if ok else f": {seen.what}"))

    def _solution(self, name: str) -> Found:
        """Whether the solution has full marks; found out once, since each wrong answer of another exercise asks."""
        if name not in self.solved:
            self.solved[name] = self._solved(name)
        return self.solved[name]

    def _solved(self, name: str) -> Found:
        again = self.runs.outcomes(self.solution, name)
        outcomes = again + self.runs.outcomes(self.reference, name)[len(again) :]
        for seed, seen in outcomes:
            if isinstance(seen, str):
                return Found(False, f"seed {seed}: {seen}")
            if seen.state != "passed":
                return Found(False, f"seed {seed}: {seen.points:g} of {seen.max_points:g} points: {seen.what}")
        return Found(True, f"full marks with {len(outcomes)} seed{'' if len(outcomes) == 1 else 's'}")

    def _mistake(self, known: Mistake) -> MistakeProof:
        answer, said = self.mistakes[known.label], list[str]()
        problem = f"it does not run: {answer.error}" if answer.error else ""
        for seed, seen in self.runs.outcomes(answer, known.exercise):
            said = said or ([seen] if isinstance(seen, str) else [seen.what, seen.why, seen.next])
            problem = problem or _not_lost(known, seed, seen)
        for name in self.registered:
            if name != known.exercise and self._solution(name).ok:
                problem = problem or self._lost_too(answer, name)
        text = problem or "loses points only in its own exercise"
        return MistakeProof(known.name, known.where, not problem, text, known.told, *said)

    def _pairs(self, name: str, untold: Collection[str]) -> tuple[str, ...]:
        exercise, key = self.registered[name], (name, PUBLIC_SEED)
        cases, wants = self.runs.cases[key], self.runs.wants[key]
        known = [(one, self.mistakes[one.label].records.get(key)) for one in self.lab.mistakes if one.exercise == name]
        return tuple(
            confused(
                (shown(one, exercise, cases, got, wants, self.runs.known.get(name, ())) for one, got in known),
                untold=untold,
            )
        )

    def _lost_too(self, answer: Answer, name: str) -> str:
        for seed, seen in self.runs.outcomes(answer, name):
            if isinstance(seen, str) or seen.state != "passed":
                told = seen if isinstance(seen, str) else seen.what
                return f"{name} also loses points, with seed {seed}: {told}"
        return ""

    def _declared(self, name: str) -> Found:
        """Whether solution and wrong answers come to the same where all cells ran before, demonstrations too."""
        difference, count = self.declared.difference(name), len(self.declared.answers(name))
        return Found(
            not difference, difference or f"{count} submissions get the same result with and without demonstrations"
        )

    def _hostile(self, name: str) -> Found:
        for what, answer in self.hostile.items():
            for seed, seen in self.runs.outcomes(answer, name):
                if not isinstance(seen, str) and seen.points != 0:
                    return Found(False, f"a submission that {what} scores {seen.points:g} points with seed {seed}")
        return Found(True, f"{len(self.hostile)} submissions score 0")


class _QuickProving(_Proving):
    """Stub, solution and mistakes in forks of one process that ran the solution's cells."""

    def __init__(self, course: Course, runs: AnswerRuns, seeds: int) -> None:
        super().__init__(course, runs, seeds)
        self.reference = Answer("solution", [], self.origin.fork, tuple(self.registered), seeds)
        self.solution, self.hostile = self.reference, {}
        stubs = [(cell.label, cell.stub) for cell in self.lab.cells if cell.role == "solve"]
        self.stubs = Answer("stubs", stubs, self.origin.fork, tuple(self.registered), 1)

    def run(self, progress: Progress | None, *, adapters: bool = False) -> None:
        with self.origin:
            self.runs.gather([self.reference, self.stubs, *self.mistakes.values()], progress)
        self.runs.want(self.reference)
        self.runs.learn(self.mistakes)

    def _declared(self, name: str) -> Found:
        return NOT_TRIED

    def _hostile(self, name: str) -> Found:
        return NOT_TRIED

    def proof(self, one: LabExercise) -> ExerciseProof:
        return replace(super().proof(one), library=NOT_TRIED)


def _not_lost(known: Mistake, seed: int, seen: Outcome | str) -> str:
    if isinstance(seen, str):
        return f"seed {seed}: {seen}"
    if seen.state == "passed":
        return f"seed {seed}: it gets full marks"
    if seen.state == "not attempted":
        return f"seed {seed}: it counts as not attempted"
    if jargon(seen):
        return f"seed {seed}: the message mentions our code: {jargon(seen)!r} in {seen.what!r}"
    return (
        ""
        if known.told in seen.what
        else f"seed {seed}: the message is {seen.what!r}; it does not contain {known.told!r}"
    )


def _from_library(earned: list[Earned], allowed: dict[str, str]) -> Found:
    """Whether only those library functions earn points that lab.toml allows, and all of those do."""
    found = [
        f"{one.path} as {one.name} earns {one.points:g}" + (f" behind {one.adapter!r}" if one.adapter else "")
        for one in earned
        if one.path not in allowed
    ]
    idle = [f"lab.toml allows {path}, but it earns nothing" for path in allowed if path not in {e.path for e in earned}]
    return Found(
        not (found or idle), "; ".join(found + idle) or f"no library function earns points, {len(allowed)} allowed"
    )


def _stubs(lab: Lab) -> list[Cell]:
    """The cells that a student's notebook runs before any work: every solve cell as its stub."""
    roles = ("setup", "parameters", "given", "solve")
    return [(c.label, c.stub if c.role == "solve" else c.source) for c in lab.cells if c.role in roles]
