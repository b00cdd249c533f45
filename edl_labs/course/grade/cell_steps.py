"""A cell's statements: what each binds, loads, calls and assigns in, as far as its text tells."""

from __future__ import annotations

import ast
import symtable
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeGuard

from edl_labs.course.grade.call_effects import FOLDER, NamedCall, later_call, makes_partial, named_call, path_base
from edl_labs.course.grade.fixed_names import fixed_names, imported_only, imports_of, only_defines
from edl_labs.course.grade.live_names import later_names
from edl_labs.course.grade.stored_names import ANY_CLASS, LAZY, matching, patched_names, root_of, stored_names
from edl_labs.course.grade.syntax_walk import children, walk

_FOLDER = FOLDER.rpartition(".")[2]
_LEFT_OPEN = (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith)
_MODES = ("torch.no_grad", "torch.enable_grad", "torch.inference_mode")
_NEW = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.JoinedStr)  # no part of them is a module


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
    calls: tuple[NamedCall, ...] = ()
    stores: frozenset[str] = frozenset()
    """Names that it assigns an attribute or item of."""
    patches: frozenset[str] = frozenset()
    """Of these, whose attributes, methods' own instances aside; `vars` of a name counts, and its `__dict__`."""
    lazy_calls: tuple[NamedCall, ...] = ()
    """Of its calls, those that run later, when what it made is used: in functions, and in generators."""
    lazy_stores: frozenset[str] = frozenset()
    given: frozenset[str] = frozenset()
    """Names, and their attributes as dotted text, that it hands to calls, or that calls without a name begin with."""
    kept: frozenset[str] = frozenset()
    """The same that it does anything else with than to call them or take attributes of them."""
    named: frozenset[str] = frozenset()
    """Of these, what it only gives names of the notebook, or of a function's own: `aliases` has them."""
    fixed: tuple[tuple[str, frozenset[str]], ...] = ()
    """Of what it binds, what nobody can alter as long as nobody can alter these names."""
    later: frozenset[str] = frozenset()
    """Names that functions in it look up when they are called."""
    folders: tuple[tuple[str, str], ...] = ()
    """Names that it gives a temporary folder (with an empty text), or a path that begins with another name's."""
    imported: frozenset[str] = frozenset()
    """Names that it binds by imports alone: they hold nothing else of it."""
    opens: bool = False
    """It opens a file for more than reading, or does anything else with `open`."""

    def placed(self, index: int, own: frozenset[str]) -> Step:
        """The step in cell number `index`, whose `own` names stand for nothing that other cells bind."""

        def node(name: str) -> str:
            root, dot, rest = name.partition(".")
            # What is no name of the notebook here is one of a function's own.
            apart = root in own or (root not in self.loads and root not in self.binds)
            return f"{root}@{index}{dot}{rest}" if root and apart else name

        def nodes(names: Iterable[str]) -> frozenset[str]:
            return frozenset(map(node, names))

        def later(name: str) -> str:
            return name if name.partition(".")[0] in self.later else node(name)

        def calls(found: Iterable[NamedCall], called: Callable[[str], str]) -> tuple[NamedCall, ...]:
            return tuple(replace(c, root=called(c.root), given=frozenset(map(called, c.given))) for c in found)

        return replace(
            self,
            loads=nodes(self.loads),
            binds=nodes(self.binds),
            imports=tuple((node(name), module) for name, module in self.imports),
            aliases=tuple((node(name), node(source)) for name, source in self.aliases),
            calls=calls(self.calls, node),
            stores=nodes(self.stores),
            patches=nodes(self.patches) | (self.patches & {ANY_CLASS}),
            lazy_calls=calls(self.lazy_calls, later),
            lazy_stores=frozenset(map(later, self.lazy_stores)),
            given=nodes(self.given),
            kept=nodes(self.kept),
            named=nodes(self.named),
            fixed=tuple((node(name), nodes(on)) for name, on in self.fixed),
            folders=tuple((node(name), node(base)) for name, base in self.folders),
            imported=nodes(self.imported),
        )


def steps_of(tree: ast.Module, loads_of: frozenset[str]) -> tuple[Step, ...]:
    """The statements of a cell, which refers to `loads_of` at the notebook's level."""
    return tuple(_step(statement, loads_of) for statement in tree.body)


def _step(statement: ast.stmt, loads_of: frozenset[str]) -> Step:
    nodes = list(walk(statement))
    table = symtable.symtable(ast.unparse(statement), "<statement>", "exec")
    loads = frozenset(_referred(table)) & loads_of
    binds = frozenset(_bound(table))
    forked = {id(n) for block in nodes for n in (*_seeds_within(block), *_modes_of(block, nodes))}
    calls = [n for n in nodes if isinstance(n, ast.Call) and id(n) not in forked]
    lazy = [n for outer in nodes if isinstance(outer, LAZY) for n in walk(outer)]
    lazily = [n for n in lazy if isinstance(n, ast.Call) and id(n) not in forked]
    own = {n.arg for n in nodes if isinstance(n, ast.arg)} - loads  # a module that comes so was handed to a call
    return Step(
        loads,
        binds,
        not only_defines(statement),
        tuple(imports_of(nodes)),
        tuple({pair for node in nodes for pair in _aliases(node) if pair[1].partition(".")[0] not in own}),
        tuple(dict.fromkeys(map(named_call, (*calls, *map(later_call, filter(makes_partial, calls)))))),
        frozenset(stored_names(nodes)),
        frozenset(patched_names(nodes)),
        tuple(dict.fromkeys(map(named_call, (*lazily, *map(later_call, filter(makes_partial, lazily)))))),
        frozenset(stored_names(lazy)),
        frozenset(name for call in calls for name in _given(call)),
        frozenset(_whole_names(statement)),
        frozenset(_named(nodes)),
        tuple(fixed_names(statement)),
        later_names(statement) & loads_of,
        tuple(pair for node in nodes for pair in _folders(node)),
        frozenset(name for name, _ in imported_only(statement)),
        _opens(nodes),
    )


def _opens(nodes: Iterable[ast.AST]) -> bool:
    """Whether `open` is used in any way but to read a file."""
    found = list(nodes)
    readers = {id(n.func) for n in found if isinstance(n, ast.Call) and _only_reads(n)}
    return any(isinstance(n, ast.Name) and n.id == "open" and id(n) not in readers for n in found)


def _only_reads(call: ast.Call) -> bool:
    """Whether a call of `open` has a mode, written out or left out, in which nothing is written."""
    options = {word.arg: word.value for word in call.keywords}
    if None in options or "opener" in options or any(isinstance(one, ast.Starred) for one in call.args):
        return False
    mode = call.args[1] if len(call.args) > 1 else options.get("mode", ast.Constant("r"))
    return isinstance(mode, ast.Constant) and isinstance(mode.value, str) and set(mode.value) <= set("rbt")


def _given(call: ast.Call) -> Iterator[str]:
    for part in (*call.args, *(k.value for k in call.keywords), *(() if root_of(call.func) else (call.func,))):
        yield from _whole_names(part)
    yield from _whole_names(call.args[0]) if _asks_for_part(call) else ()


def _whole_names(node: ast.AST) -> Iterator[str]:
    """Names in a node, each with its attributes, that are neither called nor asked for a part, nor assigned."""
    if isinstance(node, ast.Name):
        yield from (node.id,) if isinstance(node.ctx, ast.Load) else ()
    elif isinstance(node, ast.Attribute) and _is_dotted(node):
        yield ast.unparse(node)
    elif isinstance(node, ast.FormattedValue) and _is_dotted(node.value):
        yield from _whole_names(node.format_spec) if node.format_spec else ()  # its text is made, and it goes nowhere
    else:
        for child in children(node):
            called = isinstance(node, ast.Call) and child is node.func and _is_dotted(child)
            yield from () if called or (_asks_for_part(node) and child is node.args[0]) else _whole_names(child)


def _asks_for_part(node: ast.AST) -> TypeGuard[ast.Call]:
    """Whether it is `getattr(something, ...)`, of a name or its attributes: a part of that, not the whole."""
    match node:
        case ast.Call(func=ast.Name(id="getattr" | "hasattr"), args=[of, *_]):
            return isinstance(of, (ast.Name, ast.Attribute)) and _is_dotted(of)
    return False


def _seeds_within(node: ast.AST) -> Iterator[ast.AST]:
    """Calls that seed torch's generators in a block after which these are as they were; not what runs later."""
    if not (isinstance(node, ast.With) and any(map(_is_fork, node.items))):
        return
    todo: list[ast.AST] = list(node.body)
    while todo:
        inner = todo.pop()
        if not isinstance(inner, LAZY):
            todo += children(inner)
            yield from (inner,) if _seeds(inner) else ()


def _modes_of(node: ast.AST, beside: list[ast.AST]) -> Iterator[ast.AST]:
    """Calls that set torch's mode of gradients for a block alone. What can be left in the middle does not end it."""
    if isinstance(node, ast.With) and not any(isinstance(n, _LEFT_OPEN) for n in beside):
        for item in node.items:
            made = item.context_expr
            if isinstance(made, ast.Call) and not made.args and not made.keywords and item.optional_vars is None:
                yield from (made,) if ast.unparse(made.func) in _MODES else ()


def _is_fork(item: ast.withitem) -> bool:
    made = item.context_expr
    if not isinstance(made, ast.Call) or made.args:
        return False
    return ast.unparse(made.func) == "torch.random.fork_rng" and all(k.arg == "devices" for k in made.keywords)


def _seeds(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) in ("torch.manual_seed", "torch.random.manual_seed")


def _referred(table: symtable.SymbolTable, *, top: bool = True) -> Iterator[str]:
    # A name that a class binds may be another cell's where it is used before that.
    all_names = top or table.get_type() == "class"
    yield from (s.get_name() for s in table.get_symbols() if s.is_referenced() and (all_names or s.is_global()))
    for child in table.get_children():
        yield from _referred(child, top=False)


def _bound(table: symtable.SymbolTable, *, top: bool = True) -> Iterator[str]:
    for symbol in table.get_symbols():
        made = symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()
        if made and (top or symbol.is_declared_global()):
            yield symbol.get_name()
    for child in table.get_children():
        yield from _bound(child, top=False)


def _folders(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Names that a node binds to temporary folders, or to paths in what another name stands for."""
    pairs: list[tuple[ast.expr | None, ast.expr]] = []
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
            pairs = list(zip(targets, values, strict=False))
        case ast.Assign(targets=[target], value=value) | ast.NamedExpr(target=target, value=value):
            pairs = [(target, value)]
        case ast.withitem(optional_vars=target, context_expr=value):
            pairs = [(target, value)]
    for target, value in pairs:
        value = path_base(value)
        match target, value:
            case ast.Name(id=name), ast.Call(func=made, args=[]) if ast.unparse(made) in (FOLDER, _FOLDER):
                yield name, ""
            case ast.Name(id=name), ast.Call(func=ast.Name(id="Path"), args=[first]) if root_of(first):
                yield name, root_of(first)


def _aliases(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Names that a node binds, each with those whose objects, or parts of them, they may stand for."""
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if matching(targets, values):
            for target, value in zip(targets, values, strict=True):
                yield from _pairs([target], value)
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
            names = [n.name for n in walk(node) if isinstance(n, (ast.MatchAs, ast.MatchStar)) and n.name]
            yield from ((name, source) for name in names for source in _uncalled(value))


def _named(nodes: list[ast.AST]) -> Iterator[str]:
    """What nodes give names, attributes of classes and of functions' parameters aside."""
    others = {n.arg for n in nodes if isinstance(n, ast.arg)}
    members = {id(part) for n in nodes if isinstance(n, ast.ClassDef) for part in n.body}
    for node in nodes:
        if id(node) not in members:
            yield from (source for name, source in _aliases(node) if name not in others)


def _pairs(targets: Iterable[ast.expr], value: ast.expr | None) -> Iterator[tuple[str, str]]:
    made = {root_of(n) for target in targets for n in (target, *walk(target)) if not isinstance(n, ast.expr_context)}
    yield from ((name, source) for name in made - {""} for source in _uncalled(value) if name != source)


def _uncalled(node: ast.AST | None) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute) and _is_dotted(node):
        yield ast.unparse(node)
    elif isinstance(node, ast.Call):
        if _asks_for_part(node):
            yield from _uncalled(node.args[0])
        elif isinstance(node.func, ast.Name) and node.func.id in ("zip", "enumerate", "iter", "next", "list", "tuple"):
            for given in node.args:
                yield from _uncalled(given)
        elif isinstance(node.func, ast.Attribute) and node.func.attr in ("items", "values", "get", "pop"):
            yield from _uncalled(node.func.value)
    elif isinstance(node, ast.Subscript):
        yield from _uncalled(node.value)
    elif node is not None and not isinstance(node, _NEW):
        for child in children(node):
            yield from _uncalled(child)


def _is_dotted(node: ast.AST) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)
