"""Proves that the declared cells are enough: every answer gets the same result after all cells of the lab."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from edl_labs.checks import Outcome
from edl_labs.checks.probe_process import Cell, ProbeDied, ProbeProcess
from edl_labs.course.course_folder import Course
from edl_labs.course.lab.answer_runs import Answer, AnswerRuns, Progress

ALL_CELLS_S = 900.0  # as grading gives a notebook


class DeclaredProof:
    """Answers that were gathered after declared cells, and the same answers after demonstrations too.

    First they are forks of one process that ran all cells. A fork lacks what its origin cannot hand on, such as the
    threads of autograd; so an answer that comes to something else there has the cells run again in its own process.
    """

    def __init__(self, course: Course, runs: AnswerRuns, solution: Answer, wrong: Mapping[str, Answer]) -> None:
        self.course, self.runs = course, runs
        self.declared = {"solution": solution, **wrong}
        self.after_all: dict[str, Answer] = {}
        self.problem = ""
        """The reason why the notebook itself does not run."""

    def run(self, progress: Progress | None = None) -> None:
        """Run the notebook, and the answers after it."""
        try:
            with self._after_all_cells([]) as notebook:
                self.problem = notebook.error or ""
                if not self.problem:
                    self._gather_forks(notebook, progress)
        except ProbeDied as died:
            self.problem = f"{died.what}: {died.why}"
        alone = {label: self._alone(label, names) for label, names in self._differing().items()}
        self.runs.gather(alone.values(), progress)
        self.after_all |= alone

    def difference(self, name: str) -> str:
        """The first answer of an exercise that comes to something else after all cells; empty if there is none."""
        if self.problem:
            return f"the notebook does not run from top to bottom: {self.problem}"
        for label in self.answers(name):
            one, other = self._told(label, name)
            if one != other:
                why = f"{one} with the declared cells, {other} with all cells"
                return f"{label}: {why}: give the role `given` to the cell that makes the difference"
        return ""

    def answers(self, name: str) -> list[str]:
        """The labels of an exercise's answers: the solution and its wrong answers."""
        return [label for label, answer in self.declared.items() if answer.target in (None, name)]

    def _after_all_cells(self, sources: Iterable[Cell]) -> ProbeProcess:
        cells = [*self.runs.lab.all_cells(), *sources]
        return ProbeProcess(cells, exercises_folder=self.course.exercises, timeout_s=ALL_CELLS_S)

    def _gather_forks(self, notebook: ProbeProcess, progress: Progress | None) -> None:
        for label, answer in self.declared.items():
            names = self.runs.registered if answer.target is None else (answer.target,)
            sources = [] if answer.target is None else answer.sources  # the notebook holds the solution
            self.after_all[label] = Answer(f"{label}, all cells", sources, notebook.fork, names, 1, answer.target)
        self.runs.gather(self.after_all.values(), progress)

    def _differing(self) -> dict[str, list[str]]:
        """Exercises by the label of an answer that comes to something else in a fork."""
        found: dict[str, list[str]] = {}
        for label, answer in self.after_all.items():
            for name in answer.names:
                one, other = self._told(label, name)
                if one != other:
                    found.setdefault(label, []).append(name)
        return found

    def _told(self, label: str, name: str) -> Iterator[str]:
        """What a student is told of an answer after the declared cells, and after all."""
        return (_line(self.runs.outcome(run[label], name)) for run in (self.declared, self.after_all))

    def _alone(self, label: str, names: list[str]) -> Answer:
        forked = self.after_all[label]
        kept = {key: records for key, records in forked.records.items() if key[0] not in names}
        return replace(forked, start=self._after_all_cells, names=names, records=kept, error=None)


def _line(outcome: Outcome | str) -> str:
    """What a student is told of a result, in a line."""
    return outcome if isinstance(outcome, str) else f"{outcome.points:g} points ({outcome.what or outcome.state})"
