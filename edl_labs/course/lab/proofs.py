"""The results of proving a lab: for each mistake, for each exercise, and for the whole lab."""

from __future__ import annotations

from dataclasses import dataclass

from edl_labs.values import Value


@dataclass(frozen=True)
class Found:
    """One thing that was proved, or not: `text` says what was seen."""

    ok: bool
    text: str


NOT_TRIED = Found(True, "not tested in a quick run")


@dataclass(frozen=True)
class MistakeProof:
    """One known mistake: whether it lost only its exercise, and gave the author's sentence."""

    name: str
    where: str
    ok: bool
    text: str
    told: str
    said: str
    why: str = ""
    next: str = ""


@dataclass(frozen=True, repr=False)
class ExerciseProof(Value):
    """One exercise: stub, solution, wrong answers, hints, hostile submissions."""

    DERIVED = ("ok", "problems")

    name: str
    kind: str
    points: float
    stub: Found
    solution: Found
    mistakes: tuple[MistakeProof, ...]
    hints: Found
    hostile: Found
    library: Found = Found(True, "")
    declared: Found = Found(True, "")
    """Whether the cells that grading runs give the same evidence as all cells."""
    pairs: tuple[str, ...] = ()
    """Pairs of wrong answers of which one gets the other's message."""

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
        found += [f"{self.name}: {one.where}: {one.text}" for one in self.mistakes if not one.ok]
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
