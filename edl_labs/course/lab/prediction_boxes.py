"""The prediction boxes of a lab: what each asks for, and whether its answer is visible before its reveal."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from edl_labs.course.lab.lab_toml import LabToml
from edl_labs.course.lab.source import Cell
from edl_labs.errors import SourceError, did_you_mean


class AnyCell(Protocol):
    """A cell of a lab's source, or of a notebook."""

    @property
    def kind(self) -> str: ...
    @property
    def source(self) -> str: ...


@dataclass(frozen=True)
class PredictionBox:
    """A box as the source declares it; `choices` is empty where they are not written into the call."""

    name: str
    question: str
    unit: str
    choices: tuple[str, ...]
    asked: int
    """The number of the cell that shows the box, from 0."""
    revealed: int | None = None
    """The number of the cell that shows the answer; None where no cell does."""


def prediction_boxes(cells: Sequence[AnyCell]) -> dict[str, PredictionBox]:
    """The boxes of a lab by name, in order; cells that are no Python have none."""
    asked: dict[str, PredictionBox] = {}
    revealed: dict[str, int] = {}
    for number, cell in enumerate(cells):
        tree = _tree(cell)
        for call in _calls(tree, "predict"):
            if box := _box(call, number):
                asked.setdefault(box.name, box)
        revealed |= dict.fromkeys((name for name in _revealed(tree) if name not in revealed), number)
    return {
        name: PredictionBox(box.name, box.question, box.unit, box.choices, box.asked, revealed.get(name))
        for name, box in asked.items()
    }


def check_gives_away(cells: Sequence[Cell], toml: LabToml) -> None:
    """SourceError where a text that gives a box's answer away can be read too early, or where there is no such box.

    The texts are `[gives_away]` of lab.toml. Solutions count as students get them, without what students write.
    """
    boxes = prediction_boxes(cells)
    for name, texts in toml.gives_away.items():
        if name not in boxes:
            near = did_you_mean(name, boxes) or f"use one of these boxes: {', '.join(boxes) or 'none'}"
            line = toml.line("gives_away", name)
            raise SourceError(
                f"`gives_away` lists {name}, but there is no box with this name", file=toml.file, line=line, next=near
            )
        for text in texts:
            _check_hidden(cells, boxes[name], text)


def shows(seen: str, text: str) -> bool:
    """Whether a text can be read in what a cell shows, wherever its lines break."""
    return " ".join(text.split()) in " ".join(seen.split())


def read_too_early(cells: Sequence[AnyCell], box: PredictionBox) -> list[int]:
    """The numbers of the cells that are read while the answer is still hidden.

    All before the reveal but the one with the box, whose choices may name the answer; and those below it down to its
    first prose, which are on the page from the beginning.
    """
    last = len(cells) if box.revealed is None else box.revealed
    below = next((n for n in range(last + 1, len(cells)) if cells[n].kind == "markdown"), len(cells) - 1)
    return [number for number in range(below + 1) if number not in (box.asked, box.revealed)]


def _check_hidden(cells: Sequence[Cell], box: PredictionBox, text: str) -> None:
    for number in read_too_early(cells, box):
        cell = cells[number]
        if shows(cell.stub if cell.kind == "code" else cell.source, text):
            raise cell.error(
                f"the answer of the box {box.name} is given away",
                line=cell.first,
                why=f"{text!r} is visible here while the answer is still hidden",
                next="move this text into the reveal, or remove it from `gives_away` in lab.toml",
            )


def _tree(cell: AnyCell) -> ast.Module:
    try:
        return ast.parse(cell.source if cell.kind == "code" else "")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


def _calls(tree: ast.AST, function: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == function:
            yield node


def _box(call: ast.Call, number: int) -> PredictionBox | None:
    name, question = (_constant(node) for node in (*call.args, *[ast.Constant(None)] * 2)[:2])
    if not (isinstance(name, str) and isinstance(question, str)):
        return None
    more = {keyword.arg: _constant(keyword.value) for keyword in call.keywords}
    choices = more.get("choices") or ()
    return PredictionBox(name, question, str(more.get("unit") or ""), tuple(map(str, choices)), number)


def _revealed(tree: ast.Module) -> Iterator[str]:
    """The names in calls of `revealed`; `*asked` is a tuple of the same cell."""
    tuples = {
        node.targets[0].id: _constant(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    for call in _calls(tree, "reveal_prediction"):
        for one in call.args:
            if isinstance(one, ast.Starred):
                yield from (tuples.get(one.value.id) if isinstance(one.value, ast.Name) else ()) or ()
            else:
                yield str(_constant(one))


def _constant(node: ast.AST) -> Any:
    """The value that is written there, None where it has to be computed."""
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None
