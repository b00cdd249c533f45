"""Tables of constants that all of a notebook's code only reads: nobody can alter them, whoever they are handed to."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from edl_labs.course.grade.plain_code import LABS_KEPT, parents_of
from edl_labs.course.grade.syntax_walk import walk

_LOOKS = frozenset(("copy", "count", "get", "index", "items", "keys", "values"))
# Python's own functions that keep nothing of what they are given.
_ASKS = frozenset((
    "all", "any", "bool", "dict", "enumerate", "isinstance", "len", "list", "max", "min", "print", "repr", "set",
    "sorted", "str", "sum", "tuple", "zip"
))  # fmt: skip
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_LOOPS = (ast.For, ast.comprehension)


def only_read(trees: Iterable[ast.Module], taken: frozenset[str]) -> frozenset[str]:
    """Names bound once, to a flat table of constants, not empty, which every use in all cells leaves as it is.

    Uses are followed into loops over such names, and into the notebook's own functions that are handed the table.
    `taken` are names that some cell takes from others.
    """
    found = list(trees)
    tables = {name for tree in found for name in _tables(tree)}
    return _Reading(found, taken, tables).found() if tables else frozenset()


@dataclass
class _Reading:
    trees: list[ast.Module]
    taken: frozenset[str]
    tables: set[str]
    _parents: dict[ast.AST, ast.AST] = field(default_factory=dict)
    _uses: dict[str, list[ast.Name]] = field(default_factory=dict)
    _bound: dict[str, int] = field(default_factory=dict)
    _functions: dict[str, ast.FunctionDef] = field(default_factory=dict)
    _known: dict[tuple[str, str], bool] = field(default_factory=dict)
    _declared: set[str] = field(default_factory=set)
    """Names that some function declares another scope's."""

    def __post_init__(self) -> None:
        for tree in self.trees:
            cell = _looked_through(tree)
            self._parents.update(cell.parents)
            for use in cell.uses:
                self._uses.setdefault(use.id, []).append(use)
            self._declared |= cell.declared
            for name in cell.binds:
                self._bound[name] = self._bound.get(name, 0) + 1
            self._functions.update((node.name, node) for node in tree.body if isinstance(node, ast.FunctionDef))

    def found(self) -> frozenset[str]:
        """The tables."""
        tables = {name for name in self.tables if self._bound[name] == 1}
        return frozenset(name for name in tables if all(map(self._reads, self._loads(self._uses[name]))))

    def _loads(self, uses: Iterable[ast.Name]) -> Iterator[ast.Name]:
        return (use for use in uses if not isinstance(use.ctx, ast.Store))

    def _reads(self, use: ast.AST) -> bool:
        """Whether one use of a table, or of a tuple with tables in it that a loop goes through, only reads."""
        parent = self._parents[use]
        match parent:
            case ast.Subscript(value=value, ctx=ast.Load()):
                return value is use
            case ast.Attribute(attr=name):
                call = self._parents[parent]
                return name in _LOOKS and isinstance(call, ast.Call) and call.func is parent
            case ast.Compare() | ast.FormattedValue():
                return True
            case ast.For() | ast.comprehension():
                return parent.iter is use and (isinstance(use, ast.Name) or self._loop_reads(parent))
            case ast.Tuple() | ast.List():
                above = self._parents[parent]
                return isinstance(above, _LOOPS) and above.iter is parent and self._reads(parent)
            case ast.keyword(arg=name):
                call = self._parents[parent]
                return name is None or (isinstance(call, ast.Call) and self._call_reads(call, name))
            case ast.Call(args=given):
                return use in given and self._call_reads(parent, given.index(use))
        return False

    def _loop_reads(self, loop: ast.For | ast.comprehension) -> bool:
        """Whether what a loop calls each of several tables is only read, wherever that name can be seen."""
        if not isinstance(loop.target, ast.Name):
            return False
        name, scope = loop.target.id, self._scope(loop)
        if isinstance(scope, ast.ClassDef) or name in self._declared:
            return False
        if isinstance(scope, ast.Module) and name in self.taken:
            return False
        return all(map(self._reads, self._loads(use for use in self._uses[name] if self._is_in(use, scope))))

    def _scope(self, loop: ast.For | ast.comprehension) -> ast.AST:
        """The comprehension, the function or the cell in which the name of a loop is one."""
        node = self._parents[loop]
        while isinstance(loop, ast.For) and not isinstance(node, (*_FUNCTIONS, ast.ClassDef, ast.Module)):
            node = self._parents[node]
        return node

    def _is_in(self, node: ast.AST, scope: ast.AST) -> bool:
        while node is not scope and node in self._parents:
            node = self._parents[node]
        return node is scope

    def _call_reads(self, call: ast.Call, place: int | str) -> bool:
        """Whether a call leaves what it is given in a `place`, a number or a keyword, as it is."""
        if not isinstance(call.func, ast.Name) or any(isinstance(one, ast.Starred) for one in call.args):
            return False
        name = call.func.id
        if name in _ASKS and name not in self._bound:
            # `dict(a=table)` keeps it, `max(one, other)` gives it back.
            return isinstance(place, int) and (len(call.args) == 1 or name not in ("max", "min"))
        function = self._functions.get(name)
        if function is None or self._bound[name] != 1 or function.decorator_list:
            return False
        taken = [*function.args.posonlyargs, *function.args.args]
        names = {one.arg for one in (*taken, *function.args.kwonlyargs)}
        parameter = place if isinstance(place, str) else taken[place].arg if place < len(taken) else ""
        return parameter in names and self._parameter_reads(function, parameter)

    def _parameter_reads(self, function: ast.FunctionDef, parameter: str) -> bool:
        """Whether a function only reads a parameter; one that calls itself does where the rest of it does."""
        key = function.name, parameter
        if key not in self._known:
            before = set(self._known)
            self._known[key] = True
            uses = [n for n in walk(function) if isinstance(n, ast.Name) and n.id == parameter]
            if not all(not isinstance(n.ctx, ast.Store) and self._reads(n) for n in uses):
                # What was found of others in the meantime may have hung on this one.
                self._known = {known: reads for known, reads in self._known.items() if known in before or not reads}
                self._known[key] = False
        return self._known[key]


@dataclass(frozen=True)
class _LookedThrough:
    """What one cell's tree holds: the parents of its nodes, its names, what it declares and each time that it binds."""

    parents: dict[ast.AST, ast.AST]
    uses: tuple[ast.Name, ...]
    declared: frozenset[str]
    binds: tuple[str, ...]


@lru_cache(maxsize=LABS_KEPT)
def _looked_through(tree: ast.Module) -> _LookedThrough:
    """The same for all submissions that share a released cell, and so its tree."""
    parents = parents_of(tree)
    nodes = [tree, *parents]
    declared = {name for node in nodes if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names}
    uses = tuple(node for node in nodes if isinstance(node, ast.Name))
    return _LookedThrough(parents, uses, frozenset(declared), tuple(name for node in nodes for name in _binds(node)))


def _tables(tree: ast.Module) -> Iterator[str]:
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Dict(keys=keys, values=values)):
                if keys and all(isinstance(part, ast.Constant) for part in (*keys, *values)):
                    yield name
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.List(elts=parts) | ast.Set(elts=parts)):
                if parts and all(isinstance(part, ast.Constant) for part in parts):
                    yield name


def _binds(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield name
        case ast.arg(arg=name) | ast.ExceptHandler(name=str(name)) | ast.alias(asname=str(name)):
            yield name
        case ast.alias(name=name):
            yield name.partition(".")[0]
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            yield from names
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
            yield name
