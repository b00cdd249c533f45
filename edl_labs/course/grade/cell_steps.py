"""A cell's statements: what each binds, loads, calls and assigns in, as far as its text tells."""

from __future__ import annotations

import ast
import symtable
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from edl_labs.course.grade.call_effects import FOLDER, NamedCall, named_call, path_base
from edl_labs.course.grade.live_names import later_names
from edl_labs.course.grade.plain_code import cannot_change

_FOLDER = FOLDER.rpartition(".")[2]
_LAZY = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.GeneratorExp)
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
    """Of these, whose attributes; `vars` of a name counts, and its `__dict__`, whatever is done with them."""
    lazy_calls: tuple[NamedCall, ...] = ()
    """Of its calls, those that run later, when what it made is used: in functions, and in generators."""
    lazy_stores: frozenset[str] = frozenset()
    given: frozenset[str] = frozenset()
    """Names that it hands to calls as they are."""
    fixed: tuple[tuple[str, frozenset[str]], ...] = ()
    """Of what it binds, what nobody can alter as long as nobody can alter these names."""
    later: frozenset[str] = frozenset()
    """Names that functions in it look up when they are called."""
    folders: tuple[tuple[str, str], ...] = ()
    """Names that it gives a temporary folder (with an empty text), or a path that begins with another name's."""
    imported: frozenset[str] = frozenset()
    """Names that it binds by imports alone: they hold nothing else of it."""

    def placed(self, index: int, own: frozenset[str]) -> Step:
        """The step in cell number `index`, whose `own` names stand for nothing that other cells bind."""

        def node(name: str) -> str:
            root, dot, rest = name.partition(".")
            # What is no name of the notebook here is one of a function's own.
            apart = root in own or (root not in self.loads and root not in self.binds)
            return f"{root}@{index}{dot}{rest}" if root and apart else name

        def nodes(names: Iterable[str]) -> frozenset[str]:
            return frozenset(map(node, names))

        def calls(found: Iterable[NamedCall]) -> tuple[NamedCall, ...]:
            return tuple(replace(call, root=node(call.root), given=nodes(call.given)) for call in found)

        return replace(
            self,
            loads=nodes(self.loads),
            binds=nodes(self.binds),
            imports=tuple((node(name), module) for name, module in self.imports),
            aliases=tuple((node(name), node(source)) for name, source in self.aliases),
            calls=calls(self.calls),
            stores=nodes(self.stores),
            patches=nodes(self.patches),
            lazy_calls=calls(self.lazy_calls),
            lazy_stores=nodes(self.lazy_stores),
            given=nodes(self.given),
            fixed=tuple((node(name), nodes(on)) for name, on in self.fixed),
            folders=tuple((node(name), node(base)) for name, base in self.folders),
            imported=nodes(self.imported),
        )


def steps_of(tree: ast.Module, loads_of: frozenset[str]) -> tuple[Step, ...]:
    """The statements of a cell, which refers to `loads_of` at the notebook's level."""
    return tuple(_step(statement, loads_of) for statement in tree.body)


def _step(statement: ast.stmt, loads_of: frozenset[str]) -> Step:
    nodes = list(ast.walk(statement))
    table = symtable.symtable(ast.unparse(statement), "<statement>", "exec")
    loads = frozenset(_referred(table)) & loads_of
    binds = frozenset(_bound(table))
    forked = {id(n) for block in nodes if _is_forked(block) for n in ast.walk(block) if _seeds(n)}
    calls = [n for n in nodes if isinstance(n, ast.Call) and id(n) not in forked]
    lazy = [n for outer in nodes if isinstance(outer, _LAZY) for n in ast.walk(outer)]
    own = {n.arg for n in nodes if isinstance(n, ast.arg)} - loads  # a module that comes so was handed to a call
    return Step(
        loads,
        binds,
        not _only_defines(statement),
        tuple(_imports(nodes)),
        tuple({pair for node in nodes for pair in _aliases(node) if pair[1].partition(".")[0] not in own}),
        tuple(dict.fromkeys(map(named_call, calls))),
        frozenset(_stores(nodes)),
        frozenset(_patched(nodes)),
        tuple(dict.fromkeys(named_call(n) for n in lazy if isinstance(n, ast.Call) and id(n) not in forked)),
        frozenset(_stores(lazy)),
        frozenset(n.id for c in calls for n in (*c.args, *(k.value for k in c.keywords)) if isinstance(n, ast.Name)),
        tuple(_fixed(statement)),
        later_names(statement) & loads_of,
        tuple(pair for node in nodes for pair in _folders(node)),
        frozenset(name for name, _ in _imported_only(statement)),
    )


def _is_forked(node: ast.AST) -> bool:
    """Whether it is a block after which torch's generators are as they were."""
    return isinstance(node, ast.With) and any(
        isinstance(item.context_expr, ast.Call) and ast.unparse(item.context_expr.func) == "torch.random.fork_rng"
        for item in node.items
    )


def _seeds(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) in ("torch.manual_seed", "torch.random.manual_seed")


def _stores(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Names whose attributes or items are assigned; not what a function's `finally` puts back as it was."""
    known = list(nodes)
    back = {target for node in known if isinstance(node, ast.FunctionDef) for target in _put_back(node)}
    for node in known:
        stored = isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load)
        if stored and not (back and _text(node) in back):
            yield root_of(node)


def _patched(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        match node:
            case ast.Attribute(ctx=ast.Store() | ast.Del()) | ast.Attribute(attr="__dict__"):
                yield root_of(node)
            case ast.Call(func=ast.Name(id="vars"), args=[of]):
                yield root_of(of)


def _put_back(function: ast.FunctionDef) -> Iterator[str]:
    """Attributes that a function's `finally` sets to what a name of its own kept of them before it began."""
    kept = dict(pair for statement in function.body for pair in _kept(statement))
    for place, statement in enumerate(function.body):
        if not isinstance(statement, ast.Try):
            continue
        guarded = (statement, function.body[max(place - 1, 0)])
        outside = {_text(n) for part in function.body if part not in guarded for n in ast.walk(part) if _is_set(n)}
        for end in statement.finalbody:
            match end:
                case ast.Assign(targets=[ast.Attribute() as target], value=ast.Name(id=name)):
                    if kept.get(_text(target)) == name and _text(target) not in outside and _once(function, name):
                        yield _text(target)


_text = ast.unparse


def _is_set(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)


def _once(function: ast.FunctionDef, name: str) -> bool:
    """Whether a function binds a name in one place."""
    return sum(isinstance(n, ast.Name) and n.id == name and _is_bound(n) for n in ast.walk(function)) == 1


def _is_bound(node: ast.Name) -> bool:
    return not isinstance(node.ctx, ast.Load)


def _kept(statement: ast.stmt) -> Iterator[tuple[str, str]]:
    """Attributes whose values a statement keeps, each with the name that it gives them."""
    match statement:
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)) if _match(names, values):
            pairs = list(zip(names, values, strict=True))
        case ast.Assign(targets=[target], value=value):
            pairs = [(target, value)]
        case _:
            pairs = []
    for target, value in pairs:
        if isinstance(target, ast.Name) and isinstance(value, ast.Attribute):
            yield _text(value), target.id


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
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if _match(targets, values):
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
            names = [n.name for n in ast.walk(node) if isinstance(n, (ast.MatchAs, ast.MatchStar)) and n.name]
            yield from ((name, source) for name in names for source in _uncalled(value))


def _match(targets: list[ast.expr], values: list[ast.expr]) -> bool:
    return len(targets) == len(values) and not any(isinstance(one, ast.Starred) for one in (*targets, *values))


def _pairs(targets: Iterable[ast.expr], value: ast.expr | None) -> Iterator[tuple[str, str]]:
    made = {
        root_of(n) for target in targets for n in (target, *ast.walk(target)) if not isinstance(n, ast.expr_context)
    }
    yield from ((name, source) for name in made - {""} for source in _uncalled(value) if name != source)


def _uncalled(node: ast.AST | None) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute) and _is_dotted(node):
        yield ast.unparse(node)
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


def _is_dotted(node: ast.AST) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


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
