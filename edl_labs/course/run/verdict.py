"""Turns a kernel's answers into results: exercises with their points, and each reason why a run failed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

from edl_labs.course.run.process import Finished
from edl_labs.course.run.run_report import FAILED, INTERRUPTED, ExerciseResult, RanCell, RunFailure, RunLimits, one_line
from edl_labs.units import counted

_STATES = ("not attempted", "wrong", "partly", "passed")
_SCHEMA = 1
_NOT_PYTHON = ("SyntaxError", "IndentationError", "TabError")


@dataclass(frozen=True)
class Expected:
    """An exercise that a notebook must have. `points` is None where only the check itself can tell."""

    name: str
    kind: str = "code"
    points: float | None = None


def exercise_results(cells: Sequence[RanCell], expected: Iterable[Expected]) -> tuple[ExerciseResult, ...]:
    """What each expected exercise came to, in their order."""
    return tuple(_exercise(cells, exercise) for exercise in expected)


def run_failures(
    finished: Finished, exercises: Sequence[ExerciseResult], *, limits: RunLimits
) -> tuple[RunFailure, ...]:
    """Every reason for which the run of a *solution* notebook counts as failed."""
    return (*crashes(finished, limits=limits), *(f for e in exercises for f in _short_of_full(e)))


def crashes(finished: Finished, *, limits: RunLimits) -> tuple[RunFailure, ...]:
    """Why a notebook did not run from its first cell to its last: broke off, exited, raised, or left cells out."""
    found = [*_broke_off(finished, limits), *_exits(finished.cells), *_raised(finished.cells, limits)]
    left_out = [c for c in finished.cells if c.state == "never"]
    if left_out and not found:
        found.append(_left_out(left_out))
    return tuple(found)


def _broke_off(finished: Finished, limits: RunLimits) -> list[RunFailure]:
    if not finished.ending:
        return []
    kind, text = finished.ending["kind"], finished.ending["text"]
    where = next((c.title for c in finished.cells if c.state == "stopped"), "")
    after = _after(finished.cells)
    what, why, next_step = {
        "dead": (
            f"the kernel died in {where}{after}" if where else "the kernel died between two cells",
            "possible causes are os._exit, a crash in native code, or too little memory",
            "run only this cell in JupyterLab and watch the memory",
        ),
        "cell-timeout": (
            f"{where or 'a cell'} was still running after {limits.cell_s:g} s{after}",
            "each cell has a time limit",
            "look for an endless loop, or raise the limit with --cell-timeout",
        ),
        "notebook-timeout": (
            f"the notebook was still running after {limits.notebook_s:g} s{f', in {where}' if where else ''}{after}",
            "each notebook has a time limit",
            "choose smaller parameters, or raise the limit with --notebook-timeout",
        ),
        "output": (
            f"{where or 'a cell'} printed or displayed more than {limits.output_bytes / 1e6:g} MB{after}",
            "so much output would fill the notebook and the memory",
            "print less, or less often",
        ),
        "start": ("no kernel started", text, "edl-labs doctor"),
    }.get(
        kind,
        (f"the process that ran the notebook died{after}", text, "run edl-labs doctor, then run the notebook again"),
    )
    return [RunFailure(kind, what, why, next_step)]


def _exits(cells: Sequence[RanCell]) -> list[RunFailure]:
    return [
        RunFailure(
            "exit",
            f"{cell.title} called {'exit()' if cell.error_name == 'exit' else 'sys.exit'}{_after(cells)}",
            "the call ends the notebook without an error, so the other cells do not run",
            "remove the call; use if and else to skip work",
        )
        for cell in cells
        if cell.state == "exited"
    ]


def _raised(cells: Sequence[RanCell], limits: RunLimits) -> list[RunFailure]:
    return [_one_raised(cell, cells, limits) for cell in cells if cell.state == "raised"]


def _one_raised(cell: RanCell, cells: Sequence[RanCell], limits: RunLimits) -> RunFailure:
    if cell.error_name == INTERRUPTED:
        return RunFailure(
            "cell-timeout",
            f"{cell.title} was still running after {limits.cell_s:g} s, and was interrupted",
            "each cell has a time limit; the cells after this one ran",
            "look for an endless loop, or raise the limit with --cell-timeout",
        )
    if cell.error_name == "StdinNotImplementedError":
        return RunFailure(
            "error",
            f"{cell.title} calls input(){_after(cells)}",
            "a run without a browser cannot ask for input",
            "write the value into the cell",
        )
    if cell.error_name in _NOT_PYTHON:
        return RunFailure(
            "error",
            f"{cell.title} is not valid Python: {one_line(cell.error, limit=200)}{_after(cells)}",
            "Python parses a whole cell before it runs it, so no part of this cell ran",
            "fix this line, or the end of the line before it: look for a bracket, a quote, a colon or an indentation",
        )
    return RunFailure(
        "error",
        f"{cell.title} raised {one_line(cell.error, limit=160)}{_after(cells)}",
        "a cell that raises an exception stops Run All, even if it is tagged raises-exception",
        "read the traceback in the executed notebook; if the cell should show this error, catch it and print it",
    )


def _left_out(cells: Sequence[RanCell]) -> RunFailure:
    return RunFailure(
        "never-ran",
        f"{counted(len(cells), 'cell')} never ran; the first one is {cells[0].title}",
        "the kernel skipped this cell, or the cell is tagged skip-execution",
        "remove the tag, or make the cell a markdown cell",
    )


def _after(cells: Sequence[RanCell]) -> str:
    never = sum(cell.state == "never" for cell in cells)
    return f"; {counted(never, 'cell')} never ran" if never else ""


def _exercise(cells: Sequence[RanCell], expected: Expected) -> ExerciseResult:
    most = expected.points or 0.0
    if expected.kind == "explain":
        return ExerciseResult(expected.name, "marked by hand", 0.0, most)
    own = [cell for cell in cells if cell.check == expected.name]
    # Anybody may check once more in a cell of their own; the graded one counts.
    own = [cell for cell in own if cell.grade_id] or own[-1:]
    if len(own) != 1:
        what = f"there is no check of {expected.name}" if not own else f"{expected.name} is checked {len(own)} times"
        return ExerciseResult(expected.name, "missing", 0.0, most, what, "each exercise needs exactly one check cell")
    return _checked(own[0], expected)


def _checked(cell: RanCell, expected: Expected) -> ExerciseResult:
    most = expected.points if expected.points is not None else cell.max_points or 0.0
    none = ExerciseResult(expected.name, "not reached", 0.0, most, seconds=cell.seconds, cell=cell.title)
    if cell.state in ("never", "stopped"):
        return replace(none, what="its check never ran" if cell.state == "never" else "its check did not finish")
    outcome, why = _outcome(cell, expected)
    if outcome is None:
        what = f"the check of {expected.name} returned no readable score"
        return replace(none, state="unreadable", what=what, why=why, next="run the cell and look at its output")
    what, why, then = (one_line(outcome.get(key, ""), limit=500) for key in ("what", "why", "next"))
    scored = replace(none, points=float(outcome["points"]), max_points=float(outcome["max_points"]))
    return replace(scored, state=str(outcome["state"]), what=what, why=why, next=then)


def _outcome(cell: RanCell, expected: Expected) -> tuple[Mapping[str, Any] | None, str]:
    """The one outcome in a check cell's result, or None and why it cannot be believed."""
    if cell.state != "ran":
        return None, f"the cell raised {one_line(cell.error)}"
    if len(cell.scores) != 1:
        shown = f"; it shows {cell.plain_result}" if cell.plain_result else ""
        return None, f"it contains {counted(len(cell.scores), 'score')} instead of one{shown}"
    outcome = cell.scores[0]
    why = _unbelievable(outcome, expected)
    return (None, why) if why else (outcome, "")


def _unbelievable(outcome: Any, expected: Expected) -> str:
    if not isinstance(outcome, Mapping) or outcome.get("schema") != _SCHEMA:
        return f"its schema is not {_SCHEMA}"
    if outcome.get("name") != expected.name:
        return f"it belongs to a different exercise: {one_line(outcome.get('name'), limit=60)}"
    if outcome.get("state") not in _STATES:
        return f"its state is {one_line(outcome.get('state'), limit=60)}"
    points, most = outcome.get("points"), outcome.get("max_points")
    if not _is_number(points) or not _is_number(most) or not 0 <= points <= most:
        return f"its points are {one_line(points, limit=40)} of {one_line(most, limit=40)}"
    if expected.points is not None and most != expected.points and outcome["state"] != "not attempted":
        return f"it is out of {most:g} points instead of {expected.points:g}; run edl-labs build to update both"
    return ""


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _short_of_full(exercise: ExerciseResult) -> list[RunFailure]:
    if exercise.full or exercise.state == "not reached":
        return []
    if exercise.state in ("missing", "unreadable"):
        return [RunFailure(exercise.state, exercise.what, exercise.why, exercise.next or "run edl-labs build", FAILED)]
    why = " ".join(part for part in (f"{exercise.state}: {exercise.what}", exercise.why) if part)
    what = f"the solution of {exercise.name} scores {exercise.points:g} of {exercise.max_points:g} points"
    return [
        RunFailure(
            "full-marks",
            what,
            why,
            f"fix the solution or the check in {exercise.cell}; edl-labs test shows more",
            FAILED,
        )
    ]
