"""What the build publishes about a lab: points, hints, goldens. All a student's `check` needs."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from edl_labs.checks import plain_data
from edl_labs.checks._exercise import RegisteredExercise
from edl_labs.checks.known_mistakes import KnownMistake
from edl_labs.checks.lab_exercises import built_labs, folder_of, load_lab
from edl_labs.checks.spec import Case, cases_of
from edl_labs.errors import UsageError

SCHEMA = 2
NOTEBOOK_LAB = [""]
"""The lab of this notebook, as named by `Progress("lab")` or found by its latest check."""


@dataclass(frozen=True)
class ExerciseFacts:
    """One exercise as students may know it."""

    name: str
    kind: str
    points: float
    hints: tuple[str, ...]
    uses: tuple[str, ...] = ()
    trusting: bool = False
    optional: bool = False
    """Whether it is practice, which carries no points."""
    minutes: float = 0.0
    """How many of the lab's minutes it takes, including the reading before it; 0 if unknown."""
    pause_after: bool = False
    """Whether a sitting ends after it."""


@dataclass(frozen=True)
class LabFacts:
    """One lab as students may know it. `locked` maps a locked cell's id to the SHA-256 of its source."""

    lab: str
    title: str
    minutes: int
    exercises: tuple[ExerciseFacts, ...]
    goldens: dict[str, Any]
    locked: dict[str, str]
    mistakes: dict[str, Any] = field(default_factory=dict)

    @property
    def points(self) -> float:
        """The points of the whole lab."""
        return sum(e.points for e in self.exercises)

    @property
    def minutes_said(self) -> str:
        """How long it takes, and in how many sittings."""
        return minutes_said(self.minutes, 1 + sum(e.pause_after for e in self.exercises))

    def exercise(self, name: str) -> ExerciseFacts:
        """The facts of one exercise; UsageError when the lab has none of that name."""
        for found in self.exercises:
            if found.name == name:
                return found
        raise UsageError(f"{self.lab} has no exercise called {name!r}", next="run `edl-labs build`")

    def public(self, name: str) -> tuple[RegisteredExercise, list[Case], list[Any]]:
        """An exercise with its public cases and the reference's values for them."""
        cases, wants = self.golden(name)
        return next(one for one in load_lab(self.lab) if one.name == name), cases, wants

    def golden(self, name: str) -> tuple[list[Case], list[Any]]:
        """The public cases of an exercise and the reference's values for them."""
        found = self.goldens.get(name)
        if found is None:
            raise UsageError(
                f"there are no golden values for {name!r}",
                why="the lab has not been built",
                next="run `edl-labs build`",
            )
        return cases_of(plain_data.from_json(found["cases"])), plain_data.from_json(found["wants"])

    def known_mistakes(self, name: str) -> list[KnownMistake]:
        """The mistakes of an exercise that are recognized by their answers to its public cases."""
        return [KnownMistake.from_json(one) for one in self.mistakes.get(name, ())]


def minutes_said(minutes: int, sittings: int) -> str:
    """A lab's minutes as tables show them.

    >>> minutes_said(150, 1), minutes_said(280, 2)
    ('150', '280, in 2 sittings')
    """
    return f"{minutes}, in {sittings} sittings" if sittings > 1 else str(minutes)


def facts_path(lab: str) -> Path:
    """Where the build writes a lab's facts."""
    return folder_of(lab) / "goldens" / f"{lab}.json"


def facts(lab: str) -> LabFacts:
    """The public facts of `lab`; UsageError when it has not been built."""
    path = facts_path(lab)
    if not path.is_file():
        raise UsageError(
            f"there are no public facts for {lab!r}", why="the lab has not been built", next="run `edl-labs build`"
        )
    return _read(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=32)
def _read(path: Path, _changed: int) -> LabFacts:
    data = json.loads(path.read_text(encoding="utf-8"))
    if data.get("schema") != SCHEMA:
        raise UsageError(f"{path.name} has schema {data.get('schema')}, not {SCHEMA}", next="run `edl-labs build`")
    exercises = tuple(
        ExerciseFacts(
            name=e["name"],
            kind=e["kind"],
            points=e["points"],
            hints=tuple(e["hints"]),
            uses=tuple(e["uses"]),
            trusting=e["trusting"],
            optional=e.get("optional", False),
            minutes=e.get("minutes", 0.0),
            pause_after=e.get("pause_after", False),
        )
        for e in data["exercises"]
    )
    return LabFacts(
        data["lab"],
        data["title"],
        data["minutes"],
        exercises,
        data["goldens"],
        data["locked"],
        data.get("mistakes", {}),
    )


def lab_of(name: str, *, verb: str = "check") -> LabFacts:
    """The facts of the lab that has the exercise `name`; UsageError with the nearest name when none has.

    No other lab is looked at where the one that the notebook says it is has it. When no name is near, the error lists
    the exercises of that lab. `verb` is what was called.
    """
    import difflib

    recent = NOTEBOOK_LAB[0]
    if recent and facts_path(recent).is_file() and any(e.name == name for e in facts(recent).exercises):
        return facts(recent)
    names: list[str] = []
    recent_names: list[str] = []
    for path in built_labs().values():
        found = _read(path, path.stat().st_mtime_ns)
        names += [e.name for e in found.exercises]
        recent_names = [e.name for e in found.exercises] if found.lab == recent else recent_names
        if any(e.name == name for e in found.exercises):
            return found
    near = difflib.get_close_matches(str(name), recent_names, n=1) or difflib.get_close_matches(str(name), names, n=1)
    raise UsageError(
        f"there is no exercise called {name!r}" if name else "the name of an exercise is missing",
        why=""
        if near
        else f"the exercises of {recent} are {', '.join(recent_names)}"
        if recent_names
        else "each exercise is checked under its own name",
        next=f'did you mean {verb}("{near[0]}")?' if near else _how_to_name(names),
    )


def _how_to_name(names: list[str]) -> str:
    if not names:
        return "run `edl-labs build`: no lab has been built yet"
    return "use the name in the cell's title; Progress(\"...\") with the notebook's name lists all exercises of a lab"
