"""The result of one submission: a value, and a file named by everything that it depends on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import msgspec

from edl_labs.checks import Outcome
from edl_labs.course.grade.files import remove_parts, write_atomically
from edl_labs.course.grade.judge_process import cut_short
from edl_labs.course.grade.plan import MarkingPlan
from edl_labs.course.grade.run_record import Incident, ProbedRun, Usage
from edl_labs.errors import UsageError
from edl_labs.values import Value

_SCHEMA = 1  # of what a result's name is made from


class UsingValue(Value):
    """A value whose `usage` lies among its other keys in JSON, where stored results have always had it."""

    def to_json(self) -> dict[str, Any]:
        """The value as plain JSON data, with its kind and schema number."""
        tree = super().to_json()
        usage = tree.pop("usage")
        return tree | usage

    @classmethod
    def from_json(cls, tree: str | Mapping[str, Any]) -> Self:
        """The value that `to_json` wrote, also before it wrote a kind; UsageError for anything else."""
        try:
            flat = dict(json.loads(tree) if isinstance(tree, str) else tree)
        except (ValueError, TypeError):
            return super().from_json(tree)  # which says what is wrong with it
        return super().from_json({"kind": cls.kind_name(), "usage": flat, **flat})


@dataclass(frozen=True, repr=False)
class Result(UsingValue):
    """What a submission came to. `points` has every exercise that the judge marks; prose is marked by a person.

    `level` is how well the code was fenced in; `answers` the SHA-256 of each prose answer.
    """

    key: str
    assignment: str
    level: str
    outcomes: tuple[Outcome, ...]
    notes: tuple[str, ...] = ()
    events: tuple[Incident, ...] = ()
    flags: tuple[str, ...] = ()
    answers: tuple[tuple[str, str], ...] = ()
    untouched: tuple[str, ...] = ()
    """nbgrader's ids of the cells that are unchanged since the release."""
    usage: Usage = field(default_factory=Usage)
    draw: int = 0
    """Which of the class's draws of secret cases counted."""

    @property
    def points(self) -> dict[str, float]:
        """Points by exercise."""
        return {outcome.name: outcome.points for outcome in self.outcomes}


def make_result(
    key: str, assignment: str, level: str, *, plan: MarkingPlan, run: ProbedRun, trusted: bool, draw: int = 0
) -> Result:
    """The result of a run."""
    outcomes = tuple(cut_short(run.outcomes[name]) for name in sorted(run.outcomes))
    answers = tuple((name, hashlib.sha256(text.encode()).hexdigest()) for name, text in plan.answers().items())
    return Result(
        key=key,
        assignment=assignment,
        level=level,
        outcomes=outcomes,
        notes=tuple(note.text for note in plan.notes),
        events=tuple(run.events),
        flags=_flags(plan, run, trusted=trusted),
        answers=answers,
        untouched=plan.untouched(),
        usage=run.usage,
        draw=draw,
    )


def _flags(plan: MarkingPlan, run: ProbedRun, *, trusted: bool) -> tuple[str, ...]:
    kinds = {event.kind for event in run.events}
    found = {
        "timeout": "timeout" in kinds,
        "killed": "killed" in kinds,
        "tampered": plan.tampered,
        "mended": any(note.mends and not note.tampered for note in plan.notes),
        "trusting marks": any(o.trusting and o.points > 0 for o in run.outcomes.values()),
        "unfenced": not trusted,
    }
    return tuple(flag for flag, is_so in found.items() if is_so)


class ResultStore:
    """Results of an assignment in a folder, one file each, and the graded notebooks next to them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def remove_parts(self) -> None:
        """Remove files of writers that were killed; only for a run that grades alone: others may be writing."""
        remove_parts(self.folder)

    def load(self, key: str) -> Result | None:
        """The stored result, if it is whole."""
        try:
            result = Result.from_json(self._path(key).read_text(encoding="utf-8"))
        except (OSError, ValueError, UsageError):
            return None
        return result if result.key == key and self.notebook_path(key).is_file() else None

    def save(self, result: Result, notebook: Mapping[str, Any]) -> None:
        """Keep a result. Its notebook goes first: a result without one does not count."""
        text = msgspec.json.format(msgspec.json.encode(notebook, order="sorted"), indent=1)
        write_atomically(self.notebook_path(result.key), text + b"\n")
        write_atomically(self._path(result.key), json.dumps(result.to_json(), sort_keys=True).encode())

    def notebook_path(self, key: str) -> Path:
        """Where the graded notebook of a result lies."""
        return self.folder / f"{key}.ipynb"

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.json"


def result_key(submission_digest: str, assignment_digest: str, *, seed: int, level: str, limits: str) -> str:
    """The name of a result: equal exactly when grading again could only repeat it."""
    text = json.dumps([_SCHEMA, submission_digest, assignment_digest, seed, level, limits])
    return hashlib.sha256(text.encode()).hexdigest()[:40]
