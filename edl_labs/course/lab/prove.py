"""Proving a lab: stub, solution, wrong answers, hints, hostile submissions and library functions as answers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import Any

from edl_labs.checks import Outcome, RegisteredExercise, judge, plain_data
from edl_labs.checks.probe_process import ProbeDied, ProbeProcess
from edl_labs.course.course_folder import Course
from edl_labs.course.lab.goldens import PUBLIC_SEED, check_compares, exercises_of, steady_cases, values
from edl_labs.course.lab.hostile import hostile_cells
from edl_labs.course.lab.library_calls import Earned, earned_by_library
from edl_labs.course.lab.pairs import confused, jargon, shown
from edl_labs.course.lab.parsed_lab import Lab, LabExercise, WrongAnswer
from edl_labs.course.lab.places import check_places
from edl_labs.course.lab.read import read_lab
from edl_labs.errors import EdlError
from edl_labs.values import Value


@dataclass(frozen=True)
class Found:
    """One thing that was proved, or not: `text` says what was seen."""

    ok: bool
    text: str


@dataclass(frozen=True)
class WrongProof:
    """One wrong/ file: whether it lost its exercise alone and its author's sentence was told."""

    file: str
    ok: bool
    text: str
    told: str
    said: str


@dataclass(frozen=True, repr=False)
class ExerciseProof(Value):
    """One exercise: stub, solution, wrong answers, hints, hostile submissions."""

    DERIVED = ("ok", "problems")

    name: str
    kind: str
    points: float
    stub: Found
    solution: Found
    wrong: tuple[WrongProof, ...]
    hints: Found
    hostile: Found
    library: Found = Found(True, "")
    declared: Found = Found(True, "")
    """Whether the cells that grading runs give the evidence of all cells."""
    pairs: tuple[str, ...] = ()
    """Pairs of wrong answers of which one is told what the other did."""

    @property
    def ok(self) -> bool:
        """Whether the exercise is complete."""
        return not self.problems

    @property
    def problems(self) -> list[str]:
        """What is missing, one sentence each."""
        names = ("stub", "solution", "hints", "hostile", "library", "declared")
        parts = {name: getattr(self, name) for name in names}
        found = [f"{self.name}: {part}: {seen.text}" for part, seen in parts.items() if not seen.ok]
        found += [f"{self.name}: {one.file}: {one.text}" for one in self.wrong if not one.ok]
        return found + [f"{self.name}: {text}" for text in self.pairs]


@dataclass(frozen=True, repr=False)
class LabProof(Value):
    """Every exercise of one lab. `seeds` is how many seeds the solutions were tried with."""

    DERIVED = ("ok", "problems")
    ROWS = "exercises"

    lab: str
    seeds: int
    exercises: tuple[ExerciseProof, ...]

    @property
    def ok(self) -> bool:
        """Whether every exercise is complete."""
        return all(exercise.ok for exercise in self.exercises)

    @property
    def problems(self) -> list[str]:
        """What is missing in the whole lab, one sentence each."""
        return [problem for exercise in self.exercises for problem in exercise.problems]


AGAIN_SEEDS = 20  # two runs of the solution that differ at all differ soon; more seeds are for the cases' sake
WRONG_SEEDS = 3  # a mistake shows in nearly every case; each further seed costs every wrong answer a run
HOSTILE_SEEDS = 2  # what answers nothing fits the cases of one seed by chance, hardly those of two
TRAINING_SEEDS = 2  # training takes seconds a case; two tell a fixed answer from a computed one
LIBRARY_SEEDS = 2  # a library function that earns points by chance under one does not under both
ALL_CELLS_S = 900.0  # as grading gives a notebook
AT_ONCE = 2  # processes: a CI runner has two cores, and each process holds torch
Sources = list[tuple[str, str]]
Records = dict[tuple[str, int], Any]
Progress = Callable[[int, int, str], None]


def prove(
    course: Course,
    lab: Lab | str,
    *,
    exercises: Collection[str] = (),
    seeds: int = 20,
    adapters: bool = False,
    progress: Progress | None = None,
) -> LabProof:
    """The proof of every exercise of a lab, or of those named. It raises for a lab that cannot be read or run, and
    for an exercise that it does not have.

    With `adapters` library functions are tried behind adapters too.
    """
    lab = read_lab(course, lab) if isinstance(lab, str) else lab
    check_places(course, lab, goldens=True)
    wanted = {lab.exercise(name).name for name in exercises} or {one.name for one in lab.exercises}
    with course.activated():
        registered = {name: exercise for name, exercise in exercises_of(course, lab).items() if name in wanted}
        proving = _Proving(course, lab, registered, max(1, seeds))
        proving.run(progress, adapters=adapters)
        proofs = [proving.proof(one) for one in lab.exercises if one.name in wanted]
    return LabProof(lab.name, max(1, seeds), tuple(proofs))


@dataclass
class _Variant:
    """One process: what it runs, and which exercises are asked there with how many seeds.

    One that is `forked` goes on from the solution, with `all_cells` from the whole notebook.
    """

    label: str
    sources: Sources
    seeds: int
    target: str | None = None
    forked: bool = False
    all_cells: bool = False
    records: Records = field(default_factory=dict)
    error: str | None = None


class _Proving:
    def __init__(self, course: Course, lab: Lab, registered: dict[str, RegisteredExercise], seeds: int) -> None:
        self.course, self.lab, self.registered, self.seeds = course, lab, registered, seeds
        for exercise in registered.values():
            steady_cases(lab, exercise)
        self.cases = {
            (name, seed): plain_data.plain_copy(exercise.draw_cases(seed))
            for name, exercise in registered.items()
            for seed in self.seeds_of(exercise, seeds)
        }
        whole, few = lab.namespace_cells(), min(seeds, WRONG_SEEDS)
        self.reference = _Variant("reference", whole, seeds)
        self.solution = _Variant("solution", whole, min(seeds, AGAIN_SEEDS))
        self.stubs = _Variant("stubs", _stubs(lab), 1)
        wrong = [w for w in lab.wrong if w.exercise in registered]
        self.wrong = {w.file: _Variant(w.file, [(w.file, w.code)], few, w.exercise, forked=True) for w in wrong}
        self.hostile = {
            what: _Variant(what, [(what, code)], min(few, HOSTILE_SEEDS), forked=True)
            for what, code in hostile_cells(lab).items()
        }
        all_cells = [("solution", _Variant("all cells", [], 1, forked=True, all_cells=True))]
        all_cells += [(w.file, _Variant(w.file, [(w.file, w.code)], 1, w.exercise, True, True)) for w in wrong]
        self.all_cells = dict(all_cells)
        self.origin = ProbeProcess(whole, exercises_folder=course.exercises)
        self.notebook = ProbeProcess(lab.all_cells(), exercises_folder=course.exercises, timeout_s=ALL_CELLS_S)
        self.wants: dict[tuple[str, int], list[Any]] = {}
        self.judged: dict[tuple[str, int, bytes], Outcome] = {}
        self.solved: dict[str, Found] = {}
        self.library: dict[str, list[Earned]] = {}

    @staticmethod
    def seeds_of(exercise: RegisteredExercise, seeds: int) -> list[int]:
        """The public seed first, then others; few of them where an exercise trains."""
        count = min(seeds, TRAINING_SEEDS) if exercise.trains else seeds
        return list(range(PUBLIC_SEED, PUBLIC_SEED + count))

    def run(self, progress: Progress | None, *, adapters: bool = False) -> None:
        """Run every variant, two at a time; afterwards each holds its records."""
        variants = [self.reference, self.solution, self.stubs, *self.wrong.values(), *self.hostile.values()]
        variants += self.all_cells.values()
        if not self.registered:
            return
        with self.origin, self.notebook, ThreadPoolExecutor(AT_ONCE) as pool:
            futures = {pool.submit(self._gather, variant): variant for variant in variants}
            for done, future in enumerate(as_completed(futures), start=1):
                future.result()
                if progress is not None:
                    progress(done, len(variants), f"{self.lab.name}: {futures[future].label}")
        if self.reference.error:
            why = self.reference.error
            raise EdlError(f"{self.lab.name}: the solution does not run", why=why, next="mend that cell")
        for (name, seed), records in self.reference.records.items():
            found = self.wants[name, seed] = values(_list(records), exercise=name, lab=self.lab.name)
            if seed == PUBLIC_SEED:
                twice = plain_data.plain_copy(found)
                check_compares(self.lab, self.registered[name], self.cases[name, seed], _list(records), twice)
        few = {key: want for key, want in self.wants.items() if key[1] < PUBLIC_SEED + LIBRARY_SEEDS}
        self.library = earned_by_library(self.course, self.lab, self.registered, self.cases, few, adapted=adapters)

    def _gather(self, variant: _Variant) -> None:
        names = [variant.target] if variant.all_cells and variant.target else self.registered
        asked = [(name, seed) for name in names for seed in self._seeds(variant, name)]
        while asked:
            asked = self._ask(variant, asked)

    def _seeds(self, variant: _Variant, name: str) -> list[int]:
        """The seeds that a variant is asked with; a wrong answer's other exercises are asked with the public one."""
        aside = variant.target is not None and variant.target != name
        return self.seeds_of(self.registered[name], 1 if aside else min(variant.seeds, self.seeds))

    def _ask(self, variant: _Variant, asked: list[tuple[str, int]]) -> list[tuple[str, int]]:
        """Ask one process as much as it answers; returns what is left for the next one after it died."""
        try:
            with self._worker(variant) as worker:
                variant.error = variant.error or worker.error
                for index, (name, seed) in enumerate(asked):
                    try:
                        variant.records[name, seed] = self._collect(worker, variant, name, seed)
                    except ProbeDied as died:
                        variant.records[name, seed] = died
                        return [pair for pair in asked[index + 1 :] if pair[0] != name]
        except ProbeDied as died:
            variant.error = f"{died.what}: {died.why}"
        return []

    def _worker(self, variant: _Variant) -> ProbeProcess:
        if variant.forked:
            return (self.notebook if variant.all_cells else self.origin).fork(variant.sources)
        return ProbeProcess(variant.sources, exercises_folder=self.course.exercises)

    def _collect(self, worker: ProbeProcess, variant: _Variant, name: str, seed: int) -> list[dict[str, Any]]:
        exercise = self.registered[name]
        references: Iterable[tuple[str, str]] = ()
        if variant.target is not None:
            references = [(f"solve {used}", self.lab.solution_cell(used)) for used in exercise.uses]
        cases = self.cases[name, seed]
        return worker.collect(name, cases, timeout_s=exercise.timeout_s, references=references)

    def outcome(self, variant: _Variant, name: str, seed: int) -> Outcome | str:
        """How the variant scored an exercise under a seed; text when it never answered."""
        records = variant.records.get((name, seed))
        if not isinstance(records, list):
            died = f"{records.what}: {records.why}" if isinstance(records, ProbeDied) else ""
            return died or variant.error or "it never answered"
        return self._judge(name, seed, records)

    def _judge(self, name: str, seed: int, records: list[dict[str, Any]]) -> Outcome:
        """The judge's outcome, remembered: most wrong answers leave the other exercises' evidence as it is."""
        key = (name, seed, plain_data.encode(records))
        if key not in self.judged:
            cases, wants, points = self.cases[name, seed], self.wants[name, seed], self.lab.exercise(name).weight
            self.judged[key] = judge(self.registered[name], cases, records, wants, points=points)
        return self.judged[key]

    def outcomes(self, variant: _Variant, name: str) -> list[tuple[int, Outcome | str]]:
        """The outcome for each seed that the variant was asked with."""
        return [(seed, self.outcome(variant, name, seed)) for seed in self._seeds(variant, name)]

    def proof(self, one: LabExercise) -> ExerciseProof:
        """The five things about one exercise."""
        enough = len(one.hints) >= 2
        hints = Found(enough, f"{len(one.hints)} hints")
        if one.kind == "explain":
            exempt = Found(True, "prose, marked by hand")
            return ExerciseProof(one.name, one.kind, one.points, exempt, exempt, (), hints, exempt)
        return ExerciseProof(
            name=one.name,
            kind=one.kind,
            points=one.points,
            stub=self._stub(one.name),
            solution=self._solution(one.name),
            wrong=tuple(self._wrong(w) for w in self.lab.wrong if w.exercise == one.name),
            hints=hints,
            hostile=self._hostile(one.name),
            declared=self._declared(one.name),
            library=_from_library(self.library.get(one.name, []), one.library),
            pairs=self._pairs(one.name),
        )

    def _stub(self, name: str) -> Found:
        seen = self.outcome(self.stubs, name, PUBLIC_SEED)
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
        again = self.outcomes(self.solution, name)
        outcomes = again + self.outcomes(self.reference, name)[len(again) :]
        for seed, seen in outcomes:
            if isinstance(seen, str):
                return Found(False, f"seed {seed}: {seen}")
            if seen.state != "passed":
                return Found(False, f"seed {seed}: {seen.points:g} of {seen.max_points:g} points: {seen.what}")
        return Found(True, f"full marks with {len(outcomes)} seed{'' if len(outcomes) == 1 else 's'}")

    def _wrong(self, wrong: WrongAnswer) -> WrongProof:
        variant = self.wrong[wrong.file]
        said = ""
        problem = f"it does not run: {variant.error}" if variant.error else ""
        for seed, seen in self.outcomes(variant, wrong.exercise):
            said = said or (seen if isinstance(seen, str) else seen.what)
            problem = problem or _not_lost(wrong, seed, seen)
        for name in self.registered:
            if name != wrong.exercise and self._solution(name).ok:
                problem = problem or self._lost_too(variant, name)
        return WrongProof(wrong.file, not problem, problem or "loses its exercise alone", wrong.told, said)

    def _pairs(self, name: str) -> tuple[str, ...]:
        exercise, key = self.registered[name], (name, PUBLIC_SEED)
        wrong = [(w, self.wrong[w.file].records.get(key)) for w in self.lab.wrong if w.exercise == name]
        return tuple(confused(shown(w, exercise, self.cases[key], got, self.wants[key]) for w, got in wrong))

    def _lost_too(self, variant: _Variant, name: str) -> str:
        for seed, seen in self.outcomes(variant, name):
            if isinstance(seen, str) or seen.state != "passed":
                told = seen if isinstance(seen, str) else seen.what
                return f"{name} is lost too, under seed {seed}: {told}"
        return ""

    def _declared(self, name: str) -> Found:
        """Whether solution and wrong answers come to the same where all cells ran before, demonstrations too."""
        if self.notebook.error:
            return Found(False, f"the notebook does not run from top to bottom: {self.notebook.error}")
        variants = {
            "solution": self.solution,
            **{w.file: self.wrong[w.file] for w in self.lab.wrong if w.exercise == name},
        }
        for label, variant in variants.items():
            one, other = (_told(self.outcome(v, name, PUBLIC_SEED)) for v in (variant, self.all_cells[label]))
            if one != other:
                why = f"{one} of the declared cells, {other} of all cells"
                return Found(False, f"{label}: {why}: write `given` at the cell that makes the difference")
        return Found(True, f"{len(variants)} submissions come to the same with demonstrations")

    def _hostile(self, name: str) -> Found:
        for what, variant in self.hostile.items():
            for seed, seen in self.outcomes(variant, name):
                if not isinstance(seen, str) and seen.points != 0:
                    return Found(False, f"a submission that {what} scores {seen.points:g} points under seed {seed}")
        return Found(True, f"{len(self.hostile)} submissions score 0")


def _told(outcome: Outcome | str) -> str:
    """What a student is told of a result, in a line."""
    return outcome if isinstance(outcome, str) else f"{outcome.points:g} points ({outcome.what or outcome.state})"


def _not_lost(wrong: WrongAnswer, seed: int, seen: Outcome | str) -> str:
    if isinstance(seen, str):
        return f"seed {seed}: {seen}"
    if seen.state == "passed":
        return f"seed {seed}: it scores full marks"
    if seen.state == "not attempted":
        return f"seed {seed}: it counts as not attempted"
    if jargon(seen):
        return f"seed {seed}: the student is told of the inside: {jargon(seen)!r} in {seen.what!r}"
    return "" if wrong.told in seen.what else f"seed {seed}: the student is told {seen.what!r}, not {wrong.told!r}"


def _from_library(earned: list[Earned], allowed: dict[str, str]) -> Found:
    """Whether only those library functions earn points that lab.toml allows, and all of those do."""
    found = [
        f"{one.path} as {one.name} earns {one.points:g}" + (f" behind {one.adapter!r}" if one.adapter else "")
        for one in earned
        if one.path not in allowed
    ]
    idle = [f"lab.toml allows {path}, which earns nothing" for path in allowed if path not in {e.path for e in earned}]
    return Found(
        not (found or idle), "; ".join(found + idle) or f"no library function earns points, {len(allowed)} allowed"
    )


def _stubs(lab: Lab) -> Sources:
    """The cells that a student's notebook runs before any work: every solve cell as its stub."""
    roles = ("setup", "parameters", "given", "solve")
    return [(c.label, c.stub if c.role == "solve" else c.source) for c in lab.cells if c.role in roles]


def _list(records: Any) -> list[dict[str, Any]]:
    if isinstance(records, list):
        return records
    raise EdlError("the solution ended the process", why=str(records), next="look for an endless loop or os._exit")
