"""`edit`: a lab's text as a notebook in JupyterLab, written back without noise in the diff."""

from __future__ import annotations

import difflib
import hashlib
import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from edl_labs.course.course_folder import Course
from edl_labs.course.lab.read import no_such_lab
from edl_labs.course.lab.rules import check_cells
from edl_labs.course.lab.source import parse
from edl_labs.course.lab.source_notebook import METADATA, dumps
from edl_labs.course.lab.source_notebook import text as source_text
from edl_labs.course.start import jupyterlab_command
from edl_labs.errors import EdlError, SourceError, UsageError
from edl_labs.values import Value

POLL_S = 1.0  # a save is in the text before its author has changed windows
ROLE = "lab_role"
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
    poll_s: float = POLL_S,
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
            sleep(poll_s)
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
            f"{course.shown(path)} holds work that is not in {course.shown(source)}",
            why="an earlier edit was not written back, or the text changed since",
            next=f"edl-labs edit {lab} --from-notebook {course.shown(path)}, or remove that notebook",
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
        raise UsageError(f"there is no {course.shown(path)}", next=f"edl-labs edit {lab} --to-notebook FILE makes one")
    held = path.read_text(encoding="utf-8")
    old = source.read_text(encoding="utf-8")
    text = as_text(held, like=old)
    if text == old:
        return False
    if _digest(old) not in _known(course, path, held, "text"):
        if _digest(_cells_of(held)) == _made(held).get("cells"):
            return False
        raise EdlError(
            f"{course.shown(source)} changed since the notebook was made",
            why="writing the notebook back would undo that change",
            next=f"your work is kept in {course.shown(path)}; join the two by hand",
        )
    _check(course, text, path.with_suffix(".rejected.py"))
    source.write_text(text, encoding="utf-8")
    _remember(course, path, held, text)
    return True


def as_notebook(text: str, *, lab: str, file: str = "the lab") -> str:
    """A lab's text as a notebook's JSON, which remembers what it was made from. Roles are in the cells' metadata."""
    cells = []
    for number, cell in enumerate(parse(text, file=file), start=1):
        metadata = {ROLE: cell.marker.words} if cell.role else {}
        one = {"cell_type": cell.kind, "id": f"cell-{number}", "metadata": metadata, "source": cell.source}
        cells.append({**one, "execution_count": None, "outputs": []} if cell.kind == "code" else one)
    notebook: dict[str, Any] = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    made = {"lab": lab, "text": _digest(text), "cells": _digest(_cells_of(dumps(notebook)))}
    notebook["metadata"] = {**METADATA, "edl_labs": made}
    return dumps(notebook)


def as_text(notebook: str, *, like: str) -> str:
    """A notebook's JSON as a lab's text. Cells that `like` has too are taken from it byte for byte."""
    preface, old = _segments(like)
    new = _cells_of(notebook)
    out = list(preface)
    gap = [""]
    for index, (cell, kept) in enumerate(_paired(new, old)):
        same = kept is not None and kept.key == cell
        out += kept.lines if kept is not None and same else _lines(*cell)
        gap = kept.gap if kept is not None and kept is not old[-1] else gap
        out += gap if index < len(new) - 1 else old[-1].gap
    return "\n".join(out)


@dataclass(frozen=True)
class _Segment:
    """A cell as it is written: what it says, its lines, and the blank lines after it."""

    key: tuple[str, str]
    lines: list[str]
    gap: list[str]


def _segments(text: str) -> tuple[list[str], list[_Segment]]:
    """(the lines before the first cell, the cells) of a lab's text."""
    cells, lines = parse(text, file="the lab"), text.split("\n")
    starts = [cell.line - 1 for cell in cells]
    found = []
    for cell, start, stop in zip(cells, starts, [*starts[1:], len(lines)], strict=True):
        end = stop
        while not lines[end - 1].strip():
            end -= 1
        found.append(_Segment((cell.marker.line, cell.source), lines[start:end], lines[end:stop]))
    return lines[: starts[0]], found


def _cells_of(notebook: str) -> list[tuple[str, str]]:
    """(marker, source) of a notebook's cells; empty ones without a role, as JupyterLab leaves them, are dropped."""
    try:
        cells = json.loads(notebook)["cells"]
        found = [(cell["cell_type"], cell["metadata"].get(ROLE), source_text(cell).strip("\n")) for cell in cells]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise EdlError("the notebook cannot be read", why=f"{type(error).__name__}: {error}"[:300]) from None
    raw = [source for kind, _, source in found if kind not in ("code", "markdown")]
    if raw:
        why = f"one begins with {raw[0][:40]!r}"
        raise EdlError("a lab has no raw cells", why=why, next="make it a code or markdown cell")
    heads = {"code": "# %%", "markdown": "# %% [markdown]"}
    kept = [(f"{heads[kind]} {role or ''}".rstrip(), source) for kind, role, source in found if role or source.strip()]
    if not kept:
        raise EdlError("the notebook has no cells", next="your lab's text is as it was; edit again")
    return kept


def _paired(new: list[tuple[str, str]], old: list[_Segment]) -> list[tuple[tuple[str, str], _Segment | None]]:
    """Each new cell with the old one that it is, or that it replaces."""
    matcher = difflib.SequenceMatcher(None, [one.key for one in old], new, autojunk=False)
    pairs: list[tuple[tuple[str, str], _Segment | None]] = []
    for _, start, stop, first, last in matcher.get_opcodes():
        for offset, cell in enumerate(new[first:last]):
            pairs.append((cell, old[start + offset] if start + offset < stop else None))
    return pairs


def _lines(marker: str, source: str) -> list[str]:
    body = source.split("\n")
    return [marker, *(f"# {line}" if line else "#" for line in body)] if "[markdown]" in marker else [marker, *body]


def _made(notebook: str) -> dict[str, str]:
    """What a notebook was made from: the digests of the text and of its cells."""
    made = json.loads(notebook).get("metadata", {}).get("edl_labs", {})
    return made if isinstance(made, dict) else {}


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _is_in_text(course: Course, path: Path, text: str) -> bool:
    """Whether nothing would be lost if the notebook were written anew: its work was written back, or there is none."""
    held = path.read_text(encoding="utf-8")
    return as_text(held, like=text) == text or _digest(_cells_of(held)) in _known(course, path, held, "cells")


def _record(course: Course, path: Path) -> Path:
    """Where it is kept what a notebook last wrote: JupyterLab has the notebook itself open, and would ask."""
    name = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:16]
    return course.root / "build" / "edit" / f"{name}.json"


def _remember(course: Course, path: Path, held: str, text: str) -> None:
    record = _record(course, path)
    record.parent.mkdir(parents=True, exist_ok=True)
    written = {"made": _made(held).get("text"), "text": _digest(text), "cells": _digest(_cells_of(held))}
    record.write_text(json.dumps(written) + "\n", encoding="utf-8")


def _known(course: Course, path: Path, held: str, part: str) -> set[str | None]:
    """The digests of `text` or `cells` that this notebook was made from, or last wrote."""
    made, record = _made(held), _record(course, path)
    found: set[str | None] = {made.get(part)} - {None}
    if record.is_file():
        written = json.loads(record.read_text(encoding="utf-8"))
        if written["made"] == made.get("text"):
            found.add(written[part])
    return found


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
        raise UsageError("JupyterLab is not installed", next='pip install "edl-labs[instructor]"')
    return subprocess.Popen(jupyterlab_command(notebook))
