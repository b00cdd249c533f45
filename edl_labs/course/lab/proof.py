"""What proving a lab came to: for each exercise the five things of the contract, each with what was seen."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

SCHEMA = 1


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


@dataclass(frozen=True)
class ExerciseProof:
    """One exercise: stub, solution, wrong answers, hints, hostile submissions."""

    name: str
    kind: str
    points: float
    stub: Found
    solution: Found
    wrong: tuple[WrongProof, ...]
    hints: Found
    hostile: Found

    @property
    def ok(self) -> bool:
        """Whether the exercise is complete."""
        return not self.problems

    @property
    def problems(self) -> list[str]:
        """What is missing, one sentence each."""
        parts = (("stub", self.stub), ("solution", self.solution), ("hints", self.hints), ("hostile", self.hostile))
        found = [f"{self.name}: {part}: {seen.text}" for part, seen in parts if not seen.ok]
        return found + [f"{self.name}: {one.file}: {one.text}" for one in self.wrong if not one.ok]

    def to_json(self) -> dict[str, Any]:
        """The proof as plain JSON."""
        return {**asdict(self), "ok": self.ok, "problems": self.problems}


@dataclass(frozen=True)
class LabProof:
    """Every exercise of one lab. `seeds` is how many seeds the solutions were tried with."""

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

    def to_json(self) -> dict[str, Any]:
        """The proof as plain JSON, with a schema number."""
        return {
            "schema": SCHEMA,
            "lab": self.lab,
            "seeds": self.seeds,
            "ok": self.ok,
            "problems": self.problems,
            "exercises": [exercise.to_json() for exercise in self.exercises],
        }
