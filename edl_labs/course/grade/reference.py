"""The solution's evidence for a class's secret cases: once per seed, in a sandbox of its own."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from edl_labs.checks import Case, RegisteredExercise, plain_data
from edl_labs.checks.spec import cases_of, plain_cases
from edl_labs.course.assignment import Assignment
from edl_labs.course.grade.declared_cells import declared_plan
from edl_labs.course.grade.files import write_atomically
from edl_labs.course.grade.plan import MarkingPlan, solution_plan
from edl_labs.course.grade.probe_run import CheckPoint, PlanRunner
from edl_labs.course.grade.run_record import ProbedRun
from edl_labs.course.grade.secret_cases import SecretCases
from edl_labs.errors import EdlError

Draw = Callable[[RegisteredExercise, int], bytes]
"""The cases that an exercise draws from a seed, encoded."""


def drawn_here(exercise: RegisteredExercise, seed: int) -> bytes:
    """Cases drawn in this process."""
    return plain_data.encode(plain_cases(exercise.draw_cases(seed)))


def reference(
    runner: PlanRunner,
    *,
    seed: int,
    folder: Path,
    on_gpu: bool = False,
    draw: Draw = drawn_here,
    turn: AbstractContextManager[Any] | None = None,
) -> dict[str, SecretCases]:
    """The cases and wanted evidence of each exercise, from `folder` where they were worked out before.

    The solution runs while `turn` is held.
    """
    where = f"{_versions()}{'/gpu' if on_gpu else ''}/halves"
    key = hashlib.sha256(f"{runner.assignment.digest}/{seed}/{where}".encode()).hexdigest()[:32]
    path = folder / f"{key}.bin"
    if path.is_file():
        return _unpacked(path.read_bytes())
    cases = {e.name: draw(e, seed) for e in runner.assignment.exercises}
    drawn = {name: cases_of(plain_data.decode(encoded)) for name, encoded in cases.items()}
    with turn or nullcontext():
        wants = _wanted(replace(runner, limits=replace(runner.limits, deaths=0)), drawn)
    found = {name: SecretCases(cases[name], plain_data.encode(wants[name])) for name in drawn}
    write_atomically(path, _packed(found), mode=0o600)
    return found


def _packed(secrets: Mapping[str, SecretCases]) -> bytes:
    """Each exercise's cases and evidence as they travel, behind a list of their names and lengths."""
    head = plain_data.encode([[name, len(one.cases), len(one.wants)] for name, one in secrets.items()])
    parts = (part for one in secrets.values() for part in (one.cases, one.wants))
    return b"".join([len(head).to_bytes(8, "little"), head, *parts])


def _unpacked(data: bytes) -> dict[str, SecretCases]:
    at = 8 + int.from_bytes(data[:8], "little")
    found = {}
    for name, cases, wants in plain_data.decode(data[8:at]):
        found[name] = SecretCases(data[at : at + cases], data[at + cases : at + cases + wants])
        at += cases + wants
    return found


@dataclass(frozen=True)
class _Known:
    """An assignment by its digest: two with one digest have one solution."""

    digest: str
    assignment: Assignment = field(compare=False)


@lru_cache(maxsize=4)  # labs that one process grades one after the other; a class's draws ask for the same one
def _solution(known: _Known) -> tuple[MarkingPlan, MarkingPlan]:
    """The solution's plan with all cells, and with those that the lab declares."""
    plan = solution_plan(known.assignment)
    return plan, declared_plan(plan)


def declared_solution(assignment: Assignment) -> MarkingPlan:
    """The solution's notebook without demonstrations."""
    return _solution(_Known(assignment.digest, assignment))[1]


def _wanted(runner: PlanRunner, drawn: dict[str, list[Case]]) -> dict[str, list[Any]]:
    """The evidence that the solution gives: of what the lab declares, else of all its cells."""
    every, declared = _solution(_Known(runner.assignment.digest, runner.assignment))
    try:
        return _evidence(runner, drawn, declared)
    except EdlError:
        if declared is every:
            raise
        return _evidence(runner, drawn, every)


def _evidence(runner: PlanRunner, drawn: dict[str, list[Case]], plan: MarkingPlan) -> dict[str, list[Any]]:
    collector = _Collector(runner, drawn)
    run = runner.probe_run(plan, collector)
    return {name: _values(runner.assignment.name, name, collector.records.get(name, []), run) for name in drawn}


@dataclass(frozen=True)
class _Collector:
    """The sink that keeps evidence, and judges nothing."""

    runner: PlanRunner
    drawn: dict[str, list[Case]]
    records: dict[str, Any] = field(default_factory=dict)

    def take(self, exercise: RegisteredExercise, check: CheckPoint) -> None:
        """Keep the records of all cases."""
        answer = check.ask(self.runner.request(exercise, self.drawn[exercise.name]))
        self.records[exercise.name] = plain_data.decode(answer.data)

    def miss(self, exercise: RegisteredExercise, *, what: str, why: str) -> None:
        """The run's events say why."""


def _values(lab: str, name: str, records: list[Any], run: ProbedRun) -> list[Any]:
    if records and all(isinstance(record, dict) and "value" in record for record in records):
        return [record["value"] for record in records]
    bad = next((r for r in records if not (isinstance(r, dict) and "value" in r)), None)
    why = str(bad) if bad is not None else "; ".join(f"{e.where}: {e.kind} {e.why}" for e in run.events)
    raise EdlError(
        f"the solution of {lab} returned no evidence for {name}",
        why=why[:500] or "the exercise's probe was never reached",
        next=f"run edl-labs test {lab}",
    )


def _versions() -> str:
    found = [sys.version, os.uname().machine]
    for package in ("torch", "numpy", "edl-labs"):
        try:
            found.append(version(package))
        except PackageNotFoundError:
            found.append("none")
    return "/".join(found)
