"""The notebook that formgrader and feedback show: the student's cells, their outputs, and the judge's verdicts."""

from __future__ import annotations

import copy
import re
from typing import Any

import msgspec

from edl_labs.checks import Outcome
from edl_labs.checks.outcome_display import outcome_html, outcome_text, worth_text
from edl_labs.checks.score import MIME
from edl_labs.course.assignment import Assignment, KnownCell
from edl_labs.course.grade.judge_process import public
from edl_labs.course.grade.plan import MarkingPlan, PlannedCell
from edl_labs.course.grade.run_record import ProbedRun
from edl_labs.course.grade.without_scripts import (
    ReadingAllowance,
    outputs_without_scripts,
    pictures_without_scripts,
    prose_without_scripts,
)
from edl_labs.course.sandbox.limits import DEFAULTS, Limits

_TOO_MUCH = "[this notebook has too much output; the rest was left out]"
_AS_HANDED_IN = "[output as submitted: cells after the first check run during grading, but their output is not shown]\n"
_NOT_RUN = "[not run during grading, because no mark needs this cell; the output below is as submitted]\n"
_FIGURES = "[figures are not drawn during grading; these are the submitted figures]\n"
_NO_FIGURE = "[a figure]\n"
_FIGURE = re.compile(r"<Figure size \S{1,40} with \d+ Axes>")  # as matplotlib's figures are shown in text
_CUT = {"output_type": "stream", "name": "stdout", "text": _TOO_MUCH}


def graded_notebook(
    assignment: Assignment, plan: MarkingPlan, run: ProbedRun, *, limits: Limits = DEFAULTS
) -> dict[str, Any]:
    """The notebook as nbformat 4.5, valid whatever the student handed in."""
    left_bytes, allowance = limits.shown_bytes, ReadingAllowance()
    cells = []
    for index, cell in enumerate(plan.cells):
        made = _cell(index, cell, allowance)
        if cell.kind == "code":
            outputs = run.outputs.get(index, [])
            if index in run.not_run:
                outputs = [_said(_NOT_RUN), *handed_in(cell, limits)]
            elif plan.is_secret(index) and not cell.probes and (before := handed_in(cell, limits)):
                outputs = [_said(_AS_HANDED_IN), *before, *outputs]
            elif not cell.probes:
                outputs = _with_pictures(outputs, cell, limits)
            outputs = _verdict(cell, run) if cell.probes else outputs_without_scripts(outputs, allowance)
            made["outputs"], left_bytes = cut_outputs(outputs, left_bytes, limits.shown_lines)
            made["execution_count"] = run.counts.get(index)
            made["metadata"]["edl_labs"] = {"in_grading": _what_was_done(index, cell, run)}
        cells.append(made)
    metadata = {**assignment.notebook_metadata, "edl_labs": {"notes": [note.text for note in plan.notes]}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def solution_outputs(outcome: Outcome) -> list[dict[str, Any]]:
    """A verdict as the outputs of a check cell: the report, and the points as the number that nbgrader reads."""
    told = public(outcome)
    report = {"text/plain": outcome_text(told), "text/html": outcome_html(told)}
    score = {"text/plain": repr(float(told.points)), MIME: told.to_json()}
    score["text/html"] = f'<span style="opacity:.75">{worth_text(told)}</span>'
    return [
        {"output_type": "display_data", "data": report, "metadata": {}},
        {"output_type": "execute_result", "data": score, "metadata": {}, "execution_count": None},
    ]


def _cell(index: int, cell: PlannedCell, allowance: ReadingAllowance) -> dict[str, Any]:
    known = cell.known if cell.keeps_id or (cell.known and not cell.known.role) else None
    pictures = pictures_without_scripts(cell.attachments) if cell.kind == "markdown" else {}
    released = cell.known is not None and cell.known.is_released(cell.source)
    source = cell.source if cell.kind == "code" or released else prose_without_scripts(cell.source, pictures, allowance)
    head = {"cell_type": cell.kind, "id": known.id if known else f"student-{index}"}
    made: dict[str, Any] = {**head, "source": source, "metadata": _metadata(known)}
    if pictures:
        made["attachments"] = pictures
    return made


def _metadata(known: KnownCell | None) -> dict[str, Any]:
    return copy.deepcopy(known.metadata) if known else {}


def _verdict(cell: PlannedCell, run: ProbedRun) -> list[dict[str, Any]]:
    outcome = run.outcomes.get(cell.probes)
    return solution_outputs(outcome) if outcome and cell.keeps_id else []


def handed_in(cell: PlannedCell, limits: Limits) -> list[dict[str, Any]]:
    """The outputs that the student's own run left in the cell; none that is malformed."""
    if not cell.outputs or len(cell.outputs) > limits.shown_bytes:
        return []
    try:
        found = msgspec.json.decode(cell.outputs)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return []
    return [known for one in found if (known := _known_output(one))] if isinstance(found, list) else []


def _with_pictures(outputs: list[dict[str, Any]], cell: PlannedCell, limits: Limits) -> list[dict[str, Any]]:
    """Outputs of grading, which draws no figures, with those that were handed in there: as many, in their order."""
    if not any(_is_figure(output) for output in outputs):
        return outputs
    before = [o for o in handed_in(cell, limits) if any(kind.startswith("image/") for kind in o.get("data", ()))]
    pictures = iter(before)
    shown = [next(pictures, _said(_NO_FIGURE)) if _is_figure(output) else output for output in outputs]
    return [_said(_FIGURES), *shown]


def _is_figure(output: dict[str, Any]) -> bool:
    """Whether an output is the line that stands for a figure where none is drawn."""
    data = output.get("data", {})
    return set(data) == {"text/plain"} and _FIGURE.fullmatch(_plain_text(data["text/plain"])) is not None


def _said(text: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": "stdout", "text": text}


def _what_was_done(index: int, cell: PlannedCell, run: ProbedRun) -> str:
    """What grading did with a cell, in a word: checked, not run, run."""
    return "checked" if cell.probes else "run" if cell.runs and index not in run.not_run else "not run"


def _known_output(output: Any) -> dict[str, Any] | None:
    """An output as nbformat has it, with nothing but text and pictures; None for what is none."""
    if not isinstance(output, dict):
        return None
    kind, said = output.get("output_type"), {key: _plain_text(output.get(key)) for key in ("text", "ename", "evalue")}
    if kind == "stream":
        return {
            "output_type": kind,
            "name": "stderr" if output.get("name") == "stderr" else "stdout",
            "text": said["text"],
        }
    if kind == "error":
        lines = output.get("traceback")
        traceback = [_plain_text(line) for line in lines] if isinstance(lines, list) else []
        return {"output_type": kind, "ename": said["ename"], "evalue": said["evalue"], "traceback": traceback}
    if kind not in ("display_data", "execute_result") or not isinstance(output.get("data"), dict):
        return None
    data = {mime: _plain_text(text) for mime, text in output["data"].items() if mime.startswith(("text/", "image/"))}
    return {"output_type": "display_data", "data": data, "metadata": {}}


def _plain_text(value: Any) -> str:
    if isinstance(value, list):
        return "".join(item for item in value if isinstance(item, str))
    return value if isinstance(value, str) else ""


def cut_outputs(outputs: list[dict[str, Any]], left_bytes: int, most_lines: int) -> tuple[list[dict[str, Any]], int]:
    """The outputs, cut to the lines and bytes that people can read."""
    kept: list[dict[str, Any]] = []
    for output in outputs:
        if left_bytes <= 0:
            return [*kept, dict(_CUT)], left_bytes
        shown = _cut(output, most_lines)
        left_bytes -= len(msgspec.json.encode(shown))
        kept.append(shown if left_bytes > 0 else dict(_CUT))
    return kept, left_bytes


def _cut(output: dict[str, Any], most_lines: int) -> dict[str, Any]:
    if output["output_type"] == "stream":
        lines = output["text"].splitlines(keepends=True)
        if len(lines) > most_lines:
            return {**output, "text": "".join([*lines[: most_lines - 1], "... Output truncated ..."])}
    if output["output_type"] == "error" and len(output["traceback"]) > 100:
        lines = output["traceback"]
        return {**output, "traceback": [*lines[:50], "... Traceback truncated ...", *lines[-49:]]}
    return output
