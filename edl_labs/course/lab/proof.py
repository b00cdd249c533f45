"""What proving a lab came to: for each exercise the five things of the contract, each with what was seen."""

from __future__ import annotations

from dataclasses import dataclass

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

    @property
    def ok(self) -> bool:
        """Whether the exercise is complete."""
        return not self.problems

    @property
    def problems(self) -> list[str]:
        """What is missing, one sentence each."""
        names = ("stub", "solution", "hints", "hostile", "library")
        parts = {name: getattr(self, name) for name in names}
        found = [f"{self.name}: {part}: {seen.text}" for part, seen in parts.items() if not seen.ok]
        return found + [f"{self.name}: {one.file}: {one.text}" for one in self.wrong if not one.ok]


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
