"""What a lab may import: public names of edl_labs, the standard library, and what a student's kernel has."""

from __future__ import annotations

import ast
import sys
from functools import lru_cache
from pathlib import Path

from edl_labs._former_paths import today
from edl_labs.course.lab.source import Cell

PUBLIC_MODULES = (
    *("bench", "checks", "clock", "device", "errors", "hardware", "numerics", "pipeline", "plots", "roofline"),
    *("stats", "trace", "ui", "units", "virtual"),
)
# Of these a lab may import what the package itself exports: their modules are the engine's insides.
_CLOSED = ("checks",)
STUDENT_PACKAGES = ("IPython", "ipywidgets", "matplotlib", "numpy", "torch", "torchvision", "tqdm")
_PACKAGE = Path(__file__).resolve().parents[2]


def check_imports(cell: Cell) -> None:
    """SourceError at the first import of `cell` that a student's notebook may not make."""
    for node in ast.walk(cell.tree):
        for path, line in _imported(node):
            problem = _problem(path)
            if problem:
                raise cell.error(
                    f"the lab imports {path}",
                    line=cell.first + line - 1,
                    why=problem,
                    next="import a public name of edl_labs, or write what the cell needs into the lab",
                )


def _imported(node: ast.AST) -> list[tuple[str, int]]:
    """Dotted paths that a node imports or reaches through `edl_labs.`, each with its line in the cell."""
    if isinstance(node, ast.Import):
        return [(alias.name, node.lineno) for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        module = "." * node.level + (node.module or "")
        return [(f"{module}.{alias.name}", node.lineno) for alias in node.names]
    if isinstance(node, ast.Attribute):
        path = _dotted(node)
        return [(path, node.lineno)] if path.startswith("edl_labs.") else []
    if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
        name, value = _dotted(node.func), node.args[0].value
        if name.rpartition(".")[2] in ("import_module", "__import__") and isinstance(value, str):
            return [(value, node.lineno)]
    return []


def _dotted(node: ast.AST) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _problem(path: str) -> str:
    """Why `path` may not be imported, or nothing."""
    top, *rest = path.split(".")
    if path.startswith("."):
        return "a notebook is in no package"
    if path == "__future__.annotations":
        return ""
    if any(part.startswith("_") for part in (top, *rest)):
        return "names that start with an underscore are private"
    if top == "edl_labs":
        return _problem_of_ours(rest)
    if top in STUDENT_PACKAGES or top in sys.stdlib_module_names:
        return "a lab names what it imports" if rest[-1:] == ["*"] else ""
    return f"a student's kernel need not have {top}"


def _problem_of_ours(rest: list[str]) -> str:
    import edl_labs

    if rest[-1:] == ["*"]:
        return "a lab names what it imports"
    if not rest or rest[0] in edl_labs.__all__:
        return ""
    rest = today(".".join(["edl_labs", *rest])).split(".")[1:]
    if rest[0] not in PUBLIC_MODULES:
        return f"edl_labs.{rest[0]} is not public: labs use the facade and {', '.join(PUBLIC_MODULES)}"
    if rest[0] in _CLOSED and len(rest) > 1:
        exported = _names(_PACKAGE / rest[0]) or frozenset()
        return "" if rest[1:] == [n for n in rest[1:2] if n in exported] else f"edl_labs.{rest[0]} exports no such name"
    return _problem_of_module(rest)


def _problem_of_module(rest: list[str]) -> str:
    place = _PACKAGE
    for depth, part in enumerate(rest):
        if (place / part).is_dir():
            place = place / part
        elif (place / f"{part}.py").is_file():
            place = place / f"{part}.py"
        else:
            names = _names(place)
            known = names is None or part in names or depth < len(rest) - 1
            return "" if known else f"edl_labs.{'.'.join(rest[:depth])} has no public name {part}"
    return ""


@lru_cache(maxsize=64)
def _names(place: Path) -> frozenset[str] | None:
    """The public names of a module as its text says, None where only running it would tell."""
    path = place / "__init__.py" if place.is_dir() else place
    if not path.is_file():
        return frozenset()
    names: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name == "__getattr__":
            return None
        names |= defined(node)
    return frozenset(n for n in names if not n.startswith("_"))


def defined(node: ast.stmt) -> set[str]:
    """The names that one statement binds."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {node.name}
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {(alias.asname or alias.name).split(".")[0] for alias in node.names}
    if isinstance(node, ast.Assign):
        return {n.id for target in node.targets for n in ast.walk(target) if isinstance(n, ast.Name)}
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return {node.target.id}
    return set()
