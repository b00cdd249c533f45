"""What a lab's cells show when they run: printed text, values, the words of pictures, and what was revealed."""

from __future__ import annotations

import ast
import io
import linecache
import re
from collections.abc import Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from html import unescape
from typing import Any

import pytest

from edl_labs.course.lab.parsed_lab import Lab
from edl_labs.course.lab.source import Cell
from edl_labs.ui import predictions


@dataclass
class ShownCell:
    """A cell as a student has it, what it shows, and the numbers that it compares predictions with."""

    cell: Cell
    source: str
    output: str = ""
    truths: dict[str, tuple[str, float]] = field(default_factory=dict)
    """By the name of a prediction: its unit, and what turned out, in SI units."""

    @property
    def seen(self) -> str:
        """All that a reader sees of it."""
        return f"{self.source}\n{self.output}"


def executed(lab: Lab) -> list[ShownCell]:
    """Every cell of the solved lab, run from nothing with the parameters of a quick run."""
    import matplotlib

    matplotlib.use("Agg")
    names: dict[str, Any] = {"__name__": "notebook"}
    shown = [ShownCell(cell, cell.stub if cell.kind == "code" else cell.source) for cell in lab.cells]
    with pytest.MonkeyPatch.context() as patch:
        for one in shown:
            if one.cell.kind != "code" or one.cell.role == "check":
                continue
            patch.setattr(predictions, "_show_answer", lambda answer, one=one: _note(one, answer))
            one.output = _output(one.cell, names, lab.parameters["smoke"])
    return shown


def _note(one: ShownCell, answer: Any) -> None:
    for name, true in answer.truths.items():
        if unit := predictions._question(name).unit:
            one.truths[name] = (unit, float(true))
    print(answer.text())


def _output(cell: Cell, names: dict[str, Any], parameters: Mapping[str, Any]) -> str:
    """What a cell prints, the value at its end and the words of its figures; its names are kept."""
    from matplotlib import pyplot

    tree = ast.parse(cell.source)
    if cell.role == "parameters":
        tree = ast.parse("\n".join(f"{name} = {value!r}" for name, value in parameters.items()))
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, file = io.StringIO(), f"<{cell.file}, line {cell.line}>"
    linecache.cache[file] = (len(cell.source), None, cell.source.splitlines(keepends=True), file)  # kernels are read
    with redirect_stdout(printed), redirect_stderr(io.StringIO()):
        exec(compile(tree, file, "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), file, "eval"), names)
            print(*_texts_of_value(value), sep="\n")
    words = [word for number in pyplot.get_fignums() for word in _words_of_figure(pyplot.figure(number))]
    pyplot.close("all")
    return "\n".join([printed.getvalue(), *words])


def _texts_of_value(value: Any) -> Iterator[str]:
    if value is None:
        return
    yield repr(value)
    html = getattr(value, "_repr_html_", lambda: "")() or ""
    yield unescape(re.sub(r"<[^>]*>", " ", html))


def _words_of_figure(figure: Any) -> Iterator[str]:
    """What is written in a figure, and what is read out in its place; numbers beside its axes tell nothing."""
    from matplotlib.text import Text

    from edl_labs.plots.style import alt_text

    yield alt_text(figure)
    ticks = {id(label) for axes in figure.axes for axis in (axes.xaxis, axes.yaxis) for label in axis.get_ticklabels()}
    yield from (text.get_text() for text in figure.findobj(Text) if id(text) not in ticks and text.get_visible())
