"""Which cell of a lab defines a name: a cell that has not run is no mistake of the code that needs it, and says so."""

from __future__ import annotations

import ast
import builtins
import difflib
import json
import symtable
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from edl_labs.checks.lab_exercises import folder_of
from edl_labs.checks.lab_facts import lab_of
from edl_labs.errors import EdlError

RUN_ABOVE = "run the cells above (menu Run, Run All Above Selected Cell), then this one again"
_TOLD: dict[int, str] = {}  # by shell: the lab that its notebook is


def missing_name(error: NameError, exercise: str) -> str | None:
    """One line for a name that another cell of the exercise's lab defines; None where none of them does."""
    name = error.name or ""
    if isinstance(error, UnboundLocalError) or not name:
        return None
    try:
        return needs_cell_above(name, lab_of(exercise).lab) or None
    except EdlError:
        return None


def needs_cell_above(name: str, lab: str) -> str:
    """One line for an undefined name that a cell of the lab defines; empty where none of them does."""
    cell = defining_cell(lab, name)
    return f"This cell needs {name}, which is undefined now. It is defined in {cell}: {RUN_ABOVE}." if cell else ""


def tell_missing_names(lab: str) -> None:
    """From now on, a cell of this notebook that ends with a NameError is followed by a line that says what to do.

    It changes nothing else of how cells run; outside a notebook it does nothing.
    """
    from IPython import get_ipython

    shell = get_ipython()
    if shell is None:
        return
    is_new = id(shell) not in _TOLD
    _TOLD[id(shell)] = lab
    if is_new:
        shell.events.register("post_run_cell", lambda result: _tell(result, shell))


def _tell(result: Any, shell: Any) -> None:
    error = getattr(result, "error_in_exec", None)
    if isinstance(error, NameError) and not isinstance(error, UnboundLocalError) and error.name:
        line = about_name(error.name, _TOLD[id(shell)], known=shell.user_ns)
        print(line, end="\n" if line else "")


def about_name(name: str, lab: str, *, known: Iterable[str]) -> str:
    """One line about a name that a cell of a lab needs and that is not among the `known`; empty where there is none.

    >>> about_name("hnit", "", known=["hint", "check"])
    'There is no hnit; did you mean hint?'
    """
    if above := needs_cell_above(name, lab):
        return above
    public = [one for one in known if not one.startswith("_")]
    near = difflib.get_close_matches(name, [*public, *dir(builtins)], n=1)
    return f"There is no {name}; did you mean {near[0]}?" if near else ""


def defining_cell(lab: str, name: str) -> str:
    """How messages name the first cell of the released lab that defines `name`; empty where none does."""
    line = next((_first_line(source) for source in _cells(lab).values() if name in bound_names(source)), "")
    return f"an earlier cell (it starts with `{line}`)" if line else ""


def expected_signature(lab: str, exercise: str) -> str:
    """The functions that an exercise's cell asks for, each with what its docstring says it returns; empty if unknown.

    `finish_times(program, *, launch_s)`: the seconds at which …
    """
    try:
        cell = ast.parse(_cells(lab).get(f"solve-{exercise.replace('_', '-')}", ""))
    except SyntaxError:
        return ""
    functions = [node for node in cell.body if isinstance(node, ast.FunctionDef) and ast.get_docstring(node)]
    docs = [" ".join(str(ast.get_docstring(one)).partition("\n\n")[0].split()) for one in functions]
    said = zip(functions, docs, strict=True)
    return "; ".join(f"`{one.name}({ast.unparse(one.args)})`: {doc.removesuffix('.')}" for one, doc in said)


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
    """The digest of the lab's notebook that was released with this edl_labs; empty where there is none."""
    path = _notebook(lab)
    if path is None:
        return ""
    try:
        return str(json.loads(path.read_text(encoding="utf-8"))["metadata"]["edl_labs"]["release"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _notebook(lab: str) -> Path | None:
    """The released notebook: in the wheel beside the exercises, in a course beside its folders."""
    home = folder_of(lab)
    folders = (home.parent, home.parents[1])
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
        return tuple((c.get("id", str(n)), c["cell_type"], "".join(c["source"])) for n, c in enumerate(cells))
    except (OSError, ValueError, KeyError):
        return ()


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
