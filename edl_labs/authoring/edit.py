"""`edit`: a lab's text as a notebook in JupyterLab, written back without noise in the diff."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from edl_labs.authoring.course import Course, no_such_lab
from edl_labs.authoring.rules import check_cells
from edl_labs.authoring.source import parse
from edl_labs.errors import EdlError, SourceError, UsageError

SCHEMA = 1
POLL_S = 1.0
_FORMAT = {"extension": ".py", "format_name": "percent"}
Said = Callable[[str], None]


@dataclass(frozen=True)
class EditReport:
    """What editing came to: the notebook that was open, the lab's text, and whether the text changed."""

    lab: str
    notebook: str
    source: str
    changed: bool

    def to_json(self) -> dict[str, Any]:
        """The report as plain JSON, with a schema number."""
        return {
            "schema": SCHEMA,
            "lab": self.lab,
            "notebook": self.notebook,
            "source": self.source,
            "changed": self.changed,
        }


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
    if as_text(as_notebook(text, lab=lab)) != text:
        raise EdlError(
            f"{course.shown(source)} cannot be edited as a notebook",
            why="jupytext would change lines that nobody edited",
            next="edit the text; end it with exactly one newline and leave no blank line at its start",
        )
    if path.exists() and not _is_in_text(course, lab, path, text):
        raise EdlError(
            f"{course.shown(path)} holds work that is not in {course.shown(source)}",
            why="an earlier edit was not written back, or the text changed since",
            next=f"edl-labs edit {lab} --from-notebook {course.shown(path)}, or remove that notebook",
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(as_notebook(text, lab=lab), encoding="utf-8")
    return path


def from_notebook(course: Course, lab: str, notebook: Path | str) -> bool:
    """Write an edited notebook back to the lab's text; whether that changed it.

    Refuses, and leaves the text as it is, when the notebook is no lab any more, or when the text was changed by
    something else since the notebook was made from it.
    """
    source, path = _source(course, lab), Path(notebook)
    if not path.is_file():
        raise UsageError(f"there is no {course.shown(path)}", next=f"edl-labs edit {lab} --to-notebook FILE makes one")
    held = path.read_text(encoding="utf-8")
    text, old = as_text(held), source.read_text(encoding="utf-8")
    if text == old:
        return False
    if _digest(old) not in (_made_from(held), _last_written(course, lab)):
        raise EdlError(
            f"{course.shown(source)} changed since the notebook was made",
            why="writing the notebook back would undo that change",
            next=f"your work is kept in {course.shown(path)}; join the two by hand",
        )
    _check(course, text, path.with_suffix(".rejected.py"))
    source.write_text(text, encoding="utf-8")
    _record(course, lab).parent.mkdir(parents=True, exist_ok=True)
    _record(course, lab).write_text(_digest(text) + "\n", encoding="utf-8")
    return True


def as_notebook(text: str, *, lab: str) -> str:
    """Percent-format text as a notebook's JSON, which remembers what it was made from."""
    import jupytext
    import nbformat

    notebook = jupytext.reads(text, fmt=_FORMAT)
    for index, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{index + 1}"
    return _with_digest(nbformat.writes(notebook, version=4), text, lab)


def as_text(notebook: str) -> str:
    """A notebook's JSON as percent-format text without a header."""
    import jupytext
    import nbformat

    try:
        read = nbformat.reads(notebook, as_version=4)
    except Exception as error:
        raise EdlError("the notebook cannot be read", why=f"{type(error).__name__}: {error}"[:300]) from None
    read.metadata = nbformat.from_dict(
        {"jupytext": {"notebook_metadata_filter": "-all", "cell_metadata_filter": _KEPT}}
    )
    return jupytext.writes(read, fmt=_FORMAT)


_KEPT = "title,solve,check,explain,-all"


def _with_digest(notebook: str, text: str, lab: str) -> str:
    import nbformat

    read = nbformat.reads(notebook, as_version=4)
    read.metadata["edl_labs"] = {"lab": lab, "made_from": _digest(text)}
    read.metadata["kernelspec"] = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    return nbformat.writes(read, version=4) + "\n"


def _made_from(notebook: str) -> str | None:
    import nbformat

    return nbformat.reads(notebook, as_version=4).metadata.get("edl_labs", {}).get("made_from")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _is_in_text(course: Course, lab: str, path: Path, text: str) -> bool:
    """Whether nothing would be lost if the notebook were written anew: its work was written back, or there is none."""
    held = path.read_text(encoding="utf-8")
    kept = as_text(held)
    return kept == text or _digest(kept) in (_made_from(held), _last_written(course, lab))


def _record(course: Course, lab: str) -> Path:
    """Where the digest of the last text written back is; the notebook is JupyterLab's while that has it open."""
    return course.root / "build" / "edit" / lab / "written.sha256"


def _last_written(course: Course, lab: str) -> str | None:
    path = _record(course, lab)
    return path.read_text(encoding="utf-8").strip() if path.is_file() else None


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
    return subprocess.Popen([sys.executable, "-m", "jupyterlab", str(notebook)])
