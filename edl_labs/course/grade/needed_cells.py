"""Which cells marks need: the student's own, what the lab always gives, and whatever defines a name that those use.

A released cell that is unchanged, and whose names nobody needs, plots or measures for the reader: it does not run. The
analysis is of names, over the whole notebook, and errs on the side of running; where it cannot decide, all cells run.
"""

from __future__ import annotations

import ast
import symtable
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from edl_labs.course.assignment import PARAMETERS
from edl_labs.course.grade.cell_steps import Step, steps_of
from edl_labs.course.grade.live_names import live_names
from edl_labs.course.grade.only_read import only_read
from edl_labs.course.grade.plain_code import cannot_change, imports_displays, is_history, is_plain, parsed
from edl_labs.course.grade.plan import MarkingPlan, PlannedCell
from edl_labs.course.grade.shared_state import SharedState
from edl_labs.course.grade.stored_names import root_of
from edl_labs.course.grade.syntax_walk import walk

_ALWAYS = ("setup", PARAMETERS)  # the ids that the build gives the first two cells of every lab
_UNDECIDABLE = frozenset((
    "exec", "eval", "globals", "locals", "vars", "dir", "get_ipython", "__import__", "setattr", "delattr", "In",
    "Out", "__builtins__", "compile", "breakpoint"
))  # fmt: skip
_REACHING = frozenset((
    "__builtins__", "__delattr__", "__globals__", "__setattr__", "_getframe", "currentframe", "f_globals", "f_locals",
    "import_module", "user_global_ns", "user_ns"
))  # fmt: skip
_INSIDE = frozenset(("__main__", "builtins", "code", "codeop", "ctypes", "gc", "IPython", "runpy"))
_SHOWN = 4  # names in a reason: one line
_LABS_KEPT = 512  # released cells analysed once: some 50 a lab


@dataclass(frozen=True)
class CellNames:
    """What one cell does to names at the notebook's level."""

    binds: frozenset[str] = frozenset()
    live: frozenset[str] = frozenset()
    """What it takes from other cells as it runs; with what its functions take `later`, all that it takes."""
    later: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()
    """What it binds, and refers to only after that."""
    asks: frozenset[str] = frozenset()
    """Of `live`, what it asks outside of functions' bodies."""
    defines: bool = False
    """It holds definitions and constants alone."""
    decidable: bool = True
    """This is all that it does to names."""
    steps: tuple[Step, ...] = ()
    """Its statements, for what they may alter together with those of other cells."""

    @property
    def taken(self) -> frozenset[str]:
        """All names of other cells that it may use, now or later."""
        return self.live | self.later


def thrifty(plan: MarkingPlan) -> MarkingPlan:
    """The plan in which released cells that no mark needs do not run; the plan itself where all of them must."""
    needed = set(why_needed(plan))
    spared = [cell.runs and index not in needed for index, cell in enumerate(plan.cells)]
    if not any(spared):
        return plan
    kept = (replace(cell, runs=cell.runs and not left) for cell, left in zip(plan.cells, spared, strict=True))
    return replace(plan, cells=tuple(kept))


def why_needed(plan: MarkingPlan) -> dict[int, str]:
    """The cells that run although not all of them must, by their numbers, each with its reason in a few words."""
    running = [index for index, cell in enumerate(plan.cells) if cell.runs]
    known = {index: names_of(plan.cells[index].source) for index in running}
    odd = next((index for index in running if not known[index].decidable), None)
    if odd is not None:
        return dict.fromkeys(running, f"cell {odd + 1} may use or bind names that its text does not show")
    mine = [plan.cells[index].source for index in running if not is_released(plan.cells[index])]
    given = [plan.cells[index].source for index in running if is_released(plan.cells[index])]
    if not is_plain(mine, beside=given):
        return dict.fromkeys(running, "what the student wrote may keep a state, or look at the notebook")
    return _needed(plan, known)


def is_released(cell: PlannedCell) -> bool:
    """Whether a cell that runs is the instructor's own code, comments aside, and answers nothing."""
    known = cell.known
    return known is not None and known.role != "solve" and _same_code(cell.source, known.source)


def _same_code(text: str, released: str) -> bool:
    if text.strip() == released.strip():
        return True
    try:
        return ast.dump(ast.parse(text)) == ast.dump(parsed(released))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _needed(plan: MarkingPlan, known: dict[int, CellNames]) -> dict[int, str]:
    """The cells that run: roots, and by their names whatever else."""
    roots = {index for index in known if _is_root(plan.cells[index])}
    why = dict.fromkeys(roots, "the student's, or the lab always runs it")
    why |= dict.fromkeys(_free_definitions(known, roots) - roots, "definitions and constants")
    names = {name for index in roots for name in known[index].taken}
    names |= {name for index in roots for name in _asked_for(plan.cells[index], known[index])}
    taken = frozenset(name for cell in known.values() for name in cell.taken)
    tables = only_read((parsed(plan.cells[index].source) for index in known), taken)
    state = SharedState({index: (cell.own, cell.steps) for index, cell in known.items()}, tables)
    altered = {index: state.altered(index, cell.live) for index, cell in known.items()}
    while True:
        seen = state.needed(names) | {name for index in why for name in state.asked(index)}
        binding = {index: cell.binds & names for index, cell in known.items() if cell.binds & names}
        altering = {index: groups & seen for index, groups in altered.items() if groups & seen}
        found = names | {name for index in (*binding, *altering) for name in known[index].taken}
        if binding.keys() | altering.keys() <= why.keys() and found == names:
            return why
        why = {i: f"may alter {_listed(_shown(n) for n in groups)}" for i, groups in altering.items()} | why
        why = {i: f"binds {_listed(bound)}" for i, bound in binding.items() if i not in why} | why
        names = found


def _listed(names: Iterable[str]) -> str:
    """A few of the names that are meant."""
    return ", ".join(sorted(set(names))[:_SHOWN])


def _shown(name: str) -> str:
    return name.partition("@")[0].strip("<>")


def _free_definitions(known: dict[int, CellNames], roots: set[int]) -> set[int]:
    """Cells of definitions and constants, which cost nothing, but for those that first ask what others made."""
    found = {index for index, cell in known.items() if cell.defines}
    while True:
        others = {name for index, cell in known.items() if index not in found | roots for name in cell.binds}
        asking = {index for index in found if known[index].asks & others}
        if not asking:
            return found
        found -= asking


def _is_root(cell: PlannedCell) -> bool:
    known = cell.known
    return known is None or not is_released(cell) or known.role == "locked" or known.id in _ALWAYS


def _asked_for(cell: PlannedCell, names: CellNames) -> Iterator[str]:
    """Names that a probe may ask for: what the student binds, and what an exercise's cell was released with."""
    if not is_released(cell):
        yield from names.binds
        yield from names_of(cell.known.source).binds if cell.known else ()


@lru_cache(maxsize=_LABS_KEPT)
def names_of(source: str) -> CellNames:
    """What a cell does to names; not `decidable` where it cannot be told."""
    try:
        tree = _Asking().visit(ast.parse(source))
        table = symtable.symtable(ast.unparse(tree), "<cell>", "exec")
        loads = frozenset(_loads(table))
        starred = any(isinstance(n, ast.ImportFrom) and n.names[0].name == "*" for n in walk(tree))
        if starred or loads & (_UNDECIDABLE - frozenset(_of_objects(tree))) or _reaches_in(tree):
            return CellNames(decidable=False)
        found, at_once = live_names(tree), live_names(_Bodiless().visit(ast.parse(ast.unparse(tree))))
        unread = frozenset(_binds(table)) | found.own
        unread = frozenset(name for name in unread if is_history(name)) - loads
        binds, later = (frozenset(_binds(table)) | found.own) - unread, found.later & loads
        steps = tuple(replace(step, binds=step.binds - unread) for step in steps_of(tree, loads))
        return CellNames(binds, found.live, later, found.own - unread, at_once.live, _defines(tree), steps=steps)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return CellNames(decidable=False)


def _reaches_in(tree: ast.Module) -> bool:
    """Whether a cell uses what gives names, or takes them, by another way than its text: frames, earlier results."""
    for node in walk(tree):
        match node:
            case ast.Attribute(attr=name) if name in _REACHING:
                return True
            case ast.Import(names=names) if any(a.name.partition(".")[0] in _INSIDE for a in names):
                return True
            case ast.ImportFrom(module=str(module)) if module.partition(".")[0] in _INSIDE:
                if not imports_displays(node):
                    return True
    # So what a cell calls by such a name and never reads, `_` above all, no other cell can read.
    found = live_names(tree)
    return any(is_history(name) for name in found.live | found.later)


class _Asking(ast.NodeTransformer):
    """`"name" in globals()` asks for that name, and for no other."""

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        match node:
            case ast.Compare(
                left=ast.Constant(value=str(name)),
                ops=[ast.In() | ast.NotIn()],
                comparators=[ast.Call(func=ast.Name(id="globals"), args=[], keywords=[])],
            ) if name.isidentifier():
                return ast.copy_location(ast.Name(name, ast.Load()), node)
        return self.generic_visit(node)


class _Bodiless(ast.NodeTransformer):
    """Functions lose their bodies, which run when they are called."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.body = [ast.Pass()]
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        node.body = ast.Constant(None)
        return node


def _of_objects(tree: ast.Module) -> Iterator[str]:
    """`vars` and `dir` where each of their calls asks about an object, not about the notebook's names."""
    for name in ("vars", "dir"):
        calls = [n for n in walk(tree) if isinstance(n, ast.Call) and n.args and root_of(n.func) == name]
        if len(calls) == sum(isinstance(n, ast.Name) and n.id == name for n in walk(tree)):
            yield name


def _loads(table: symtable.SymbolTable, *, top: bool = True) -> Iterator[str]:
    """Names of the notebook that a cell's code refers to, functions' bodies included."""
    for symbol in table.get_symbols():
        # A name that a class binds may be another cell's where it is used before that.
        if symbol.is_referenced() and (top or symbol.is_global() or table.get_type() == "class"):
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


def _defines(tree: ast.Module) -> bool:
    """Whether a cell costs nothing: definitions, imports and constants."""
    return all(
        isinstance(statement, (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom))
        or (isinstance(statement, ast.Assign) and cannot_change(statement.value))
        or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
        for statement in tree.body
    )
