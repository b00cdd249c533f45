"""`edl-labs check FILE`: what a student's notebook would score, run from a fresh kernel; the file is only read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from edl_labs.checks.lab_facts import LabFacts, facts
from edl_labs.course.run.integrity import tampering
from edl_labs.course.run.notebook_file import check_name, explain_name, read_notebook
from edl_labs.course.run.process import Finished, Job, run
from edl_labs.course.run.run_report import ExerciseResult, RunFailure, RunLimits
from edl_labs.course.run.verdict import Expected, crashes, exercise_results
from edl_labs.errors import EdlError, UsageError
from edl_labs.values import Value

CHECK_LIMITS = RunLimits(cell_s=300.0, notebook_s=1800.0)


@dataclass(frozen=True, repr=False)
class CheckReport(Value):
    """What a notebook's public checks say when it runs from its first cell to its last.

    `exit_code`: 0 all passed, 1 something is not right or not attempted, 4 it crashed or a cell never ran, 5 a locked
    cell is not what was released.
    """

    DERIVED = ("exit_code", "points", "max_points", "by_hand_points")
    ROWS = "exercises"

    file: str
    lab: str
    title: str
    exercises: tuple[ExerciseResult, ...]
    failures: tuple[RunFailure, ...]
    seconds: float

    @property
    def points(self) -> float:
        """Points that the checks gave."""
        return sum(e.points for e in self.exercises if not e.by_hand)

    @property
    def max_points(self) -> float:
        """Points that checks can give; what a person marks is not in it."""
        return sum(e.max_points for e in self.exercises if not e.by_hand)

    @property
    def by_hand_points(self) -> float:
        """Points that a person gives."""
        return sum(e.max_points for e in self.exercises if e.by_hand)

    @property
    def exit_code(self) -> int:
        """0, 1, 4 or 5, the gravest first."""
        worst = max((f.exit_code for f in self.failures), default=0)
        return worst or int(not all(e.full for e in self.exercises))

    def rows(self) -> list[dict[str, Any]]:
        """One line an exercise: name, state, points, and what to know about it."""
        return [asdict(exercise) for exercise in self.exercises]


def check_notebook(
    path: Path | str,
    *,
    limits: RunLimits = CHECK_LIMITS,
    progress: Callable[[int, int, str], None] | None = None,
) -> CheckReport:
    """Runs a student's notebook in a fresh kernel beside a copy of its folder and reads what its checks say.

    UsageError when it is not a notebook, or not one of a lab that this edl_labs knows. Cells after one that raises
    still run, so that each exercise gets its points.
    """
    path = Path(path)
    notebook = read_notebook(path)
    lab = lab_of_notebook(notebook, path)
    changed = tampering(notebook, lab.locked)
    finished = _run(path, limits, progress)
    exercises = exercise_results(finished.cells, [Expected(e.name, e.kind, float(e.points)) for e in lab.exercises])
    return CheckReport(
        file=path.name,
        lab=lab.lab,
        title=lab.title,
        exercises=tuple(_unless_changed(exercise, changed) for exercise in exercises),
        failures=(*changed.values(), *_crashes(finished, exercises, limits)),
        seconds=finished.seconds,
    )


def lab_of_notebook(notebook: Any, path: Path) -> LabFacts:
    """The lab that a notebook is of, however its file is called; UsageError when no lab known here has it."""
    known = {f.lab: f for f in _known()}
    names = {name for cell in notebook.cells if (name := check_name(cell) or explain_name(cell))}
    shared = {lab: len(names & {e.name for e in f.exercises}) for lab, f in known.items()}
    best = max(shared, key=lambda lab: shared[lab], default="")
    if shared.get(best):
        return known[best]
    said = notebook.metadata.get("edl_labs")
    named = said.get("lab") if isinstance(said, dict) else None
    for candidate in (named, path.stem):
        if isinstance(candidate, str) and candidate in known:
            return known[candidate]
    raise UsageError(
        f"{path.name} does not belong to a lab that is known here",
        why=f"it has no check of {', '.join(known) or 'any lab'}",
        next="name a lab's notebook; a newer lab needs a newer edl_labs: pip install --upgrade edl-labs",
    )


def _known() -> list[LabFacts]:
    from edl_labs.checks.lab_exercises import exercises_folder

    found = []
    for file in sorted((exercises_folder() / "goldens").glob("*.json")):
        try:
            found.append(facts(file.stem))
        except (EdlError, ValueError, KeyError, TypeError) as error:
            raise UsageError(f"what edl_labs knows of {file.stem} is broken", why=str(error), next=_AGAIN) from error
    return found


_AGAIN = "install edl_labs again; in a course: edl-labs build"


def _run(path: Path, limits: RunLimits, progress: Callable[[int, int, str], None] | None) -> Finished:
    if progress:
        progress(0, 1, "starting a kernel")

    def on_cell(_cell: Any, done: int, total: int) -> None:
        if progress:
            progress(done, total, f"{done} of {total} cells")

    return run(Job(path, "patient", limits=limits), on_cell=on_cell)


def _crashes(finished: Finished, exercises: tuple[ExerciseResult, ...], limits: RunLimits) -> tuple[RunFailure, ...]:
    """Why the notebook does not run to its end. A stub that says it is not written yet is not a crash."""
    if any(e.state == "not attempted" for e in exercises):
        cells = (replace(c, state="ran") if c.error_name == "NotImplementedError" else c for c in finished.cells)
        finished = replace(finished, cells=tuple(cells))
    return crashes(finished, limits=limits)


def _unless_changed(exercise: ExerciseResult, changed: Mapping[str, RunFailure]) -> ExerciseResult:
    failure = changed.get("check-" + exercise.name.replace("_", "-"))
    if failure is None:
        return exercise
    return replace(exercise, state="tampered", points=0.0, what=failure.what, why=failure.why, next=failure.next)
