"""Reads notebooks from anyone: returns a valid notebook, or raises an error with one clear sentence."""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from edl_labs.errors import UsageError

MOST_BYTES = 100_000_000  # far above a notebook full of plots (some megabytes); reading it takes several times its size
_CHECK = re.compile(r"^\s*check\(\s*(['\"])([A-Za-z_]\w*)\1\s*\)\s*;?\s*$")


def read_notebook(path: Path) -> Any:
    """The notebook at `path` as nbformat 4 (older formats are upgraded in memory); UsageError for anything else."""
    data = _json(path, _text(path))
    if not isinstance(data, dict) or ("nbformat" not in data and "cells" not in data and "worksheets" not in data):
        raise UsageError(
            f"{path.name} is not a notebook", why="its JSON has neither `nbformat` nor `cells`", next=_SAVE
        )
    language = _language(data)
    if language.lower() not in ("python", "ipython", "python3"):
        raise UsageError(
            f"{path.name} is a {language} notebook",
            why="the labs are in Python",
            next="choose a Python kernel in JupyterLab, and save the notebook",
        )
    return _upgraded(path, _bare(data))


def code_cells(notebook: Any) -> Iterator[tuple[int, Any]]:
    """The code cells that hold code, with their places among all cells."""
    for index, cell in enumerate(notebook.cells):
        if cell.cell_type == "code" and cell.source.strip():
            yield index, cell


def grade_id(cell: Any) -> str:
    """nbgrader's name of a cell, or nothing."""
    marks = cell.metadata.get("nbgrader")
    return str(marks.get("grade_id", "")) if isinstance(marks, dict) else ""


def check_name(cell: Any) -> str:
    """The exercise that this cell checks, or nothing: by nbgrader's mark, else by the call it consists of."""
    marks = cell.metadata.get("nbgrader")
    if cell.cell_type != "code":
        return ""
    if isinstance(marks, dict) and marks.get("grade") and not marks.get("solution"):
        return str(marks.get("grade_id", "")).removeprefix("check_")
    called = _CHECK.match(cell.source)
    return called.group(2) if called else ""


def explain_name(cell: Any) -> str:
    """The exercise that this cell answers in words and a person marks, or nothing."""
    marks = cell.metadata.get("nbgrader")
    graded = isinstance(marks, dict) and marks.get("grade") and marks.get("solution")
    return str(marks.get("grade_id", "")) if graded else ""


def cell_points(cell: Any) -> float | None:
    """The points that nbgrader's mark of this cell states, or None."""
    marks = cell.metadata.get("nbgrader")
    points = marks.get("points") if isinstance(marks, dict) else None
    return float(points) if isinstance(points, (int, float)) and not isinstance(points, bool) else None


def first_line(cell: Any) -> str:
    """A cell's first line of code that says something, cut to 60 characters."""
    lines = [line.strip() for line in cell.source.splitlines()]
    line = next((line for line in lines if line and not line.startswith("#")), lines[0] if lines else "")
    return line if len(line) <= 60 else f"{line[:59]}…"


def parameter_names(notebook: Any) -> tuple[str, ...]:
    """The names that the cell tagged `parameters` assigns; none when there is no such cell."""
    for _, cell in code_cells(notebook):
        if "parameters" in cell.metadata.get("tags", []):
            return _assigned(cell.source)
    return ()


def _assigned(source: str) -> tuple[str, ...]:
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise UsageError(
            "the parameters cell is not valid Python",
            why=f"line {error.lineno}: {error.msg}",
            next="write only plain assignments in it",
        ) from error
    targets = [t for node in tree.body if isinstance(node, ast.Assign) for t in node.targets]
    targets += [node.target for node in tree.body if isinstance(node, ast.AnnAssign) and node.value is not None]
    names = [n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)]
    return tuple(dict.fromkeys(names))


_SAVE = "open it in JupyterLab, save it, and try again"
_RESTORE = "restore it from .ipynb_checkpoints next to it, or get a fresh copy with edl-labs start"


def _text(path: Path) -> str:
    if path.is_dir():
        raise UsageError(
            f"{path.name} is a folder", why="a notebook file was expected", next="pass the .ipynb file in it"
        )
    if not path.is_file():
        raise UsageError(f"there is no file {path.name}", next="check the name and the current folder")
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise UsageError(
                f"{path.name} is too large",
                why=f"it has {size / 1e6:.0f} MB, but the limit is 100 MB",
                next="clear its outputs",
            )
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        why = f"byte {error.start} is not UTF-8"
        raise UsageError(f"{path.name} is not a notebook", why=why, next="save it again in JupyterLab") from error
    except OSError as error:
        raise UsageError(f"{path.name} cannot be read", why=error.strerror or str(error)) from error


def _json(path: Path, text: str) -> Any:
    if not text.strip():
        raise UsageError(f"{path.name} is empty", next="get a fresh copy with edl-labs start")
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        why = f"its JSON is invalid at line {error.lineno}: {error.msg}"
        raise UsageError(f"{path.name} is not a notebook, or is incomplete", why=why, next=_RESTORE) from error
    except (RecursionError, ValueError) as error:
        why = f"its JSON cannot be read: {type(error).__name__}"
        raise UsageError(f"{path.name} is not a notebook", why=why, next=_RESTORE) from error


def _language(data: dict[str, Any]) -> str:
    metadata = data.get("metadata")
    for key, field in (("kernelspec", "language"), ("language_info", "name")):
        part = metadata.get(key) if isinstance(metadata, dict) else None
        if isinstance(part, dict) and isinstance(part.get(field), str):
            return str(part[field])
    return "python"


def _bare(data: dict[str, Any]) -> dict[str, Any]:
    """The notebook without what a fresh run makes anew: a fault in an output must not stop it from running."""
    if isinstance(data.get("metadata"), dict):
        data["metadata"] = {k: v for k, v in data["metadata"].items() if k not in ("kernelspec", "widgets")}
        data["metadata"].pop("language_info", None)
    sheets = data["worksheets"] if isinstance(data.get("worksheets"), list) else [data]
    for sheet in sheets:
        cells = sheet.get("cells") if isinstance(sheet, dict) else None
        for cell in cells if isinstance(cells, list) else []:
            if isinstance(cell, dict) and cell.get("cell_type") == "code":
                cell["outputs"] = []
                cell["prompt_number" if "worksheets" in data else "execution_count"] = None
    return data


def _upgraded(path: Path, data: dict[str, Any]) -> Any:
    import nbformat

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            notebook = nbformat.reader.reads(json.dumps(data))
            notebook = nbformat.v4.upgrade(nbformat.convert(notebook, 4))
            _distinct_ids(notebook.cells)
            nbformat.validate(notebook, relax_add_props=True)
    except Exception as error:  # nbformat raises many kinds on broken data; each means the same here
        first = str(error).strip().partition("\n")[0][:200]
        raise UsageError(f"{path.name} is not a valid notebook", why=first, next=_SAVE) from error
    return notebook


def _distinct_ids(cells: Any) -> None:
    """Ids that are absent or given twice are made anew, so that a merged notebook still runs."""
    seen: set[str] = set()
    for index, cell in enumerate(cells):
        if not cell.get("id") or cell["id"] in seen:
            cell["id"] = f"cell-{index}"
        seen.add(cell["id"])
