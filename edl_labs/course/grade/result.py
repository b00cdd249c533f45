"""The result of one submission: a value, and a file named by everything that it depends on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

from edl_labs.checks import Outcome
from edl_labs.course.grade.files import remove_parts, write_atomically
from edl_labs.course.grade.graded_run import Event, Run
from edl_labs.course.grade.judge_process import plain_outcome
from edl_labs.course.grade.plan import Plan
from edl_labs.course.grade.timed import INCONCLUSIVE

SCHEMA = 1


@dataclass(frozen=True)
class Result:
    """What a submission came to. `points` has every exercise that the judge marks; prose is marked by a person.

    `level` is how well the code was fenced in; `answers` the SHA-256 of each prose answer.
    """

    key: str
    assignment: str
    level: str
    outcomes: tuple[Outcome, ...]
    notes: tuple[str, ...] = ()
    events: tuple[Event, ...] = ()
    flags: tuple[str, ...] = ()
    answers: tuple[tuple[str, str], ...] = ()
    untouched: tuple[str, ...] = ()
    """nbgrader's ids of the cells that are as they were released."""
    own_s: float = 0.0
    wall_s: float = 0.0
    cpu_s: float = 0.0
    own_cpu_s: float = 0.0
    peak_bytes: int = 0

    @property
    def undecided(self) -> frozenset[str]:
        """Exercises whose mark only a person can give: never a zero."""
        return frozenset(outcome.name for outcome in self.outcomes if outcome.state == INCONCLUSIVE)

    @property
    def points(self) -> dict[str, float]:
        """Points by exercise."""
        return {outcome.name: outcome.points for outcome in self.outcomes}

    def to_json(self) -> dict[str, Any]:
        """The result as plain JSON, with a schema number."""
        fields = asdict(self)
        fields["outcomes"] = [plain_outcome(outcome) for outcome in self.outcomes]
        return {"schema": SCHEMA, **fields}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Result:
        """The result that `to_json` wrote; ValueError for anything else."""
        if data.get("schema") != SCHEMA:
            raise ValueError(f"a result of schema {data.get('schema')}")
        fields = {key: value for key, value in data.items() if key != "schema"}
        fields["outcomes"] = tuple(Outcome(**outcome) for outcome in fields["outcomes"])
        fields["events"] = tuple(Event(**event) for event in fields["events"])
        for key in ("notes", "flags", "untouched"):
            fields[key] = tuple(fields[key])
        fields["answers"] = tuple((name, digest) for name, digest in fields["answers"])
        return Result(**fields)


def make_result(key: str, assignment: str, level: str, *, plan: Plan, run: Run, wall_s: float, trusted: bool) -> Result:
    """The result of a run."""
    outcomes = tuple(run.outcomes[name] for name in sorted(run.outcomes))
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
        own_s=run.own_s,
        wall_s=wall_s,
        cpu_s=run.cpu_s,
        own_cpu_s=run.own_cpu_s,
        peak_bytes=run.peak_bytes,
    )


def _flags(plan: Plan, run: Run, *, trusted: bool) -> tuple[str, ...]:
    kinds = {event.kind for event in run.events}
    found = {
        "timeout": "timeout" in kinds,
        "killed": "killed" in kinds,
        "tampered": plan.tampered,
        "mended": any(not note.tampered for note in plan.notes),
        "trusting marks": any(o.trusting and o.points > 0 for o in run.outcomes.values()),
        "inconclusive": any(o.state == INCONCLUSIVE for o in run.outcomes.values()),
        "unfenced": not trusted,
    }
    return tuple(flag for flag, is_so in found.items() if is_so)


class ResultStore:
    """Results of an assignment in a folder, one file each, and the graded notebooks beside them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        remove_parts(folder)

    def load(self, key: str) -> Result | None:
        """The stored result, if it is whole."""
        try:
            result = Result.from_json(json.loads(self._path(key).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError, KeyError):
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
    text = json.dumps([SCHEMA, submission_digest, assignment_digest, seed, level, limits])
    return hashlib.sha256(text.encode()).hexdigest()[:40]
