"""The secret cases of a class and the solution's evidence for them: once per seed, in a sandbox of its own."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edl_labs.checks import Exercise, Outcome, plain_data
from edl_labs.course.grade.assignment import Assignment
from edl_labs.course.grade.files import write_atomically
from edl_labs.course.grade.graded_run import Run, Secret
from edl_labs.course.grade.judge_process import Judge
from edl_labs.course.grade.plan import Plan, PlannedCell, solution_plan
from edl_labs.course.grade.replay import Replay
from edl_labs.course.grade.session import Session
from edl_labs.course.sandbox.limits import DEFAULTS, Limits
from edl_labs.errors import EdlError

if TYPE_CHECKING:
    from edl_labs.course.sandbox.kernel.client import SandboxKernel

# What the build calls cells without a role: definitions that are given, plots and measurements.
_NO_ROLE = "c-"
_DEFINITIONS = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom),
    *(ast.Assign, ast.AnnAssign, ast.AugAssign),
)


def class_seed(folder: Path, *, seed: int | None = None) -> int:
    """The seed of the secret cases: the given one, else the recorded one, else a new one. It is recorded."""
    path = folder / "seed.json"
    if seed is None:
        if path.is_file():
            return int(json.loads(path.read_text(encoding="utf-8"))["seed"])
        seed = secrets.randbelow(1 << 48)
    write_atomically(path, json.dumps({"seed": seed}).encode(), mode=0o600)
    return seed


class Secrets(Mapping[str, Secret]):
    """What `compute` returns, worked out in a thread of its own; whoever looks a name up waits for it.

    Looking up raises what `compute` raised.
    """

    def __init__(self, compute: Callable[[], Mapping[str, Secret]]) -> None:
        self._future: Future[Mapping[str, Secret]] = Future()
        threading.Thread(target=self._run, args=(compute,), daemon=True).start()

    def __getitem__(self, name: str) -> Secret:
        return self.wait()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.wait())

    def __len__(self) -> int:
        return len(self.wait())

    @property
    def failed(self) -> bool:
        """Whether there is nothing to wait for any more: `compute` raised."""
        return self._future.done() and self._future.exception() is not None

    def wait(self) -> Mapping[str, Secret]:
        """All of them."""
        return self._future.result()

    def _run(self, compute: Callable[[], Mapping[str, Secret]]) -> None:
        try:
            self._future.set_result(compute())
        except BaseException as error:
            self._future.set_exception(error)


def reference(
    assignment: Assignment,
    *,
    seed: int,
    folder: Path,
    new_kernel: Callable[[], SandboxKernel],
    limits: Limits = DEFAULTS,
    on_gpu: bool = False,
) -> dict[str, Secret]:
    """The cases and wanted evidence of each exercise, from `folder` where they were worked out before."""
    where = f"{_versions()}{'/gpu' if on_gpu else ''}"
    key = hashlib.sha256(f"{assignment.digest}/{seed}/{where}".encode()).hexdigest()[:32]
    path = folder / f"{key}.bin"
    if path.is_file():
        stored = plain_data.decode(path.read_bytes(), max_bytes=1 << 30)
        return {name: Secret(*map(plain_data.encode, (s["cases"], s["wants"]))) for name, s in stored.items()}
    drawn = {e.name: e.draw_cases(seed) for e in assignment.exercises}
    wants = _wanted(assignment, drawn, new_kernel, limits)
    both = {name: {"cases": drawn[name], "wants": wants[name]} for name in drawn}
    write_atomically(path, plain_data.encode(both, max_bytes=1 << 30), mode=0o600)
    return {name: Secret(*map(plain_data.encode, (s["cases"], s["wants"]))) for name, s in both.items()}


def _wanted(
    assignment: Assignment, drawn: dict[str, list[Any]], new_kernel: Callable[[], SandboxKernel], limits: Limits
) -> dict[str, list[Any]]:
    """The evidence that the solution gives: of its definitions alone, else with its plots and measurements run too."""
    cases = {name: Secret(plain_data.encode(found), b"") for name, found in drawn.items()}
    whole = solution_plan(assignment)
    lean = replace(whole, cells=tuple(replace(cell, runs=cell.runs and not _shows(cell)) for cell in whole.cells))
    try:
        return _evidence(assignment, cases, new_kernel, lean, limits)
    except EdlError:
        return _evidence(assignment, cases, new_kernel, whole, limits)


def _shows(cell: PlannedCell) -> bool:
    """Whether it is a cell of a built lab that plots or measures: no role, and not definitions alone."""
    if cell.known is None or cell.known.role or not cell.known.id.startswith(_NO_ROLE):
        return False
    try:
        body = ast.parse(cell.source).body
    except (SyntaxError, ValueError):
        return False
    return not all(isinstance(node, _DEFINITIONS) for node in body)


def _evidence(
    assignment: Assignment,
    cases: dict[str, Secret],
    new_kernel: Callable[[], SandboxKernel],
    plan: Plan,
    limits: Limits,
) -> dict[str, list[Any]]:
    with _Collector() as collector:
        session = Session(assignment, cases, new_kernel=new_kernel, judge=collector, limits=replace(limits, deaths=0))
        run = Replay(session, plan).run()
    return {e.name: _values(assignment, e.name, collector.records, run) for e in assignment.exercises}


def _values(assignment: Assignment, name: str, records: dict[str, Any], run: Run) -> list[Any]:
    found = records.get(name, [])
    if found and all(isinstance(record, dict) and "value" in record for record in found):
        return [record["value"] for record in found]
    bad = next((r for r in found if not (isinstance(r, dict) and "value" in r)), None)
    why = str(bad) if bad is not None else "; ".join(f"{e.where}: {e.kind} {e.why}" for e in run.events)
    raise EdlError(
        f"the solution of {assignment.name} gives no evidence for {name}",
        why=why[:500] or "its probe was never reached",
        next=f"edl-labs test {assignment.name}",
    )


class _Collector(Judge):
    """Takes evidence and judges nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.records: dict[str, Any] = {}

    def __enter__(self) -> _Collector:
        return self

    def judge(self, exercise: Exercise, cases: bytes, evidence: bytes, wants: bytes, *, points: float) -> Outcome:
        """Keep the records. Passed, so that nothing stands in for it."""
        self.records[exercise.name] = plain_data.decode(evidence)
        return Outcome(exercise.name, exercise.lab, "passed", points, points)


def _versions() -> str:
    import sys
    from importlib.metadata import PackageNotFoundError, version

    found = [sys.version, os.uname().machine]
    for package in ("torch", "numpy", "edl-labs"):
        try:
            found.append(version(package))
        except PackageNotFoundError:
            found.append("none")
    return "/".join(found)
