"""What a class's kernels share: the modules that their parent imports before the first student, and no more."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from edl_labs.course.assignment import Assignment
from edl_labs.course.sandbox import Level, Limits
from edl_labs.course.sandbox.kernel.pool import KernelPool

# Imported whether or not the text asks for them: the library does, where it measures or draws.
ALWAYS = ("edl_labs", "numpy", "torch", "matplotlib.pyplot", "ipywidgets")
# What torch imports when a process makes its first optimizer: 900 modules, 1.5 s of processor time each time.
BEHIND_OPTIMIZERS = "torch._dynamo"
# Others of a student's kernel that may be imported before a fork: they start no thread.
_FORKABLE = ("torchvision", "scipy", "pandas", "PIL", "tqdm")
_PACKAGE = Path(__file__).resolve().parents[2]
_PROBES = ("edl_labs.checks", "edl_labs.checks._check", "edl_labs.checks.evidence", "edl_labs.checks.caught_output")


def begin_pool(level: Level, limits: Limits) -> KernelPool:
    """A pool whose parent process starts while its caller goes on, with what every lab's kernels import."""
    return KernelPool(level=level, limits=limits, preload=tuple(filter(_is_module, (*ALWAYS, *_PROBES))), wait=False)


def preload_of(assignment: Assignment) -> tuple[str, ...]:
    """Modules to import before kernels are forked, in the order of their first use."""
    asked = [name for cell in assignment.cells if cell.kind == "code" for name in imported(cell.solution)]
    wanted = dict.fromkeys((*ALWAYS, *_PROBES))
    wanted.update(dict.fromkeys(name for name in asked if _may_be(name)))
    if not assignment.own_exercises:
        wanted[f"edl_labs.exercises.{assignment.name}"] = None
    if any("optim." in text for text in _texts(assignment)):
        wanted[BEHIND_OPTIMIZERS] = None
    return tuple(name for name in wanted if _is_module(name))


def _texts(assignment: Assignment) -> Iterator[str]:
    """The lab's code, and that of its probes, read and not imported."""
    yield from (cell.solution for cell in assignment.cells if cell.kind == "code")
    probes = _PACKAGE / "exercises" / assignment.name
    if not assignment.own_exercises and probes.is_dir():
        yield from (path.read_text(encoding="utf-8") for path in sorted(probes.glob("*.py")))


def imported(code: str) -> list[str]:
    """Dotted names that `code` imports; some may be attributes, not modules. Empty when it does not parse."""
    try:
        return [name for node in ast.walk(ast.parse(code)) for name in _names(node)]
    except (SyntaxError, ValueError, RecursionError):
        return []


def _names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield node.module
        if node.module.partition(".")[0] == "edl_labs":
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _may_be(name: str) -> bool:
    return name.partition(".")[0] in ("edl_labs", *_FORKABLE)


def _is_module(name: str) -> bool:
    """Whether it can be imported, found out without importing anything."""
    top, _, rest = name.partition(".")
    if top != "edl_labs":
        return find_spec(top) is not None
    path = _PACKAGE.joinpath(*rest.split(".")) if rest else _PACKAGE
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()
