"""Which cell of a lab defines a name: a cell that has not run is no mistake of the code that needs it."""

from __future__ import annotations

import ast
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
    line = next((_first_line(source) for source in _cells(lab).values() if name in bound_names(source)), "")
    return f"an earlier cell (it begins with `{line}`)" if line else ""


def asked_for(lab: str, exercise: str) -> str:
    """The functions that an exercise's cell asks for, each with what its docstring says it returns; empty if unknown.

    `finish_times(program, *, launch_s)`: the seconds at which …
    """
    try:
        cell = ast.parse(_cells(lab).get(f"solve-{exercise.replace('_', '-')}", ""))
    except SyntaxError:
        return ""
    functions = [node for node in cell.body if isinstance(node, ast.FunctionDef) and ast.get_docstring(node)]
    said = [(f"{one.name}({ast.unparse(one.args)})", str(ast.get_docstring(one)).split("\n")[0]) for one in functions]
    return "; ".join(f"`{signature}`: {doc.strip()}" for signature, doc in said)


def section_of(lab: str, exercise: str) -> str:
    """The heading of the section of the released lab in which an exercise stands; empty where that is unknown."""
    places = {f"{kind}-{exercise.replace('_', '-')}" for kind in ("solve", "explain")}
    heading = ""
    for place, kind, source in _all_cells(lab):
        if kind == "markdown":
            heading = next((line[3:].strip() for line in source.splitlines() if line.startswith("## ")), heading)
        if place in places:
            return heading
    return ""


def release_of(lab: str) -> str:
    """The digest of the lab's notebook that was released with this edl_labs; empty where it is not there."""
    path = _notebook(lab)
    if path is None:
        return ""
    try:
        return str(json.loads(path.read_text(encoding="utf-8"))["metadata"]["edl_labs"]["release"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _notebook(lab: str) -> Path | None:
    """The released notebook: in the wheel beside the exercises, in a course beside its folders."""
    folders = (exercises_folder().parent, exercises_folder().parents[1])
    found = (folder / "labs" / lab / f"{lab}.ipynb" for folder in folders)
    return next((path for path in found if path.is_file()), None)


def _cells(lab: str) -> Mapping[str, str]:
    """The sources of the code cells, by id (by place where they have none), in order."""
    return {place: source for place, kind, source in _all_cells(lab) if kind == "code"}


def _all_cells(lab: str) -> tuple[tuple[str, str, str], ...]:
    path = _notebook(lab)
    return () if path is None else _read(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=8)
def _read(path: Path, _changed: int) -> tuple[tuple[str, str, str], ...]:
    """Id, kind and source of each cell, in order."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        return tuple((c.get("id", str(n)), c["cell_type"], _source(c)) for n, c in enumerate(cells))
    except (OSError, ValueError, KeyError):
        return ()


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
