"""Names of what statements assign in: items and attributes, what is put back as it was aside."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from edl_labs.course.grade.syntax_walk import walk

LAZY = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.GeneratorExp)
ANY_CLASS = "type"  # who sets attributes of an instance's class
_INSIDES = frozenset((
    "__annotations__", "__bases__", "__closure__", "__code__", "__defaults__", "__dict__", "__func__",
    "__kwdefaults__", "__mro__", "__self__", "__subclasses__", "__wrapped__"
))  # fmt: skip


def root_of(node: ast.AST) -> str:
    """The name that a chain of attributes, items and calls begins with; empty where it begins with none."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def matching(targets: list[ast.expr], values: list[ast.expr]) -> bool:
    """Whether two lists of the two sides of an assignment belong together one by one."""
    return len(targets) == len(values) and not any(isinstance(one, ast.Starred) for one in (*targets, *values))


def stored_names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Names whose attributes or items are assigned; not what a function's `finally` puts back as it was."""
    known = list(nodes)
    back = {target for node in known if isinstance(node, ast.FunctionDef) for target in _put_back(node)}
    for node in known:
        stored = isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load)
        if stored and not (back and _text(node) in back):
            yield root_of(node)


def patched_names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Names of what attributes are set of, methods' own instances aside; `vars` and insides as `__dict__` count."""
    known = list(nodes)
    methods = [part for node in known if isinstance(node, ast.ClassDef) for part in node.body]
    own = {id(n) for part in methods for n in walk(part) if _is_of_instance(n, part)}
    for node in known:
        match node:
            case ast.Attribute(attr="__class__"):
                yield ANY_CLASS
            case ast.Attribute(ctx=ast.Store() | ast.Del()) if id(node) not in own:
                yield root_of(node)
            case ast.Attribute(attr=name) if name in _INSIDES:
                yield root_of(node)
            case ast.Call(func=ast.Name(id="vars"), args=[of]):
                yield root_of(of)


def _is_of_instance(node: ast.AST, method: ast.stmt) -> bool:
    """Whether it is an attribute of the instance that a method was called on."""
    if not isinstance(method, ast.FunctionDef) or method.decorator_list or not isinstance(node, ast.Attribute):
        return False
    return [one.arg for one in method.args.args[:1]] == [_text(node.value)]


def _put_back(function: ast.FunctionDef) -> Iterator[str]:
    """Attributes that a function's `finally` sets to what a name of its own kept of them before it began."""
    kept = dict(pair for statement in function.body for pair in _kept(statement))
    inner = [part for part in walk(function) if isinstance(part, LAZY) and part is not function]
    later = [n for part in inner for n in walk(part)]
    if any(isinstance(n, (ast.Yield, ast.YieldFrom, ast.Await)) for n in walk(function)):
        return  # it may stop in between
    for place, statement in enumerate(function.body):
        if not isinstance(statement, ast.Try):
            continue
        guarded = (statement, function.body[max(place - 1, 0)])
        outside = {_text(n) for part in function.body if part not in guarded for n in walk(part) if _is_set(n)}
        outside |= {_text(n) for n in later if _is_set(n)}
        for end in statement.finalbody:
            match end:
                case ast.Assign(targets=[ast.Attribute() as target], value=ast.Name(id=name)):
                    if kept.get(_text(target)) == name and _text(target) not in outside and _once(function, name):
                        yield _text(target)
                case _:
                    break  # what comes after it may not be reached


_text = ast.unparse


def _is_set(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)


def _once(function: ast.FunctionDef, name: str) -> bool:
    """Whether a function binds a name in one place."""
    return sum(isinstance(n, ast.Name) and n.id == name and _is_bound(n) for n in walk(function)) == 1


def _is_bound(node: ast.Name) -> bool:
    return not isinstance(node.ctx, ast.Load)


def _kept(statement: ast.stmt) -> Iterator[tuple[str, str]]:
    """Attributes whose values a statement keeps, each with the name that it gives them."""
    match statement:
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)) if matching(names, values):
            pairs = list(zip(names, values, strict=True))
        case ast.Assign(targets=[target], value=value):
            pairs = [(target, value)]
        case _:
            pairs = []
    for target, value in pairs:
        if isinstance(target, ast.Name) and isinstance(value, ast.Attribute):
            yield _text(value), target.id
