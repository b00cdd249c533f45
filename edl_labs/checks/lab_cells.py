"""Which cell of a lab defines a name: a cell that has not run is no mistake of the code that needs it."""

from __future__ import annotations

import json
import symtable
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from edl_labs.checks.lab_exercises import exercises_folder
from edl_labs.checks.lab_facts import lab_of
from edl_labs.errors import EdlError

RUN_ABOVE = "run the cells above (Run, Run All Above Selected Cell), then this one again"


def missing_name(error: NameError, exercise: str) -> str | None:
    """One line for a name that another cell of the exercise's lab defines; None where none of them does."""
    name = error.name or ""
    if isinstance(error, UnboundLocalError) or not name:
        return None
    try:
        cell = defining_cell(lab_of(exercise).lab, name)
    except EdlError:
        return None
    return f"This cell needs {name}, which {cell} defines and which is not there now: {RUN_ABOVE}." if cell else None


def defining_cell(lab: str, name: str) -> str:
    """How messages name the first cell of the released lab that defines `name`; empty where none does."""
    line = _defined(lab).get(name, "")
    return f"an earlier cell (it begins with `{line}`)" if line else ""


def _defined(lab: str) -> Mapping[str, str]:
    for folder in (exercises_folder().parent, exercises_folder().parents[1]):
        path = folder / "labs" / lab / f"{lab}.ipynb"
        if path.is_file():
            return _read(path, path.stat().st_mtime_ns)
    return {}


@lru_cache(maxsize=8)
def _read(path: Path, _changed: int) -> Mapping[str, str]:
    """The first line of the first cell that defines each name."""
    found: dict[str, str] = {}
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    except (OSError, ValueError, KeyError):
        return found
    for source in (_source(cell) for cell in cells if cell["cell_type"] == "code"):
        for name in bound_names(source):
            found.setdefault(name, _first_line(source))
    return found


def _source(cell: dict[str, Any]) -> str:
    source = cell["source"]
    return source if isinstance(source, str) else "".join(source)


def bound_names(source: str) -> list[str]:
    """The globals that a cell binds: by assignment, import, def, class, for, with.

    >>> bound_names("import torch; x = [y for y in (1, 2)]")
    ['torch', 'x']
    """
    try:
        symbols = symtable.symtable(source, "cell", "exec").get_symbols()
    except SyntaxError:
        return []
    return sorted(one.get_name() for one in symbols if one.is_assigned() or one.is_imported() or one.is_namespace())


def _first_line(source: str) -> str:
    lines = [line.strip() for line in source.splitlines()]
    return next((line for line in lines if line and not line.startswith("#")), "")
