"""Attacks and accidents as files: a submission to the fixture lab, and the marks it must come to.

A file has a head of `word: text` lines, then cells. Words: `attack` or `accident` (what it is), `expect` (marks that
are not full, as `area=0`), `flags` (must be raised; `timeout or killed` is one), `never` (a text that no outcome
and no output of the graded notebook may hold), `slow` (why it is long), `do` (a change of the notebook's form, see
`_FORMS`). A cell starts with `#--- solve NAME`, `#--- before ID`, `#--- after ID`,
`#--- start` or `#--- end`. Whatever is not given is the solution's. `{course}` in code is the course's folder.
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from tests.course.course_fixture import POINTS, SOLUTIONS, Course, cell_of

FOLDER = Path(__file__).parent / "submissions"
FULL = {name: float(POINTS[name]) for name in SOLUTIONS}


@dataclass
class AttackCase:
    """One file, read."""

    name: str
    kind: str
    title: str
    expect: dict[str, float]
    flags: list[str] = field(default_factory=list)
    never: list[str] = field(default_factory=list)
    slow: str = ""
    forms: list[list[str]] = field(default_factory=list)
    cells: list[tuple[list[str], str]] = field(default_factory=list)

    def notebook(self, course: Course) -> NotebookNode:
        """The submission."""
        texts = {where[1]: text for where, text in self.cells if where[0] == "solve"}
        notebook = course.answered({name: self._filled(text, course) for name, text in texts.items()})
        for where, text in self.cells:
            if where[0] != "solve":
                _insert(notebook, where, self._filled(text, course))
        for form in self.forms:
            _FORMS[form[0]](notebook, *form[1:])
        return notebook

    def _filled(self, text: str, course: Course) -> str:
        return text.replace("{course}", str(course.root))


def read_case(path: Path) -> AttackCase:
    """The attack in a file; ValueError when it is not in the form."""
    head, *parts = path.read_text(encoding="utf-8").split("#--- ")
    case = AttackCase(path.stem, "", "", dict(FULL))
    for line in head.strip().splitlines():
        word, _, text = line.partition(":")
        _read_head(case, word.strip(), text.strip())
    for part in parts:
        where, _, text = part.partition("\n")
        case.cells.append((where.split(), text.rstrip("\n")))
    if not case.title:
        raise ValueError(f"{path.name} does not say what it is")
    return case


def _read_head(case: AttackCase, word: str, text: str) -> None:
    if word in ("attack", "accident"):
        case.kind, case.title = word, text
    elif word == "expect":
        marks = dict(item.split("=") for item in text.split())
        case.expect |= {name: float(mark) for name, mark in marks.items()}
    elif word == "flags":
        case.flags = [flag.strip() for flag in text.split(",")]
    elif word == "never":
        case.never.append(text)
    elif word == "slow":
        case.slow = text
    elif word == "do":
        case.forms.append(text.split(maxsplit=2))
    else:
        raise ValueError(f"{case.name}: unknown word {word!r}")


def all_cases() -> list[AttackCase]:
    """Every attack, in order of name."""
    return [read_case(path) for path in sorted(FOLDER.glob("*.cells"))]


def _insert(notebook: NotebookNode, where: list[str], text: str) -> None:
    made = new_code_cell(text, id=f"own-{len(notebook.cells)}")
    if where[0] in ("start", "end"):
        notebook.cells.insert(0 if where[0] == "start" else len(notebook.cells), made)
        return
    index = _index(notebook, where[1])
    notebook.cells.insert(index + (where[0] == "after"), made)


def _index(notebook: NotebookNode, name: str) -> int:
    cells = notebook.cells
    return next(i for i, c in enumerate(cells) if name in (c.id, c.metadata.get("nbgrader", {}).get("grade_id")))


def _delete(notebook: NotebookNode, name: str) -> None:
    del notebook.cells[_index(notebook, name)]


def _copy(notebook: NotebookNode, name: str, source: str | None = None) -> None:
    index = _index(notebook, name)
    twin = copy.deepcopy(notebook.cells[index])
    twin["id"] = f"copy-{name}".replace("_", "-")
    if source is not None:
        twin["source"] = source.encode().decode("unicode_escape")
    notebook.cells.insert(index + 1, twin)


def _split(notebook: NotebookNode, name: str) -> None:
    """Cut a cell behind its first line, as a stray Ctrl+Shift+Minus does."""
    index = _index(notebook, name)
    first, _, rest = notebook.cells[index]["source"].partition("\n")
    notebook.cells[index]["source"] = first
    twin = copy.deepcopy(notebook.cells[index])
    twin.update(source=rest, id=f"split-{name}")
    notebook.cells.insert(index + 1, twin)


def _merge(notebook: NotebookNode, name: str, into: str) -> None:
    source = cell_of(notebook, name)["source"]
    _delete(notebook, name)
    cell_of(notebook, into)["source"] += "\n\n" + source


def _move(notebook: NotebookNode, name: str, where: str) -> None:
    cell = notebook.cells.pop(_index(notebook, name))
    notebook.cells.insert(0 if where == "start" else len(notebook.cells), cell)


def _kind(notebook: NotebookNode, name: str, kind: str) -> None:
    cell = notebook.cells[_index(notebook, name)]
    cell["cell_type"] = kind
    for key in ("outputs", "execution_count"):
        cell.pop(key, None)


def _strip(notebook: NotebookNode, name: str) -> None:
    for cell in notebook.cells if name == "all" else [cell_of(notebook, name)]:
        cell["metadata"] = {}


def _meta(notebook: NotebookNode, name: str, value: str) -> None:
    cell_of(notebook, name)["metadata"]["nbgrader"].update(json.loads(value))


def _source(notebook: NotebookNode, name: str, value: str) -> None:
    notebook.cells[_index(notebook, name)]["source"] = value.encode().decode("unicode_escape")


def _notebook(notebook: NotebookNode, key: str, value: str) -> None:
    notebook[key] = json.loads(value)


def _ids(notebook: NotebookNode, how: str) -> None:
    for index, cell in enumerate(notebook.cells):
        cell.pop("id", None)
        if how == "same":
            cell["id"] = "same"
        elif how == "new":
            cell["id"] = f"fresh-{index}"


def _outputs(notebook: NotebookNode, name: str, value: str) -> None:
    notebook.cells[_index(notebook, name)]["outputs"] = json.loads(value)


_FORMS: dict[str, Any] = {
    "copy": _copy,
    "delete": _delete,
    "ids": _ids,
    "kind": _kind,
    "merge": _merge,
    "meta": _meta,
    "move": _move,
    "notebook": _notebook,
    "outputs": _outputs,
    "source": _source,
    "split": _split,
    "strip": _strip,
}
