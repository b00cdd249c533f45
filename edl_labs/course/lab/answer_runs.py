"""Runs answers of a lab in separate processes: their evidence for drawn cases, and the judge's outcomes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import Any

from edl_labs.checks import Outcome, RegisteredExercise, judge, plain_data
from edl_labs.checks.known_mistakes import KnownMistake, digests, named
from edl_labs.checks.probe_process import Cell, ProbeDied, ProbeProcess, Records
from edl_labs.checks.spec import read_here
from edl_labs.course.lab.goldens import PUBLIC_SEED, check_compares, steady_cases, values
from edl_labs.course.lab.parsed_lab import Lab
from edl_labs.errors import EdlError

TRAINING_SEEDS = 2  # training takes seconds a case; two tell a fixed answer from a computed one
AT_ONCE = 2  # processes: a CI runner has two cores, and each process holds torch
Progress = Callable[[int, int, str], None]


@dataclass
class Answer:
    """The cells of one answer, the process that they start, and the exercises that are asked there.

    A wrong answer has a `target`, the exercise that it loses; its other exercises are asked with the public seed alone.
    """

    label: str
    sources: list[Cell]
    start: Callable[[Iterable[Cell]], ProbeProcess]
    names: Collection[str]
    seeds: int
    target: str | None = None
    records: dict[tuple[str, int], Records | ProbeDied] = field(default_factory=dict)
    error: str | None = None


class AnswerRuns:
    """Answers to the same cases of one lab's exercises; `gather` them, the `reference` first among those judged."""

    def __init__(self, lab: Lab, registered: dict[str, RegisteredExercise], seeds: int) -> None:
        self.lab, self.registered = lab, registered
        for exercise in registered.values():
            steady_cases(lab, exercise)
        self.cases = {
            (name, seed): read_here(exercise.spec, exercise.draw_cases(seed), lab.handed_in)
            for name, exercise in registered.items()
            for seed in self._drawn(name, seeds)
        }
        self.wants: dict[tuple[str, int], list[Any]] = {}
        self.known: dict[str, list[KnownMistake]] = {}
        self._judged: dict[tuple[str, int, bytes], Outcome] = {}

    def _drawn(self, name: str, seeds: int) -> range:
        """The public seed first, then others; few of them where an exercise trains."""
        count = min(seeds, TRAINING_SEEDS) if self.registered[name].trains else seeds
        return range(PUBLIC_SEED, PUBLIC_SEED + count)

    def _seeds(self, answer: Answer, name: str) -> range:
        return self._drawn(name, answer.seeds if answer.target in (None, name) else 1)

    def gather(self, answers: Collection[Answer], progress: Progress | None = None) -> None:
        """Run answers, two at a time; afterwards each holds its records."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            futures = {pool.submit(self._gather, answer): answer for answer in answers}
            for done, future in enumerate(as_completed(futures), start=1):
                future.result()
                if progress is not None:
                    progress(done, len(futures), f"{self.lab.name}: {futures[future].label}")

    def _gather(self, answer: Answer) -> None:
        asked = [(name, seed) for name in answer.names for seed in self._seeds(answer, name)]
        while asked:
            asked = self._ask(answer, asked)

    def _ask(self, answer: Answer, asked: list[tuple[str, int]]) -> list[tuple[str, int]]:
        """Ask one process as much as it answers; returns what is left for the next one after it died."""
        try:
            with answer.start(answer.sources) as worker:
                answer.error = answer.error or worker.error
                for index, (name, seed) in enumerate(asked):
                    try:
                        answer.records[name, seed] = self._collect(worker, answer, name, seed)
                    except ProbeDied as died:
                        answer.records[name, seed] = died
                        return [pair for pair in asked[index + 1 :] if pair[0] != name]
        except ProbeDied as died:
            answer.error = f"{died.what}: {died.why}"
        return []

    def _collect(self, worker: ProbeProcess, answer: Answer, name: str, seed: int) -> Records:
        exercise = self.registered[name]
        used = exercise.uses if answer.target is not None else ()
        references = [(f"solve {other}", self.lab.solution_cell(other)) for other in used]
        return worker.collect(name, self.cases[name, seed], timeout_s=exercise.timeout_s, references=references)

    def want(self, reference: Answer) -> None:
        """Take what an answer gave as what is wanted; EdlError where it gave no value, or `compare` fails on it."""
        if reference.error:
            raise EdlError(f"{self.lab.name}: the solution does not run", why=reference.error, next="fix this cell")
        for (name, seed), records in reference.records.items():
            found = self.wants[name, seed] = values(_given(records), exercise=name, lab=self.lab.name)
            if seed == PUBLIC_SEED:
                twice = plain_data.plain_copy(found)
                check_compares(self.lab, self.registered[name], self.cases[name, seed], _given(records), twice)

    def learn(self, mistakes: Mapping[str, Answer]) -> None:
        """Recognize the mistakes that have a `next` by the records of their answers (by label), as goldens do."""
        for one in self.lab.mistakes:
            records = mistakes[one.label].records.get((one.exercise, PUBLIC_SEED)) if one.label in mistakes else None
            if one.next and isinstance(records, list):
                entry = KnownMistake(one.told, one.why, one.next, digests(records))
                self.known.setdefault(one.exercise, []).append(entry)

    def outcome(self, answer: Answer, name: str, seed: int = PUBLIC_SEED) -> Outcome | str:
        """How an answer scored an exercise under a seed; text when it never answered."""
        records, public = (answer.records.get((name, of)) for of in (seed, PUBLIC_SEED))
        if isinstance(records, list):
            judged, known = self._judge(name, seed, records), self.known.get(name, [])
            return named(judged, known, public, self.wants[name, PUBLIC_SEED]) if isinstance(public, list) else judged
        return f"{records.what}: {records.why}" if records else answer.error or "it returned nothing"

    def _judge(self, name: str, seed: int, records: Records) -> Outcome:
        """The judge's outcome, remembered: most wrong answers leave the other exercises' evidence as it is."""
        key = (name, seed, plain_data.encode(records))
        if key not in self._judged:
            cases, wants, points = self.cases[name, seed], self.wants[name, seed], self.lab.exercise(name).weight
            self._judged[key] = judge(self.registered[name], cases, records, wants, points=points)
        return self._judged[key]

    def outcomes(self, answer: Answer, name: str) -> list[tuple[int, Outcome | str]]:
        """The outcome for each seed that an answer was asked with."""
        return [(seed, self.outcome(answer, name, seed)) for seed in self._seeds(answer, name)]


def _given(records: Records | ProbeDied) -> Records:
    if isinstance(records, list):
        return records
    raise EdlError("the solution ended the process", why=str(records), next="look for an endless loop or os._exit")
