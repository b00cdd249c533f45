"""`edl-labs check FILE`: what a student's notebook would score, run from a fresh kernel; the file is only read."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from edl_labs import __version__
from edl_labs.checks.lab_cells import release_of
from edl_labs.checks.lab_exercises import folder_of, own_course_above
from edl_labs.checks.lab_facts import LabFacts, facts
from edl_labs.course.run.notebook_file import check_name, explain_name, grade_id, read_notebook
from edl_labs.course.run.process import Finished, Job, run
from edl_labs.course.run.run_report import ExerciseResult, RunFailure, RunLimits, WithExercises
from edl_labs.course.run.verdict import Expected, crashes, exercise_results
from edl_labs.errors import EdlError, UsageError
from edl_labs.units import counted

TAMPERED = 5  # the exit code that README promises
_FRESH = "copy this cell from a fresh copy of the lab (edl-labs start); leave your own cells as they are"
_STUB = "YOUR ANSWER HERE"  # what nbgrader puts into an answer's cell
# A cell of the labs takes up to a minute on a busy laptop. A check stops by itself before this: it and what it builds
# on have `timeout_s` each, the longest of which is 150 s alone (a test adds them up).
CHECK_LIMITS = RunLimits(cell_s=180.0, notebook_s=1800.0)


@dataclass(frozen=True, repr=False)
class CheckReport(WithExercises):
    """What a notebook's public checks say when it runs from its first cell to its last.

    `exit_code`: 0 all passed but for practice, which gives no points, 1 something is not right or not attempted, 4 it
    crashed or a cell never ran, 5 a locked cell is not what was released.
    """

    DERIVED = ("exit_code", "points", "max_points", "by_hand_points")
    ROWS = "exercises"

    file: str
    lab: str
    title: str
    exercises: tuple[ExerciseResult, ...]
    failures: tuple[RunFailure, ...]
    seconds: float
    note: str = ""
    """A note about the notebook and the library together, for example that they come from different releases."""

    @property
    def exit_code(self) -> int:
        """0, 1, 4 or 5, the gravest first."""
        worst = max((f.exit_code for f in self.failures), default=0)
        return worst or int(not all(e.full or e.is_practice for e in self.exercises))

    def rows(self) -> list[dict[str, Any]]:
        """One line an exercise: name, state, points, and what to know about it."""
        return [asdict(exercise) for exercise in self.exercises]


def check_notebook(
    path: Path | str,
    *,
    limits: RunLimits = CHECK_LIMITS,
    progress: Callable[[int, int, str], None] | None = None,
) -> CheckReport:
    """Runs a student's notebook in a fresh kernel, next to a copy of its folder, and reads what its checks say.

    UsageError when it is not a notebook, or not one of a lab that this edl_labs knows. Cells after one that raises
    still run, so that each exercise gets its points.
    """
    path = Path(path)
    notebook = read_notebook(path)
    lab = lab_of_notebook(notebook, path)
    note = _of_another_release(notebook, lab.lab)
    # A question of another release is none that somebody edited; a check is the same one call in all of them. The
    # release is what the notebook says of itself, so no check may depend on it.
    changed = {} if note else tampering(notebook, lab.locked)
    changed = {**edited_checks(notebook, [e.name for e in lab.exercises if e.kind != "explain"]), **changed}
    finished = _run(path, lab.lab, limits, progress)
    exercises = exercise_results(finished.cells, [Expected(e.name, e.kind, float(e.points)) for e in lab.exercises])
    return CheckReport(
        file=path.name,
        lab=lab.lab,
        title=lab.title,
        exercises=tuple(_answered(_unless_changed(exercise, changed), notebook) for exercise in exercises),
        failures=(*changed.values(), *_crashes(finished, exercises, limits)),
        seconds=finished.seconds,
        note=note,
    )


def _answered(exercise: ExerciseResult, notebook: Any) -> ExerciseResult:
    """An exercise that a person marks, with what to know where its cell holds no answer."""
    sources = [cell.source.strip() for cell in notebook.cells if explain_name(cell) == exercise.name]
    if not exercise.by_hand or any(source not in ("", _STUB) for source in sources):
        return exercise
    what = "its answer cell is empty" if sources else "its answer cell is missing"
    why = "a person reads this cell, and could overlook an answer elsewhere"
    return replace(exercise, what=what, why=why, next="write your answer in the cell below the question")


def _of_another_release(notebook: Any, lab: str) -> str:
    """A sentence where the notebook was released with another edl_labs than this one; empty where it was not."""
    said = notebook.metadata.get("edl_labs")
    theirs, ours = said.get("release") if isinstance(said, dict) else None, release_of(lab)
    if not isinstance(theirs, str) or not ours or theirs == ours:
        return ""
    return (
        f"this notebook is from a different release of the lab ({theirs[:8]}) than edl_labs {__version__}: {ours[:8]}. "
        "It is checked anyway, and you lose no points for this. To upgrade, run pip install --upgrade edl-labs; "
        "edl-labs start then puts the newer notebook next to yours"
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
        f"{path.name} does not belong to a lab that is installed here",
        why=f"it has no check that belongs to {', '.join(known) or 'any lab'}",
        next="pass the notebook of a lab; for a newer lab, run pip install --upgrade edl-labs",
    )


def _known() -> list[LabFacts]:
    from edl_labs.checks.lab_exercises import built_labs

    found = []
    for lab in built_labs():
        try:
            found.append(facts(lab))
        except (EdlError, ValueError, KeyError, TypeError) as error:
            raise UsageError(f"the stored facts of {lab} are damaged", why=str(error), next=_AGAIN) from error
    return found


_AGAIN = "install edl_labs again; in a course, run edl-labs build"


def _run(path: Path, lab: str, limits: RunLimits, progress: Callable[[int, int, str], None] | None) -> Finished:
    if progress:
        progress(0, 1, "starting a kernel")

    def on_cell(_cell: Any, done: int, total: int) -> None:
        if progress:
            progress(done, total, f"{done} of {total} cells")

    own = folder_of(lab)  # the copy of the notebook's folder does not lie in the course
    env = {"EDL_LABS_EXERCISES": str(own)} if own in own_course_above() else {}
    return run(Job(path, keep_going=True, limits=limits, env=env), on_cell=on_cell)


def _crashes(finished: Finished, exercises: tuple[ExerciseResult, ...], limits: RunLimits) -> tuple[RunFailure, ...]:
    """Why the notebook does not run to its end. A stub that says it is not written yet is not a crash."""
    if any(e.state == "not attempted" for e in exercises):
        cells = (replace(c, state="ran") if c.error_name == "NotImplementedError" else c for c in finished.cells)
        finished = replace(finished, cells=tuple(cells))
    return crashes(finished, limits=limits)


def _unless_changed(exercise: ExerciseResult, changed: Mapping[str, RunFailure]) -> ExerciseResult:
    failure = changed.get(_check_id(exercise.name))
    if failure is None:
        return exercise
    return replace(exercise, state="tampered", points=0.0, what=failure.what, why=failure.why, next=failure.next)


def tampering(notebook: Any, locked: Mapping[str, str]) -> dict[str, RunFailure]:
    """A failure for each locked cell that is not as released, by its id. `locked` maps ids to digests of sources.

    A cell that lost its id is known by nbgrader's name of it, and one that lost both by its text.
    """
    found = {cell_id: _wrong(cell_id, digest, _cells(notebook, cell_id, digest)) for cell_id, digest in locked.items()}
    return {cell_id: failure for cell_id, failure in found.items() if failure is not None}


def edited_checks(notebook: Any, names: Iterable[str]) -> dict[str, RunFailure]:
    """A failure, by the id of its check, for each exercise one of whose check cells is not `check("name")` alone.

    Holds for every release, and for each cell that can give points, whatever it says of itself. Comments may differ.
    """
    found = {name: _edited_check(notebook, name) for name in names}
    return {_check_id(name): failure for name, failure in found.items() if failure is not None}


def _edited_check(notebook: Any, name: str) -> RunFailure | None:
    own = [cell for cell in notebook.cells if check_name(cell) == name]
    counted_ones = [cell for cell in own if grade_id(cell)] or own[-1:]  # as the verdict counts them
    cell_id = _check_id(name)
    marked = [cell for cell in notebook.cells if cell.get("id") == cell_id or grade_id(cell) == grade_name(cell_id)]
    if all(cell.cell_type == "code" and _is_call(cell.source, name) for cell in [*counted_ones, *marked]):
        return None
    why = f'in every release, its code is only check("{name}")'
    return RunFailure("tampered", f"the locked cell {cell_id} was edited", why, _FRESH, TAMPERED)


def _check_id(name: str) -> str:
    return "check-" + name.replace("_", "-")


def _is_call(source: str, name: str) -> bool:
    try:
        return ast.dump(ast.parse(source)) == ast.dump(ast.parse(f"check({name!r})"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _cells(notebook: Any, cell_id: str, digest: str) -> list[Any]:
    graded = grade_name(cell_id)
    named = [cell for cell in notebook.cells if cell.get("id") == cell_id or grade_id(cell) == graded]
    # A student may well write the same call into a cell of their own: by its text a cell is only known at the last.
    return named or [c for c in notebook.cells if not grade_id(c) and _same(c.source, digest)][:1]


def grade_name(cell_id: str) -> str:
    """nbgrader's name of the locked cell with this id.

    >>> grade_name("check-finish-times"), grade_name("explain-why-so")
    ('check_finish_times', 'why_so_question')
    """
    role, _, name = cell_id.partition("-")
    name = name.replace("-", "_")
    return f"{name}_question" if role == "explain" else f"{role}_{name}"


def _wrong(cell_id: str, digest: str, cells: list[Any]) -> RunFailure | None:
    if not cells:
        what, why = f"the locked cell {cell_id} is missing", "it was deleted, or it lost its id and nbgrader's metadata"
    elif len(cells) > 1:
        what, why = f"the locked cell {cell_id} occurs {counted(len(cells), 'time')}", "it was copied"
    elif not _same(cells[0].source, digest):
        what, why = f"the locked cell {cell_id} was edited", "its text differs from the released text"
    elif cell_id.startswith("check-") != (cells[0].cell_type == "code"):
        what, why = f"the locked cell {cell_id} was edited", f"it was changed to a {cells[0].cell_type} cell"
    else:
        return None
    return RunFailure("tampered", what, why, _FRESH, TAMPERED)


def _same(source: str, digest: str) -> bool:
    # Editors may change line ends and the white space at the end, which change nothing that runs.
    plain = source.replace("\r\n", "\n")
    spellings = {source, plain, plain.rstrip(), plain.rstrip() + "\n"}
    return any(hashlib.sha256(s.encode("utf-8", "surrogatepass")).hexdigest() == digest for s in spellings)
