"""The message about a solve cell that did not finish: the line, the exception, or that it timed out.

In front of the first check, that is what its own output says. Behind it, where code may know secret cases, no more than
Python's parser says of the text, which of Python's own exceptions it was, and what the student's own run had said.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from edl_labs.course.grade.bounded_call import bounded_call
from edl_labs.course.grade.graded_notebook import handed_in
from edl_labs.course.grade.plan import MarkingPlan, PlannedCell
from edl_labs.course.grade.run_record import ProbedRun
from edl_labs.course.sandbox.limits import DEFAULTS, Limits

_AGAIN = "restart the kernel, run all cells from the top, and fix the first one that fails"
_LINE = re.compile(r"Cell In\s*\[\d+\], line (\d+)")  # as IPython's tracebacks begin, colours aside
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_LETTERS = 200  # of an exception's text: two lines
_OWN = frozenset(name for name, one in vars(builtins).items() if isinstance(one, type) and issubclass(one, Exception))


def tell_broken_cells(plan: MarkingPlan, run: ProbedRun, *, limits: Limits = DEFAULTS) -> None:
    """Say of a solve cell that ended in an error, or not at all, that it did: its exercise was attempted."""
    for index, cell in enumerate(plan.cells):
        name = cell.known.exercise if cell.known and cell.known.role == "solve" and cell.keeps_id else ""
        outcome = run.outcomes.get(name)
        if outcome is None or outcome.state != "not attempted" or name in plan.untouched() or index not in run.raised:
            continue
        what, why, then = f"the cell of {name} raised an exception before it had defined everything", "", _AGAIN
        if unread := bounded_call(unread_line, cell.source):
            what, why = f"Python cannot parse the cell of {name}", unread
        elif any(event.kind == "timeout" and event.where == name for event in run.events):
            what, why = f"the cell of {name} was stopped", "it did not finish in time"
            then = "look for an endless loop, or for measurements in the answer's cell"
        else:
            why = _raised(run, index, cell, limits)
        run.outcomes[name] = replace(outcome, state="wrong", what=what, why=why, next=then)


def _raised(run: ProbedRun, index: int, cell: PlannedCell, limits: Limits) -> str:
    """The exception that ended a cell, as far as it may be told; empty where nothing may."""
    kind = run.raised.get(index, "")
    if said := _error_text(run.outputs.get(index, ()), kind):
        return said
    if said := _error_text(handed_in(cell, limits), kind):
        return f"{said}, as in your own run"
    return f"it raised {kind}" if kind in _OWN else ""


def _error_text(outputs: Iterable[dict[str, Any]], kind: str) -> str:
    """The exception of this `kind` that outputs hold, with its line in the cell."""
    for output in outputs:
        if output.get("output_type") == "error" and kind and output.get("ename") == kind:
            at = _LINE.search(_COLOURS.sub("", "\n".join(output.get("traceback", ()))))
            text = f"{kind}: {str(output.get('evalue', ''))[:_LETTERS]}".removesuffix(": ")
            return f"line {at[1]}: {text}" if at else text
    return ""


def unread_line(source: str) -> str:
    """Which line Python's parser stops at, and what it says; empty where IPython's own syntax is in the way."""
    if any(line.lstrip().startswith(("%", "!", "?")) for line in source.split("\n")):
        return ""
    try:
        ast.parse(source)
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}"
    except (ValueError, RecursionError, MemoryError):
        pass
    return ""
