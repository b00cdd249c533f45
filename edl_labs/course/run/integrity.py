"""Which locked cells of a notebook are not what was released: missing, edited or doubled."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from edl_labs.course.run.notebook_file import grade_id
from edl_labs.course.run.run_report import RunFailure
from edl_labs.units import counted

TAMPERED = 5  # the exit code that README promises


def tampering(notebook: Any, locked: Mapping[str, str]) -> dict[str, RunFailure]:
    """A failure for each locked cell that is not as released, by its id. `locked` maps ids to digests of sources.

    A cell that lost its id is known by nbgrader's name of it, and one that lost both by its text.
    """
    found = {cell_id: _wrong(cell_id, digest, _cells(notebook, cell_id, digest)) for cell_id, digest in locked.items()}
    return {cell_id: failure for cell_id, failure in found.items() if failure is not None}


def _cells(notebook: Any, cell_id: str, digest: str) -> list[Any]:
    graded = grade_name(cell_id)
    named = [cell for cell in notebook.cells if cell.get("id") == cell_id or grade_id(cell) == graded]
    # A student may well write the same call into a cell of their own: by its text a cell is only known at the last.
    return named or [c for c in notebook.cells if not grade_id(c) and _same(c.source, digest)][:1]


def grade_name(cell_id: str) -> str:
    """nbgrader's name of the locked cell with this id.

    >>> grade_name("check-finish-times"), grade_name("explain-why-so")
    ('check_finish_times', 'why_so_question')
    """
    role, _, name = cell_id.partition("-")
    name = name.replace("-", "_")
    return f"{name}_question" if role == "explain" else f"{role}_{name}"


def _wrong(cell_id: str, digest: str, cells: list[Any]) -> RunFailure | None:
    if not cells:
        what, why = f"the locked cell {cell_id} is missing", "it was deleted, or its id and its nbgrader mark are gone"
    elif len(cells) > 1:
        what, why = f"the locked cell {cell_id} is there {counted(len(cells), 'time')}", "it was copied"
    elif not _same(cells[0].source, digest):
        what, why = f"the locked cell {cell_id} was edited", "its text is not what was released"
    elif cell_id.startswith("check-") != (cells[0].cell_type == "code"):
        what, why = f"the locked cell {cell_id} was edited", f"it was made a {cells[0].cell_type} cell"
    else:
        return None
    step = "take that cell from a fresh copy of the lab (edl-labs start); leave your own cells as they are"
    return RunFailure("tampered", what, why, step, TAMPERED)


def _same(source: str, digest: str) -> bool:
    # Editors may change line ends and the white space at the end, which change nothing that runs.
    plain = source.replace("\r\n", "\n")
    spellings = {source, plain, plain.rstrip(), plain.rstrip() + "\n"}
    return any(hashlib.sha256(s.encode("utf-8", "surrogatepass")).hexdigest() == digest for s in spellings)
