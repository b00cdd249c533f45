"""The predictions of a class, from the submitted notebooks: only counts, and nothing if few students predicted.

Anybody can write anything there: what does not fit is no prediction, and names of boxes come from the release.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from edl_labs.course.grade.submission import Submission
from edl_labs.course.lab.prediction_boxes import AnyCell, PredictionBox, prediction_boxes
from edl_labs.ui.predictions import KEPT_AS
from edl_labs.values import Value

LEAST_STUDENTS = 5  # of fewer, a count may say what one of them wrote
_MOST_BYTES = 8_000  # five boxes and a reason, each 300 letters, escaped
_NEAR = 0.05  # "right to within 5 %", as a notebook says
_LABELS = ("under half", "too little", "within 5%", "too much", "over twice")
_Words = Annotated[str, Meta(max_length=300)]


class _Said(Struct):
    name: _Words
    said: float | _Words
    true: float | _Words | None = None


class _Kept(Struct):
    predictions: list[_Said]
    why: _Words = ""


class _Output(Struct):
    data: dict[str, msgspec.Raw] = {}


@dataclass(frozen=True)
class Predicted:
    """What one student predicted in one box, what turned out there, and whether a reason was given."""

    said: float | str
    true: float | str
    explained: bool


@dataclass(frozen=True, repr=False)
class PredictionOverview(Value):
    """One box over the class: students by how far they were off, or by what they chose."""

    name: str
    question: str
    labels: tuple[str, ...]
    counts: tuple[int, ...]
    explained: int
    """Students who explained why they were off. The explanations are only in their notebooks."""


def predictions_in(submission: Submission) -> dict[str, Predicted]:
    """What is kept in a notebook's outputs, by the name of the box; of several, the last."""
    found: dict[str, Predicted] = {}
    for cell in submission.cells:
        for kept in _kept(cell.outputs):
            for one in kept.predictions:
                if one.true is not None and type(one.true) is type(one.said) and _is_finite(one.said, one.true):
                    found[one.name] = Predicted(one.said, one.true, bool(kept.why.strip()))
    return found


def _kept(outputs: bytes) -> list[_Kept]:
    found: list[_Kept] = []
    if KEPT_AS.encode() not in outputs:
        return found
    with suppress(msgspec.MsgspecError, RecursionError, ValueError):
        for output in msgspec.json.decode(outputs, type=list[_Output]):
            raw = output.data.get(KEPT_AS)
            if raw is not None and len(bytes(raw)) <= _MOST_BYTES:
                found.append(msgspec.json.decode(raw, type=_Kept))
    return found


def _is_finite(*values: float | str) -> bool:
    return all(math.isfinite(value) for value in values if isinstance(value, float))


def class_predictions(
    cells: Sequence[AnyCell], students: Mapping[str, Mapping[str, Predicted]]
) -> tuple[PredictionOverview, ...]:
    """The boxes of a lab, in order, that `LEAST_STUDENTS` or more students filled; `cells` are the released ones."""
    boxes = prediction_boxes(cells)
    filled = {
        name: [
            said[name]
            for said in students.values()
            if name in said and isinstance(said[name].said, str) != bool(box.unit)
        ]
        for name, box in boxes.items()
    }
    return tuple(_overview(boxes[name], said) for name, said in filled.items() if len(said) >= LEAST_STUDENTS)


def _overview(box: PredictionBox, said: Sequence[Predicted]) -> PredictionOverview:
    labels = _LABELS if box.unit else (*box.choices, "other") if box.choices else ("right", "other")
    counts = [0] * len(labels)
    for one in said:
        counts[_bin(box, one)] += 1
    explained = sum(one.explained for one in said)
    return PredictionOverview(box.name, box.question, labels, tuple(counts), explained)


def _bin(box: PredictionBox, one: Predicted) -> int:
    """Which of its box's labels a prediction belongs to; the last one where it fits none."""
    if box.unit:
        return _off(float(one.said), float(one.true))
    if box.choices:
        return box.choices.index(one.said) if one.said in box.choices else len(box.choices)
    return int(one.said != one.true)


def _off(said: float, true: float) -> int:
    """The bin of a number, from far too little to far too much."""
    if said == true or abs(said - true) <= _NEAR * abs(true):
        return 2
    far = said * true <= 0 or not 0.5 <= said / true <= 2
    return (0 if far else 1) if said < true else (4 if far else 3)
