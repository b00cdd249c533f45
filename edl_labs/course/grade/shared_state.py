"""What a cell's statements may alter, over the whole notebook: names that share objects, and what has no name.

Names that one statement brings together may share objects from then on, and so may what the functions that it calls
use, and theirs. Settings of modules, of the process and of generators of random numbers have pseudo-names.
"""

from __future__ import annotations

import ast
import symtable
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from edl_labs.course.grade.plain_code import cannot_change

PROCESS = "<settings of the process>"  # whatever alters them runs
DRAWS = "<generators and modes>"  # what torch and numpy keep: whatever alters them runs where something needed asks
_QUIET = frozenset((
    "__future__", "bisect", "collections", "dataclasses", "edl_labs", "enum", "fractions", "itertools", "math",
    "numbers", "operator", "statistics", "string", "textwrap", "time", "timeit", "types", "typing"
))  # fmt: skip
_ARRAYS = frozenset(("numpy", "torch"))
_PYPLOT = frozenset(("subplots", "show", "figure", "plot", "close", "title", "xlabel", "ylabel", "legend"))
_NEW = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.JoinedStr)  # no part of them is a module
_SETS = (
    "set", "seed", "default", "enable", "disable", "use_", "backends", "option", "err", "register", "patch",
    "hook", "init", "library", "reset", "config", "style", "rc", "environ", "update", "append", "insert", "clear"
)  # fmt: skip


@dataclass(frozen=True)
class Step:
    """One statement at the top of a cell. `runs`: it does more than define."""

    loads: frozenset[str]
    binds: frozenset[str]
    runs: bool
    imports: tuple[tuple[str, str], ...] = ()
    """Names that it imports, anywhere in it, each with its module."""
    aliases: tuple[tuple[str, str], ...] = ()
    """Pairs of a bound name and the name whose object, or part of it, that may be."""
    calls: frozenset[tuple[str, str]] = frozenset()
    """What it calls, by the root of its name and the rest."""
    stores: frozenset[str] = frozenset()
    """Names that it assigns an attribute or item of."""
    given: frozenset[str] = frozenset()
    """Names that it hands to calls as they are."""
    fixed: tuple[tuple[str, frozenset[str]], ...] = ()
    """Of what it binds, what nobody can alter as long as nobody can alter these names."""


def steps_of(tree: ast.Module, loads_of: frozenset[str]) -> tuple[Step, ...]:
    """The statements of a cell, which refers to `loads_of` at the notebook's level."""
    return tuple(_step(statement, loads_of) for statement in tree.body)


def _step(statement: ast.stmt, loads_of: frozenset[str]) -> Step:
    nodes = list(ast.walk(statement))
    table = symtable.symtable(ast.unparse(statement), "<statement>", "exec")
    loads = frozenset(_referred(table)) & loads_of
    binds = frozenset(_bound(table))
    stores = {
        root_of(n)
        for n in nodes
        if isinstance(n, (ast.Attribute, ast.Subscript)) and not isinstance(n.ctx, ast.Load)
    }  # fmt: skip
    calls = [n for n in nodes if isinstance(n, ast.Call)]
    own = {n.arg for n in nodes if isinstance(n, ast.arg)} - loads  # a module that comes so was handed to a call
    return Step(
        loads,
        binds,
        not _only_defines(statement),
        tuple(_imports(nodes)),
        tuple({pair for node in nodes for pair in _aliases(node) if pair[1] not in own}),
        frozenset((root_of(c.func), ast.unparse(c.func).partition(".")[2]) for c in calls),
        frozenset(stores),
        frozenset(n.id for c in calls for n in (*c.args, *(k.value for k in c.keywords)) if isinstance(n, ast.Name)),
        tuple(_fixed(statement)),
    )


def _referred(table: symtable.SymbolTable, *, top: bool = True) -> Iterator[str]:
    yield from (s.get_name() for s in table.get_symbols() if s.is_referenced() and (top or s.is_global()))
    for child in table.get_children():
        yield from _referred(child, top=False)


def _bound(table: symtable.SymbolTable, *, top: bool = True) -> Iterator[str]:
    for symbol in table.get_symbols():
        made = symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()
        if made and (top or symbol.is_declared_global()):
            yield symbol.get_name()
    for child in table.get_children():
        yield from _bound(child, top=False)


def _imports(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, str]]:
    for node in nodes:
        match node:
            case ast.Import(names=names):
                yield from (((a.asname or a.name).partition(".")[0], a.name) for a in names)
            case ast.ImportFrom(module=module, names=names):
                yield from ((a.asname or a.name, f"{module}.{a.name}") for a in names)


def _aliases(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Names that a node binds, each with those whose objects, or parts of them, they may stand for."""
    match node:
        case ast.Assign(targets=targets, value=value):
            yield from _pairs(targets, value)
        case ast.AnnAssign(target=target, value=value) | ast.AugAssign(target=target, value=value):
            yield from _pairs([target], value)
        case ast.NamedExpr(target=target, value=value):
            yield from _pairs([target], value)
        case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
            yield from _pairs([target], value)
        case ast.withitem(optional_vars=ast.expr() as target, context_expr=value):
            yield from _pairs([target], value)
        case ast.Match(subject=value):
            names = [n.name for n in ast.walk(node) if isinstance(n, (ast.MatchAs, ast.MatchStar)) and n.name]
            yield from ((name, source) for name in names for source in _uncalled(value))


def _pairs(targets: Iterable[ast.expr], value: ast.expr | None) -> Iterator[tuple[str, str]]:
    made = {
        root_of(n) for target in targets for n in (target, *ast.walk(target)) if not isinstance(n, ast.expr_context)
    }
    yield from ((name, source) for name in made - {""} for source in _uncalled(value) if name != source)


def _uncalled(node: ast.AST | None) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id in ("zip", "enumerate", "iter", "next", "list", "tuple"):
            for given in node.args:
                yield from _uncalled(given)
        elif isinstance(node.func, ast.Attribute) and node.func.attr in ("items", "values", "get", "pop"):
            yield from _uncalled(node.func.value)
    elif isinstance(node, ast.Subscript):
        yield from _uncalled(node.value)
    elif node is not None and not isinstance(node, _NEW):
        for child in ast.iter_child_nodes(node):
            yield from _uncalled(child)


def _names(node: ast.AST) -> Iterator[str]:
    return (n.id for n in ast.walk(node) if isinstance(n, ast.Name))


def root_of(node: ast.AST) -> str:
    """The name that a chain of attributes, items and calls begins with; empty where it begins with none."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _only_defines(statement: ast.stmt) -> bool:
    match statement:
        case ast.FunctionDef() | ast.ClassDef():
            return not statement.decorator_list
        case ast.Import() | ast.ImportFrom():
            return True
        case ast.Expr(value=value):
            return isinstance(value, ast.Constant)
    return False


def _fixed(statement: ast.stmt) -> Iterator[tuple[str, frozenset[str]]]:
    match statement:
        case ast.Import() | ast.ImportFrom():
            yield from ((name, frozenset[str]()) for name, _ in _imports([statement]))
        case ast.FunctionDef(name=name, decorator_list=[], args=arguments):
            defaults = [d for d in (*arguments.defaults, *arguments.kw_defaults) if d]
            if all(map(cannot_change, defaults)):
                yield name, frozenset(n for d in defaults for n in _names(d))
        case ast.ClassDef(name=name) if _keeps_nothing(statement):
            yield name, frozenset(map(root_of, statement.bases))
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if cannot_change(value) and not any(
            isinstance(n, ast.Attribute) and not isinstance(value, ast.Lambda) for n in ast.walk(value)
        ):
            yield name, frozenset() if isinstance(value, (ast.Lambda, ast.JoinedStr)) else frozenset(_names(value))
        case ast.Try() | ast.If() | ast.With():
            yield from _imported_only(statement)


def _imported_only(statement: ast.stmt) -> Iterator[tuple[str, frozenset[str]]]:
    """Names that a compound statement binds by imports alone."""
    nodes = list(ast.walk(statement))
    other = {n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    other |= {n.name for n in nodes if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    yield from ((name, frozenset[str]()) for name, _ in _imports(nodes) if name not in other)


def _keeps_nothing(made: ast.ClassDef) -> bool:
    """Whether a class cannot hold what its instances share and alter."""
    odd = any(
        (isinstance(n, ast.Name) and n.id in ("cls", "type")) or (isinstance(n, ast.Attribute) and n.attr[:2] == "__")
        for n in ast.walk(made)
        if not (isinstance(n, ast.Attribute) and n.attr == "__init__")
    )
    plain = all(
        isinstance(part, (ast.FunctionDef, ast.Pass))
        or (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))
        or (isinstance(part, (ast.Assign, ast.AnnAssign)) and (part.value is None or cannot_change(part.value)))
        for part in made.body
    )
    return plain and not odd and not made.decorator_list and not made.keywords


@dataclass
class SharedState:
    """Which names may stand for, hold or reach the same objects in all of a notebook's `steps`."""

    steps: list[Step]
    _edges: dict[str, set[str]] = field(default_factory=dict)
    _group: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._modules = self._known_modules()
        self._fixed = self._unalterable()
        for step in self.steps:
            for name in step.binds:
                self._edges.setdefault(name, set()).update(step.loads | step.binds | self._unnamed(step))
        for step in self.steps:
            if step.runs:
                self._join(self._reached(step))

    def altered(self, steps: Iterable[Step]) -> set[str]:
        """The groups of names whose objects the statements may alter, or have bound to others."""
        return {self._find(name) for step in steps if step.runs for name in self._reached(step)}

    def needed(self, names: Iterable[str]) -> set[str]:
        """The groups of names that code which uses `names` may see."""
        return {self._find(name) for name in (*self._closure(names), PROCESS) if name not in self._fixed}

    def asked(self, steps: Iterable[Step]) -> frozenset[str]:
        """Pseudo-names of what the statements ask, or alter, as they run, that has no name."""
        return frozenset(name for step in steps if step.runs for name in self._reached(step) & {DRAWS, PROCESS})

    def _reached(self, step: Step) -> set[str]:
        return self._closure(step.loads | step.binds | self._unnamed(step)) - self._fixed

    def _closure(self, names: Iterable[str]) -> set[str]:
        found, todo = set(names), list(names)
        while todo:
            more = self._edges.get(todo.pop(), set()) - found
            found |= more
            todo += more
        return found

    def _join(self, names: set[str]) -> None:
        groups = sorted(map(self._find, names))
        for group in groups[1:]:
            self._group[self._find(group)] = self._find(groups[0])

    def _find(self, name: str) -> str:
        while name in self._group and self._group[name] != name:
            name = self._group[name]
        return name

    def _known_modules(self) -> dict[str, set[str]]:
        """The modules, or what was imported of them, that each name may stand for, or for a part of."""
        found: dict[str, set[str]] = {}
        for step in self.steps:
            for name, module in step.imports:
                found.setdefault(name, set()).add(module)
        while True:
            before = sum(map(len, found.values()))
            for name, source in (pair for step in self.steps for pair in step.aliases):
                if source in found:
                    found.setdefault(name, set()).update(found[source])
            if before == sum(map(len, found.values())):
                return found

    def _unalterable(self) -> set[str]:
        """Names that only stand for what nobody can alter: at every place that binds them."""
        made: dict[str, set[str]] = {}
        loose = {name for step in self.steps for name in step.stores}
        for step in self.steps:
            fixed = dict(step.fixed)
            for name in step.binds:
                made.setdefault(name, set()).update(fixed.get(name, ()))
                if name not in fixed:
                    loose.add(name)
        while True:
            more = {name for name, on in made.items() if name not in loose and on & loose}
            if not more:
                return (made.keys() | self._free(made)) - loose
            loose |= more

    def _free(self, made: dict[str, set[str]]) -> set[str]:
        """Names that no cell binds: Python's own."""
        return {name for step in self.steps for name in step.loads if name not in made}

    def _unnamed(self, step: Step) -> set[str]:
        found = {PROCESS for name in step.stores if name in self._modules}
        for root, rest in step.calls:
            for module in self._modules.get(root, ()):
                found |= _effects(f"{module}.{rest}")
            if root not in self._modules and any(self._is_module(name) for name in step.given):
                found.add(PROCESS)
            if root in ("vars", "open"):
                found.add(PROCESS)
        return found

    def _is_module(self, name: str) -> bool:
        """Whether a name may be a module: no function or class of one, as far as its spelling tells."""
        return any("." not in module or module.rpartition(".")[2] == name for module in self._modules.get(name, ()))


def _effects(called: str) -> set[str]:
    """What a call of something imported may alter that has no name."""
    top, *parts = called.rstrip(".").split(".")
    looked_at = parts[-1:] if top in _QUIET else parts
    if any(part.lower().startswith(_SETS) or "seed" in part or "default" in part for part in looked_at):
        return {PROCESS}
    if top in _QUIET or (top == "matplotlib" and parts[-1] in _PYPLOT):
        return set()
    return {DRAWS} if top in _ARRAYS else {PROCESS}
