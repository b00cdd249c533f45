"""Which cells marks need: the student's own, what the lab always gives, and whatever defines a name that those use.

A released cell that is unchanged, and whose names nobody needs, plots or measures for the reader: it does not run. The
analysis is of names, over the whole notebook, and errs on the side of running; where it cannot decide, all cells run.
"""

from __future__ import annotations

import ast
import symtable
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from edl_labs.course.grade.plain_code import IMMUTABLE, bindings, cannot_change, is_plain
from edl_labs.course.grade.plan import MarkingPlan, PlannedCell
from edl_labs.course.grade.shared_state import SharedState, Step, steps_of

_ALWAYS = ("setup", "parameters")  # the ids that the build gives the first two cells of every lab
_UNDECIDABLE = frozenset((
    "exec", "eval", "globals", "locals", "vars", "dir", "get_ipython", "__import__", "setattr", "delattr", "In",
    "Out"
))  # fmt: skip
_LABS_KEPT = 512  # released cells analysed once: some 50 a lab


@dataclass(frozen=True)
class CellNames:
    """What one cell does to names: `loads` and `binds` at the notebook's level, `touches` what it may alter.

    `defines`: it holds definitions and constants alone. `decidable`: this is all that it does to names.
    """

    loads: frozenset[str] = frozenset()
    binds: frozenset[str] = frozenset()
    touches: frozenset[str] = frozenset()
    fixed: frozenset[str] = frozenset()
    """Of what it binds: functions, classes, modules and values that nobody can alter."""
    defines: bool = False
    decidable: bool = True
    steps: tuple[Step, ...] = ()
    """Its statements, for what they may alter together with those of other cells."""


def thrifty(plan: MarkingPlan) -> MarkingPlan:
    """The plan in which released cells that no mark needs do not run; the plan itself where all of them must."""
    cells = plan.cells
    mine = [cell.source for cell in cells if cell.runs and not is_released(cell)]
    given = [cell.source for cell in cells if cell.runs and is_released(cell)]
    if not is_plain(mine, beside=given):
        return plan
    known = [names_of(cell.source) if cell.runs else CellNames() for cell in cells]
    if not all(names.decidable for names in known):
        return plan
    needed = _needed(plan, known)
    spared = [cell.runs and index not in needed for index, cell in enumerate(cells)]
    if not any(spared):
        return plan
    kept = (replace(cell, runs=cell.runs and not left) for cell, left in zip(cells, spared, strict=True))
    return replace(plan, cells=tuple(kept))


def is_released(cell: PlannedCell) -> bool:
    """Whether a cell that runs is the instructor's own text, word for word, and answers nothing."""
    known = cell.known
    return known is not None and known.role != "solve" and cell.source.strip() == known.source.strip()


def _needed(plan: MarkingPlan, known: list[CellNames]) -> set[int]:
    """The cells that run: roots, and by their names whatever else."""
    running = [index for index, cell in enumerate(plan.cells) if cell.runs]
    roots = {index for index in running if _is_root(plan.cells[index])}
    needed = roots | {index for index in running if known[index].defines}
    names = {name for index in roots for name in known[index].loads}
    state = SharedState([step for index in running for step in known[index].steps])
    altered = {index: state.altered(known[index].steps) for index in running}
    while True:
        fixed = _fixed(known, running, names)
        asked = {name for index in needed for name in state.asked(known[index].steps)}
        seen = state.needed(names | asked)
        more = {
            index
            for index in running
            if known[index].binds & names
            or known[index].touches & (names - fixed)
            or _patches(known[index], names)
            or altered[index] & seen
        }
        found = names | {name for index in more for name in known[index].loads}
        if more <= needed and found == names:
            return needed
        needed, names = needed | more, found


def _is_root(cell: PlannedCell) -> bool:
    known = cell.known
    return known is None or not is_released(cell) or known.role == "locked" or known.id in _ALWAYS


def _fixed(known: list[CellNames], running: list[int], names: set[str]) -> set[str]:
    """Of `names`, those that only stand for what nobody can alter."""
    loose = {name for index in running for name in known[index].binds - known[index].fixed}
    return names - loose


def _patches(names: CellNames, needed: set[str]) -> bool:
    """Whether the cell assigns an attribute or item of something needed, be it a module or a function."""
    return bool({name.removeprefix(".") for name in names.touches if name.startswith(".")} & needed)


@lru_cache(maxsize=_LABS_KEPT)
def names_of(source: str) -> CellNames:
    """What a cell does to names; not `decidable` where it cannot be told."""
    try:
        tree, table = ast.parse(source), symtable.symtable(source, "<cell>", "exec")
        loads = frozenset(_loads(table)) - frozenset(_of_handlers(tree))
        starred = any(isinstance(n, ast.ImportFrom) and n.names[0].name == "*" for n in ast.walk(tree))
        if starred or loads & (_UNDECIDABLE - frozenset(_of_objects(tree))):
            return CellNames(decidable=False)
        binds = frozenset(_binds(table))
        altered = dict(bindings(tree.body))
        fixed = frozenset(name for name in binds if _stays(altered.get(name)) and _once(tree, name))
        touches, steps = frozenset(_touches(tree)), steps_of(tree, loads)
        return CellNames(loads, binds, touches, fixed, _defines(tree), steps=steps)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return CellNames(decidable=False)


def _of_handlers(tree: ast.Module) -> Iterator[str]:
    """Names that `except` gives an error, where the cell uses them for nothing else: Python itself takes them away."""
    handlers = [node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler) and node.name]
    for handler in handlers:
        within = sum(isinstance(n, ast.Name) and n.id == handler.name for n in ast.walk(handler))
        others = sum(other is not handler and other.name == handler.name for other in handlers)
        if not others and within == sum(isinstance(n, ast.Name) and n.id == handler.name for n in ast.walk(tree)):
            yield str(handler.name)


def _of_objects(tree: ast.Module) -> Iterator[str]:
    """`vars` and `dir` where each of their calls asks about an object, not about the notebook's names."""
    for name in ("vars", "dir"):
        calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and n.args and _root(n.func) == name]
        if len(calls) == sum(isinstance(n, ast.Name) and n.id == name for n in ast.walk(tree)):
            yield name


def _loads(table: symtable.SymbolTable, *, top: bool = True) -> Iterator[str]:
    """Names of the notebook that a cell's code refers to, functions' bodies included."""
    for symbol in table.get_symbols():
        if symbol.is_referenced() and (top or symbol.is_global()):
            yield symbol.get_name()
    for child in table.get_children():
        yield from _loads(child, top=False)


def _binds(table: symtable.SymbolTable, *, top: bool = True) -> Iterator[str]:
    for symbol in table.get_symbols():
        made = symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()
        if made and (top or symbol.is_declared_global()):
            yield symbol.get_name()
    for child in table.get_children():
        yield from _binds(child, top=False)


def _touches(tree: ast.Module) -> Iterator[str]:
    """Names whose object a cell may alter: its methods called, handed to a call; with a dot: assigned in."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(ctx=ast.Store() | ast.Del()) | ast.Subscript(ctx=ast.Store() | ast.Del()):
                yield from (root, f".{root}") if (root := _root(node)) else ()
            case ast.Call(func=ast.Attribute() as method):
                yield _root(method)
                yield from _handed(node)
            case ast.Call():
                yield from _handed(node)
            case ast.AugAssign(target=ast.Name(id=name)):
                yield name
            case (
                ast.For(iter=ast.Name(id=name))
                | ast.comprehension(iter=ast.Name(id=name))
                | ast.Starred(value=ast.Name(id=name))
            ):
                yield name


def _handed(call: ast.Call) -> Iterator[str]:
    for given in (*call.args, *(keyword.value for keyword in call.keywords)):
        yield from (node.id for node in ast.walk(given) if isinstance(node, ast.Name))


def _root(node: ast.AST) -> str:
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _stays(value: ast.AST | None) -> bool:
    return isinstance(value, IMMUTABLE) or (isinstance(value, ast.expr) and cannot_change(value))


def _once(tree: ast.Module, name: str) -> bool:
    """Whether the cell binds the name in one place, at its top."""
    stores = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)]
    return len(stores) <= 1


def _defines(tree: ast.Module) -> bool:
    """Whether a cell costs nothing: definitions, imports and constants."""
    return all(
        isinstance(statement, (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom))
        or (isinstance(statement, ast.Assign) and cannot_change(statement.value))
        or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
        for statement in tree.body
    )
