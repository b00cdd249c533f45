"""Names that a cell takes from the cells before it, and names that it makes anew before it uses them.

What a cell loads of a name that it has surely bound itself, earlier on the same way through its statements, is its own:
whatever another cell calls by that name is another object. All else is live: it may be anything of that name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from edl_labs.course.grade.syntax_walk import children, walk

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True)
class LiveNames:
    """`live`: loaded before they are surely bound here. `own`: bound, and never live. `later`: in functions' bodies."""

    live: frozenset[str]
    own: frozenset[str]
    later: frozenset[str]


def live_names(tree: ast.Module) -> LiveNames:
    """What a cell takes from others; names declared global, deleted or augmented before they are bound are live."""
    walk = _Walk()
    walk.through(tree.body, frozenset())
    return LiveNames(frozenset(walk.live), frozenset(walk.bound - walk.live), frozenset(walk.later))


def later_names(node: ast.AST) -> frozenset[str]:
    """Names outside of them that functions and generators in a node refer to: looked up when they are called."""
    return frozenset(_later(node))


def _later(node: ast.AST) -> Iterator[str]:
    if isinstance(node, _FUNCTIONS):
        yield from _free_of_function(node)
        return
    if isinstance(node, ast.GeneratorExp):
        yield from _free(node)
    for child in children(node):
        yield from _later(child)


@dataclass
class _Walk:
    live: set[str] = field(default_factory=set)
    bound: set[str] = field(default_factory=set)
    later: set[str] = field(default_factory=set)

    def through(self, body: Iterable[ast.stmt], known: frozenset[str]) -> frozenset[str]:
        """Go through statements of which those before have surely bound `known`; what is surely bound after them."""
        for statement in body:
            known = self._statement(statement, known)
        return known

    def use(self, node: ast.AST | None, known: frozenset[str]) -> None:
        """All that a node refers to; what it binds within, by a walrus say, is not sure to be bound."""
        if node is None:
            return
        self.live |= {name for name in _free(node) if name not in known}
        self.bound |= set(_stored(node))
        self.later |= later_names(node)
        for one in walk(node):
            if isinstance(one, ast.Global):
                self.live |= set(one.names)
                self.bound |= set(one.names)

    def _statement(self, statement: ast.stmt, known: frozenset[str]) -> frozenset[str]:
        match statement:
            case ast.Assign(targets=targets, value=value):
                self.use(value, known)
                return self._bind(targets, known)
            case ast.AnnAssign(target=target, value=value) if value is not None:
                self.use(value, known)
                self.use(statement.annotation, known)
                return self._bind([target], known)
            case ast.AugAssign(target=ast.Name(id=name), value=value):
                self.use(value, known)
                self.live |= {name} - known
                self.bound.add(name)
                return known
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                made = {(alias.asname or alias.name).partition(".")[0] for alias in names}
                self.bound |= made
                return known | made
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AsyncFunctionDef(name=name):
                self.use(statement, known)
                self.bound.add(name)
                return known | {name}
            case ast.Delete():
                gone = {node.id for node in walk(statement) if isinstance(node, ast.Name)}
                self.live |= gone
                self.bound |= gone
                return known - gone
        return self._compound(statement, known)

    def _compound(self, statement: ast.stmt, known: frozenset[str]) -> frozenset[str]:
        """Statements with bodies: what they bind is surely bound inside alone; a body may end early, or not run."""
        match statement:
            case ast.With(items=items, body=body):
                inside = known
                for item in items:
                    self.use(item.context_expr, inside)
                    inside = self._bind([item.optional_vars] if item.optional_vars else [], inside)
                self.through(body, inside)
            case ast.For(target=target, iter=iterated, body=body, orelse=rest):
                self.use(iterated, known)
                self.through(body, self._bind([target], known))
                self.through(rest, known)
            case ast.While(test=test, body=body, orelse=rest):
                self.use(test, known)
                self.through(body, known)
                self.through(rest, known)
            case ast.If(test=test, body=body, orelse=rest):
                self.use(test, known)
                return self.through(body, known) & self.through(rest, known)
            case ast.Try(body=body, handlers=handlers, orelse=rest, finalbody=final):
                self.through((*body, *rest), known)
                for handler in handlers:
                    self.use(handler.type, known)
                    named = {handler.name} if handler.name else set()
                    self.bound |= named
                    self.through(handler.body, known | named)
                    # Python takes the name away after the handler, whatever it stood for.
                    self.live |= {name for name in named if name in known}
                self.through(final, known)
            case _:
                self.use(statement, known)
        return known

    def _bind(self, targets: Iterable[ast.expr], known: frozenset[str]) -> frozenset[str]:
        """Targets of an assignment; an attribute or item of a name uses that name."""
        for target in targets:
            made = frozenset(_stored(target))
            self.live |= {name for name in _free(target) if name not in known}
            self.bound |= made
            known |= made
        return known


def _stored(node: ast.AST) -> Iterator[str]:
    """Names that a node binds where it stands; those of functions and comprehensions in it are their own."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.NamedExpr(target=ast.Name(id=name)):
            yield name
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
            yield name
    if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
        return
    inner = (*_COMPREHENSIONS, ast.comprehension)
    for child in children(node):
        if isinstance(node, ast.comprehension) and child is node.target:
            continue
        found = _stored(child)
        yield from found if not isinstance(node, inner) else (n for n in found if _walrus(child, n))


def _walrus(node: ast.AST, name: str) -> bool:
    return any(isinstance(n, ast.NamedExpr) and n.target.id == name for n in walk(node))


def _free(node: ast.AST) -> Iterator[str]:
    """Names that a node refers to and does not bind in a scope of its own."""
    if isinstance(node, ast.Name):
        if isinstance(node.ctx, ast.Load):
            yield node.id
    elif isinstance(node, _FUNCTIONS):
        yield from _free_of_function(node)
    elif isinstance(node, _COMPREHENSIONS):
        # The first iterable is looked up outside; to take names of the targets there for free errs on the safe side.
        yield from _free(node.generators[0].iter)
        targets = {n for one in node.generators for n in _stored(one.target)}
        parts = [p for child in children(node) for p in _parts(child)]
        yield from (name for part in parts for name in _free(part) if name not in targets)
    else:
        for child in children(node):
            yield from _free(child)


def _parts(node: ast.AST) -> Iterator[ast.AST]:
    yield from children(node) if isinstance(node, ast.comprehension) else (node,)


def _free_of_function(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Iterator[str]:
    given = function.args
    names = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    own = {one.arg for one in names if one}
    body = function.body if isinstance(function.body, list) else [function.body]
    own |= {name for part in body for name in _bound_in(part)}
    own -= {name for part in body for node in walk(part) if isinstance(node, ast.Global) for name in node.names}
    yield from (name for part in body for name in _free(part) if name not in own)
    if not isinstance(function, ast.Lambda):
        yield from (name for part in (*function.decorator_list, function.returns) if part for name in _free(part))
    outside = [*given.defaults, *given.kw_defaults, *(one.annotation for one in names if one)]
    yield from (name for part in outside if part for name in _free(part))


def _bound_in(node: ast.AST) -> Iterator[str]:
    """Names that a function's statement makes the function's own."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
        return
    yield from _stored(node) if isinstance(node, ast.expr) else ()
    if isinstance(node, ast.ExceptHandler) and node.name:
        yield node.name
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from ((alias.asname or alias.name).partition(".")[0] for alias in node.names)
    if isinstance(node, (ast.MatchAs, ast.MatchStar, ast.MatchMapping)):
        yield from _stored(node)
    if not isinstance(node, ast.expr):
        for child in children(node):
            yield from _bound_in(child)
