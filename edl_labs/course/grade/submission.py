"""Reading a notebook that a student handed in: any bytes at all give either cells or one clear line."""

from __future__ import annotations

import codecs
import contextlib
import hashlib
import json
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from edl_labs.course.sandbox.limits import DEFAULTS, Limits
from edl_labs.errors import EdlError

_ARCHIVES = {
    b"PK\x03\x04": "a zip archive",
    b"\x1f\x8b": "a gzip archive",
    b"BZh": "a bzip2 archive",
    b"\xfd7zXZ": "xz",
}
_SAVE_AGAIN = "open the notebook in JupyterLab, save it, and hand in that file"
_FOUR_HIGH = re.compile(rb"[\x80-\xff]{4}")
# How a conflict's three lines begin. One expression for all three would take the cube of a hostile file's length.
_CONFLICT = tuple(re.compile(start, re.MULTILINE) for start in (rb"^<{7} ", rb"^={7}\r?$", rb"^>{7} "))
MOST_RECORDING_BYTES = 5_000_000  # what `trace.hand_in` writes at most


class Unreadable(EdlError):
    """A submission that cannot be read as a notebook. A person looks at it; other students' marks go on."""


@dataclass(frozen=True)
class SubmittedCell:
    """One cell as handed in; of its metadata nbgrader's id is kept. `outputs` is unread JSON, or empty.

    `ran_at` is when it last ran, where the student's JupyterLab records that: unchecked text.
    """

    kind: str
    id: str
    source: str
    grade_id: str = ""
    attachments: dict[str, dict[str, str]] | None = None
    outputs: bytes = b""
    ran_at: str = ""


@dataclass(frozen=True)
class OtherFile:
    """A file that was handed in next to the notebook, and that no cell reads: a person may have to.

    `cells` and `lab` are those of a notebook; `text` is what a text says.
    """

    name: str
    size_bytes: int
    cells: tuple[SubmittedCell, ...] = ()
    lab: str = ""
    text: str = ""
    is_earlier: bool = False
    """Whether it is a notebook that a newer one replaced."""


@dataclass(frozen=True)
class Submission:
    """The cells of a notebook, what was odd about the file, and the lab that its metadata names, if any."""

    cells: tuple[SubmittedCell, ...]
    notes: tuple[str, ...] = ()
    lab: str = ""
    modules: Mapping[str, bytes] = field(default_factory=dict)
    """The student's own Python files next to the notebook, by name."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Recordings next to the notebook, by name: an exercise's judge may read them, and they are never run."""
    others: tuple[OtherFile, ...] = ()
    """Other submitted files, which may contain an answer that the notebook lacks."""

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that grading looks at: equal for equal work."""
        looked_at = [{**asdict(cell), "outputs": None} for cell in self.cells]
        for cell in looked_at:
            del cell["outputs"]
        found = hashlib.sha256(json.dumps(looked_at, sort_keys=True).encode("utf-8", "surrogatepass"))
        for number, outputs in enumerate(cell.outputs for cell in self.cells):
            if outputs:
                found.update(f"{number}/{len(outputs)}".encode() + outputs)
        for name, source in sorted([*self.modules.items(), *self.files.items()]):
            found.update(f"{name}/{len(source)}".encode() + source)
        for other in self.others:
            said = [other.name, other.size_bytes, [[c.kind, c.source, c.grade_id] for c in other.cells], other.text]
            found.update(json.dumps(said).encode("utf-8", "surrogatepass"))
        return found.hexdigest()


class _Notebook(msgspec.Struct):
    cells: list[msgspec.Raw]
    metadata: msgspec.Raw = msgspec.Raw(b"{}")


class _Cell(msgspec.Struct):
    cell_type: str
    source: str | list[str]
    metadata: msgspec.Raw = msgspec.Raw(b"{}")
    id: msgspec.Raw = msgspec.Raw(b'""')
    attachments: msgspec.Raw = msgspec.Raw(b"null")
    outputs: msgspec.Raw = msgspec.Raw(b"[]")


_notebook = msgspec.json.Decoder(_Notebook).decode
_cell = msgspec.json.Decoder(_Cell).decode
_TIME_LETTERS = 40  # a date with its time and zone takes 32
_mapping = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_text = msgspec.json.Decoder(str).decode
_bundles = msgspec.json.Decoder(dict[str, dict[str, str]]).decode
_JSON_PROBLEMS = (msgspec.MsgspecError, RecursionError, ValueError)


def read_bytes(path: Path, *, most: int, then: str = "clear its outputs and hand it in again") -> bytes:
    """The bytes of a plain file; Unreadable above `most`, with what to do `then`. Links are refused, not followed."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        link = path.is_symlink()
        why = "it is a link, and links are not followed" if link else (error.strerror or "it cannot be opened")
        raise Unreadable(f"{path.name} cannot be read", why=why, next="ask for the file itself") from None
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode):
        os.close(fd)
        raise Unreadable(f"{path.name} is not a file", why="it is a folder, a pipe or a device")
    with os.fdopen(fd, "rb") as file:
        if found.st_size > most:
            size = f"it has {found.st_size:,} bytes, but the limit is {most:,} bytes"
            raise Unreadable(f"{path.name} is too large", why=size, next=then)
        return file.read(most + 1)


def parse(data: bytes, *, limits: Limits = DEFAULTS) -> Submission:
    """The cells in a notebook file's bytes; Unreadable, with the reason, where they are not a notebook."""
    notes: list[str] = []
    data = _utf8(data, notes)
    try:
        notebook = _notebook(data)
        raw, lab = notebook.cells, _lab(notebook.metadata)
    except _JSON_PROBLEMS as error:
        _refuse_conflict(data)
        raw, lab = _lenient(data, error, limits), ""
        notes.append("the file is not strict JSON; it was read anyway")
    if not raw:
        why, then = "it was saved without any content", "open your own notebook, save it, and hand in that file"
        raise Unreadable("the notebook has no cells", why=why, next=then)
    if len(raw) > limits.submission_cells:
        raise Unreadable(
            "the notebook has too many cells",
            why=f"it has {len(raw):,} cells, but the limit is {limits.submission_cells:,}",
        )
    cells = [_one(number, item, notes) for number, item in enumerate(raw, 1)]
    found = tuple(cell for cell in cells if cell is not None)
    if sum(len(cell.source) for cell in found) > limits.source_bytes:
        raise Unreadable(
            "the notebook's cells are too long",
            why=f"the limit for all cells together is {limits.source_bytes:,} characters",
        )
    return Submission(_bearable(found, notes, limits.attachment_bytes), tuple(notes), lab)


def _refuse_conflict(data: bytes) -> None:
    """Unreadable where Git left both versions of a place in the file, for a person to choose between."""
    begin = _CONFLICT[0].search(data)
    middle = _CONFLICT[1].search(data, begin.end()) if begin else None
    if begin and middle and _CONFLICT[2].search(data, middle.end()):
        line = data.count(b"\n", 0, begin.start()) + 1
        raise Unreadable(
            "the notebook contains Git conflict markers",
            why=f"line {line} begins with <<<<<<<: a merge was not finished",
            next="keep one version of each conflict, save the notebook in JupyterLab and hand it in again",
        )


def _utf8(data: bytes, notes: list[str]) -> bytes:
    """The file as UTF-8, whatever it was saved in; what was not UTF-8 is noted, and no cell is lost by it."""
    if not data.strip():
        raise Unreadable(
            "the notebook is empty", why="the file has no content", next="ask the student for the notebook again"
        )
    for start, called in _ARCHIVES.items():
        if data.startswith(start):
            raise Unreadable(
                f"the notebook is {called}",
                why="the first bytes of the file show this",
                next="unpack it, and use the notebook in it",
            )
    guessed = json.detect_encoding(data[:4]) if len(data) > 3 else "utf-8"
    if guessed.startswith(("utf-16", "utf-32")):
        try:
            text = data.decode(guessed)
        except UnicodeDecodeError as error:
            why = f"the file begins as {guessed.upper()}, but byte {error.start} is not valid {guessed.upper()}"
            raise Unreadable("the notebook is not text", why=why, next=_SAVE_AGAIN) from None
        notes.append(f"the file was saved as {guessed.upper()} instead of UTF-8, and was read as {guessed.upper()}")
        return text.encode("utf-8", "replace")
    data = data.removeprefix(codecs.BOM_UTF8)
    if b"\0" in data[:4096]:
        raise Unreadable("the notebook is not text", why="the file contains null bytes", next=_SAVE_AGAIN)
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        return _from_windows(data, error.start, notes)
    return data


def _from_windows(data: bytes, at: int, notes: list[str]) -> bytes:
    """Text that is not UTF-8: Windows' letters of Western Europe where nothing speaks against it, else with marks.

    Against it: letters that are UTF-8 beside it, and four in a row, as in words of Greek or Cyrillic letters.
    """
    if data.decode("utf-8", "ignore").isascii() and not _FOUR_HIGH.search(data):
        try:
            text = data.decode("cp1252")
        except UnicodeDecodeError:
            pass
        else:
            notes.append("the file was saved in Windows' encoding (cp1252) instead of UTF-8, and was read as cp1252")
            return text.encode()
    lost = data.decode("utf-8", "replace")
    notes.append(f"characters that are not UTF-8 were replaced by \ufffd, the first one at byte {at}; {_SAVE_AGAIN}")
    return lost.encode()


def _lenient(data: bytes, error: BaseException, limits: Limits) -> list[msgspec.Raw]:
    """The cells by way of Python's json: it takes the NaN and the half emoji that Jupyter itself may have written."""
    if isinstance(error, RecursionError):
        raise Unreadable("the notebook is nested too deeply", why="no real notebook is nested this deeply") from None
    if isinstance(error, msgspec.ValidationError):
        raise _not_a_notebook(error)
    if len(data) > limits.lenient_bytes:
        raise Unreadable("the notebook is not JSON", why=str(error)[:200]) from None
    try:
        tree = json.loads(data.decode("utf-8"))
        cells = tree["cells"] if isinstance(tree, dict) else None
        if not isinstance(cells, list):
            raise _not_a_notebook(error)
        return [msgspec.Raw(_dumped(cell)) for cell in cells]
    except (ValueError, RecursionError, MemoryError, KeyError):
        raise Unreadable(
            "the notebook is not JSON", why=str(error)[:200], next="ask the student for the notebook again"
        ) from None


def _dumped(cell: Any) -> bytes:
    if not isinstance(cell, dict):
        return b"null"
    kept = {key: cell[key] for key in ("cell_type", "source", "metadata", "id", "attachments") if key in cell}
    with contextlib.suppress(ValueError, RecursionError):
        json.dumps(cell.get("outputs"), allow_nan=False)
        kept["outputs"] = cell.get("outputs", [])
    return json.dumps(kept, ensure_ascii=False).encode("utf-8", "replace")


def _not_a_notebook(error: BaseException) -> Unreadable:
    return Unreadable(
        "the file is not a notebook of format 4",
        why=str(error)[:200],
        next="open the notebook in JupyterLab, save it, and hand in that file",
    )


def _one(number: int, raw: msgspec.Raw, notes: list[str]) -> SubmittedCell | None:
    try:
        cell = _cell(raw)
    except _JSON_PROBLEMS:
        notes.append(f"cell {number} is malformed and was left out")
        return None
    source = cell.source if isinstance(cell.source, str) else "".join(cell.source)
    source = source.replace("\r\n", "\n").replace("\r", "\n")  # as editors on Windows end a line: not a change
    kind = cell.cell_type if cell.cell_type in ("code", "markdown", "raw") else "raw"
    identity, outputs = _decoded(_text, cell.id, ""), bytes(cell.outputs)
    if kind != "code" or len(outputs) <= len(b"[]"):
        outputs = b""
    return SubmittedCell(
        kind,
        identity,
        source,
        _grade_id(cell.metadata),
        _attachments(cell.attachments),
        outputs=outputs,
        ran_at=_ran_at(cell.metadata),
    )


def _grade_id(metadata: msgspec.Raw) -> str:
    nbgrader = _decoded(_mapping, metadata, {}).get("nbgrader", msgspec.Raw(b"{}"))
    grade_id = _decoded(_mapping, nbgrader, {}).get("grade_id", msgspec.Raw(b'""'))
    return str(_decoded(_text, grade_id, ""))


def _ran_at(metadata: msgspec.Raw) -> str:
    """When a cell began to run, as JupyterLab writes it with "Record timing" on."""
    times = _decoded(_mapping, metadata, {}).get("execution", msgspec.Raw(b"{}"))
    said = _decoded(_mapping, times, {}).get("iopub.execute_input", msgspec.Raw(b'""'))
    return str(_decoded(_text, said, ""))[:_TIME_LETTERS]


def _lab(metadata: msgspec.Raw) -> str:
    """The lab that a released notebook names in its metadata, which copies keep."""
    ours = _decoded(_mapping, metadata, {}).get("edl_labs", msgspec.Raw(b"{}"))
    return str(_decoded(_text, _decoded(_mapping, ours, {}).get("lab", msgspec.Raw(b'""')), ""))


def _attachments(raw: msgspec.Raw) -> dict[str, dict[str, str]] | None:
    return _decoded(_bundles, raw, None) or None


def _decoded(decode: Any, raw: msgspec.Raw, default: Any) -> Any:
    try:
        return decode(raw)
    except _JSON_PROBLEMS:
        return default


def _bearable(cells: tuple[SubmittedCell, ...], notes: list[str], most: int) -> tuple[SubmittedCell, ...]:
    """The cells, without attachments when these are too large."""
    size = sum(
        len(text) for c in cells if c.attachments for bundle in c.attachments.values() for text in bundle.values()
    )
    if size <= most:
        return cells
    notes.append(f"pictures of {size / 1e6:.0f} MB in prose cells were left out")
    return tuple(replace(c, attachments=None) for c in cells)
