"""`edit`: opens a lab's text as a notebook in JupyterLab, and writes it back without unnecessary changes."""

from __future__ import annotations

import hashlib
import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jupytext
import nbformat

from edl_labs.course.course_folder import Course
from edl_labs.course.lab.read import no_such_lab
from edl_labs.course.lab.rules import check_cells
from edl_labs.course.lab.source import NAMED_ROLES, PERCENT, parse
from edl_labs.course.lab.source_notebook import METADATA, dumps
from edl_labs.course.start import jupyterlab_command
from edl_labs.errors import EdlError, SourceError, UsageError
from edl_labs.values import Value

_POLL_S = 1.0  # a save is in the text before its author has changed windows
Said = Callable[[str], None]


@dataclass(frozen=True, repr=False)
class EditReport(Value):
    """What editing came to: the notebook that was open, the lab's text, and whether the text changed."""

    lab: str
    notebook: str
    source: str
    changed: bool


def edit(
    course: Course,
    lab: str,
    *,
    launch: Callable[[Path], Any] | None = None,
    said: Said | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> EditReport:
    """Open a lab as a notebook; write each save back to its text, until JupyterLab is stopped.

    `launch` starts an editor and returns something with `poll()` and `terminate()`, like a Popen. What cannot be
    written back yet (a lab's text is strict) is said, and tried again at the next save and at the end.
    """
    notebook = to_notebook(course, lab)
    source, shown = _source(course, lab), course.shown(notebook)
    first = source.read_bytes()
    editor = (launch or _jupyterlab)(notebook)
    tell = said or (lambda text: None)
    seen = _stamp(notebook)
    try:
        while editor.poll() is None:
            sleep(_POLL_S)
            if _stamp(notebook) != seen:
                seen = _stamp(notebook)
                _try(course, lab, notebook, tell)
    except KeyboardInterrupt:
        editor.terminate()
    from_notebook(course, lab, notebook)
    return EditReport(lab, shown, course.shown(source), changed=source.read_bytes() != first)


def to_notebook(course: Course, lab: str, target: Path | str | None = None) -> Path:
    """Write a lab's text as a notebook (default: under build/edit/) and return where it is.

    A notebook of an earlier edit whose work is not in the text yet is never overwritten.
    """
    source = _source(course, lab)
    text = source.read_text(encoding="utf-8")
    path = Path(target) if target is not None else course.root / "build" / "edit" / lab / f"{lab}.ipynb"
    made = as_notebook(text, lab=lab, file=course.shown(source))
    if path.exists() and not _is_in_text(course, path, text):
        raise EdlError(
            f"{course.shown(path)} contains work that is not in {course.shown(source)}",
            why="an earlier edit was not written back, or the text has changed since then",
            next=f"run edl-labs edit {lab} --from-notebook {course.shown(path)}, or delete this notebook",
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(made, encoding="utf-8")
    return path


def from_notebook(course: Course, lab: str, notebook: Path | str) -> bool:
    """Write an edited notebook back to the lab's text; whether that changed it.

    Refuses, and leaves the text as it is, when the notebook is no longer a lab, or when the text was changed by
    something else since the notebook was made from it.
    """
    source, path = _source(course, lab), Path(notebook)
    if not path.is_file():
        raise UsageError(
            f"there is no {course.shown(path)}", next=f"create one with edl-labs edit {lab} --to-notebook FILE"
        )
    held = path.read_text(encoding="utf-8")
    old = source.read_text(encoding="utf-8")
    text, last = as_text(held), _last(course, path, held)
    if text == old or _digest(text) == last.get("cells"):
        return False
    if _digest(old) != last.get("text"):
        raise EdlError(
            f"{course.shown(source)} has changed since the notebook was created",
            why="writing the notebook back would undo that change",
            next=f"your work is kept in {course.shown(path)}; merge the two by hand",
        )
    _check(course, text, path.with_suffix(".rejected.py"))
    source.write_text(text, encoding="utf-8")
    _remember(course, path, held, text)
    return True


def as_notebook(text: str, *, lab: str, file: str = "the lab") -> str:
    """A lab's text as a notebook's JSON, which remembers what it was made from. Roles are in the cells' metadata."""
    parse(text, file=file)
    notebook = jupytext.reads(text.lstrip(), PERCENT)
    for number, cell in enumerate(notebook.cells, start=1):
        cell["id"], cell["source"] = f"cell-{number}", cell.source.strip("\n").rstrip()
    made = {"lab": lab, "text": _digest(text), "cells": _digest(as_text(dumps(notebook)))}
    return dumps({**notebook, "metadata": {**METADATA, "edl_labs": made}})


def as_text(notebook: str) -> str:
    """A notebook's JSON as a lab's text, without the empty cells that JupyterLab leaves."""
    try:
        read = nbformat.v4.reads(notebook)
        read.cells = [cell for cell in read.cells if cell.source.strip() or {*cell.metadata} & {"title", *NAMED_ROLES}]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise EdlError("the notebook cannot be read", why=f"{type(error).__name__}: {error}"[:300]) from None
    raw = [cell.source for cell in read.cells if cell.cell_type not in ("code", "markdown")]
    if raw:
        why = f"one of the raw cells begins with {raw[0][:40]!r}"
        raise EdlError("a lab cannot have raw cells", why=why, next="make it a code or markdown cell")
    if not read.cells:
        raise EdlError("the notebook has no cells", next="edit the lab again; its text was not changed")
    read.metadata = nbformat.NotebookNode()
    return str(jupytext.writes(read, PERCENT))


def _made(notebook: str) -> dict[str, str]:
    """What a notebook was made from: the digests of the text and of its cells."""
    made = json.loads(notebook).get("metadata", {}).get("edl_labs", {})
    return made if isinstance(made, dict) else {}


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _is_in_text(course: Course, path: Path, text: str) -> bool:
    """Whether nothing would be lost if the notebook were written anew: its work was written back, or there is none."""
    held = path.read_text(encoding="utf-8")
    return as_text(held) == text or _digest(as_text(held)) == _last(course, path, held).get("cells")


def _record(course: Course, path: Path) -> Path:
    """Where it is kept what a notebook last wrote: JupyterLab has the notebook itself open, and would ask."""
    name = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:16]
    return course.root / "build" / "edit" / f"{name}.json"


def _remember(course: Course, path: Path, held: str, text: str) -> None:
    record = _record(course, path)
    record.parent.mkdir(parents=True, exist_ok=True)
    written = {"made": _made(held).get("text"), "text": _digest(text), "cells": _digest(text)}
    record.write_text(json.dumps(written) + "\n", encoding="utf-8")


def _last(course: Course, path: Path, held: str) -> dict[str, str]:
    """The digests of `text` and `cells` that this notebook last wrote, or else was made from."""
    made, record = _made(held), _record(course, path)
    if record.is_file():
        written = json.loads(record.read_text(encoding="utf-8"))
        if written["made"] == made.get("text"):
            return dict(written)
    return made


def _check(course: Course, text: str, rejected: Path) -> None:
    """Refuse a text whose cells no build would take, and leave it where the message can point at its lines."""
    try:
        check_cells(parse(text, file=course.shown(rejected)))
    except SourceError:
        rejected.write_text(text, encoding="utf-8")
        raise
    rejected.unlink(missing_ok=True)


def _source(course: Course, lab: str) -> Path:
    path = course.solutions / lab / f"{lab}.py"
    if lab not in course.lab_names() or not path.is_file():
        raise no_such_lab(course, lab)
    return path


def _try(course: Course, lab: str, notebook: Path, tell: Said) -> None:
    try:
        if from_notebook(course, lab, notebook):
            tell(f"{lab}: written back")
    except SourceError as error:
        tell(f"not written back yet: {error}")
    except EdlError as error:
        tell(str(error))


def _stamp(path: Path) -> str | None:
    """A digest of the notebook's bytes, None while it is being replaced."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None


def _jupyterlab(notebook: Path) -> subprocess.Popen[bytes]:
    if find_spec("jupyterlab") is None:
        raise UsageError("JupyterLab is not installed", next='run pip install "edl-labs[instructor]"')
    return subprocess.Popen(jupyterlab_command(notebook))
