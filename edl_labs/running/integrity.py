"""Which locked cells of a notebook are not what was released: missing, edited or doubled."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from edl_labs.running.notebooks import grade_id
from edl_labs.running.text import count
from edl_labs.running.values import Failure

TAMPERED = 5


def tampering(notebook: Any, locked: Mapping[str, str]) -> tuple[Failure, ...]:
    """One failure for each locked cell that is not as released. `locked` maps cell ids to digests of their sources.

    A cell that lost its id is known by nbgrader's name of it, and one that lost both by its text.
    """
    found = ((cell_id, digest, _candidates(notebook, cell_id, digest, locked)) for cell_id, digest in locked.items())
    return tuple(failure for cell_id, digest, cells in found for failure in _wrong(cell_id, digest, cells))


def _candidates(notebook: Any, cell_id: str, digest: str, locked: Mapping[str, str]) -> list[Any]:
    graded = grade_name(cell_id)
    named = [cell for cell in notebook.cells if cell.get("id") == cell_id or grade_id(cell) == graded]
    loose = [c for c in notebook.cells if not grade_id(c) and c.get("id") not in locked and _same(c.source, digest)]
    return named + loose


def grade_name(cell_id: str) -> str:
    """nbgrader's name of the locked cell with this id.

    >>> grade_name("check-finish-times"), grade_name("explain-why-so")
    ('check_finish_times', 'why_so_question')
    """
    role, _, name = cell_id.partition("-")
    name = name.replace("-", "_")
    return f"{name}_question" if role == "explain" else f"{role}_{name}"


def _wrong(cell_id: str, digest: str, cells: list[Any]) -> list[Failure]:
    if not cells:
        what, why = f"the locked cell {cell_id} is missing", "it was deleted, or its id and its nbgrader mark are gone"
    elif len(cells) > 1:
        what, why = f"the locked cell {cell_id} is there {count(len(cells), 'time')}", "it was copied"
    elif not _same(cells[0].source, digest):
        what, why = f"the locked cell {cell_id} was edited", "its text is not what was released"
    else:
        return []
    step = "take that cell from a fresh copy of the lab (edl-labs start); leave your own cells as they are"
    return [Failure("tampered", what, why, step, TAMPERED)]


def _same(source: str, digest: str) -> bool:
    # Editors may change line ends and the white space at the end, which change nothing that runs.
    plain = source.replace("\r\n", "\n")
    spellings = {source, plain, plain.rstrip(), plain.rstrip() + "\n"}
    return any(hashlib.sha256(s.encode("utf-8", "surrogatepass")).hexdigest() == digest for s in spellings)
