"""Mutants of a solution: copies that differ from it by one small mistake, of the kinds that people make."""

from __future__ import annotations

import ast
import copy
import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from edl_labs.course.lab.source import Cell

MAX_IDENTITY = 160  # letters: what a line of equivalent.toml may hold; longer ones end in a digest
_LITTLE_LESS = 0.999  # a slack of one in a thousand, which tolerances of 1e-6 must see
_OTHER_OPERATORS: dict[type[ast.operator], tuple[type[ast.operator], ...]] = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div,),
    ast.Div: (ast.Mult, ast.FloorDiv),
    ast.FloorDiv: (ast.Div,),
    ast.Mod: (ast.FloorDiv,),
    ast.Pow: (ast.Mult,),
    ast.LShift: (ast.RShift,),
    ast.RShift: (ast.LShift,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
    ast.BitXor: (ast.BitOr,),
}
_OTHER_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_PAIRS = (("min", "max"), ("floor", "ceil"), ("any", "all"), ("argmin", "argmax"), ("minimum", "maximum"))
_OTHER_FUNCTIONS = {one: other for pair in _PAIRS for one, other in (pair, pair[::-1])}
_REMOVED_CALLS = ("abs", "fabs", "round", "sorted", "reversed")
_SYMMETRIC = ("min", "max", "gcd", "lcm", "hypot", "isclose", "allclose", "equal", "maximum", "minimum", "logaddexp")
_SKIPPED_FIELDS = {"annotation", "returns", "decorator_list", "type_comment", "args"}
_SKIPPED = (ast.JoinedStr, ast.Import, ast.ImportFrom)
_NEVER_DROPPED = (ast.Return, ast.Pass, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.AnnAssign)


@dataclass(frozen=True)
class Mutant:
    """One changed copy of a solve cell. `identity` is its place and change as text, which survives moved lines."""

    exercise: str
    identity: str
    source: str
    line: int


@dataclass(frozen=True)
class _Place:
    """Where a node stands: `parent.field`, at `index` where that is a list; `scope` is the function or class around."""

    node: ast.AST
    parent: ast.AST
    field: str
    index: int | None
    scope: str

    def put(self, node: ast.AST) -> None:
        if self.index is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.index] = node


def mutants_of(cell: Cell) -> list[Mutant]:
    """Every mutant of a solve cell, in the order of its lines; only what students write is changed.

    Mutants that are the same program are one.
    """
    tree = ast.parse(cell.source)
    inside = {number - cell.first + 1 for number, _ in cell.solution_lines}
    whole = ast.unparse(tree)
    bound = _times_bound(tree)
    seen, told, found = {whole}, Counter[str](), []
    for place in list(_places(tree, "")):
        line = getattr(getattr(place.node, "target", place.node), "lineno", 0)  # a comprehension has no line of its own
        if line not in inside:
            continue
        for changed in _changes(place, bound):
            place.put(ast.copy_location(changed, place.node))
            source = ast.unparse(tree)
            place.put(place.node)
            if source in seen:
                continue
            seen.add(source)
            change = _identity(place.scope, whole, source, place.node)
            told[change] += 1
            identity = change if told[change] == 1 else f"{change} #{told[change]}"
            found.append(Mutant(str(cell.name), identity, source, cell.first + line - 1))
    return found


def sampled(mutants: list[Mutant], count: int | None) -> list[Mutant]:
    """`count` of them, always the same ones, in order; all of them when `count` is None."""
    if count is None or count >= len(mutants):
        return mutants
    chosen = sorted(mutants, key=lambda mutant: hashlib.sha256(mutant.identity.encode()).digest())[:count]
    kept = {mutant.identity for mutant in chosen}
    return [mutant for mutant in mutants if mutant.identity in kept]


def _places(node: ast.AST, scope: str) -> Iterator[_Place]:
    for field, value in ast.iter_fields(node):
        if field in _SKIPPED_FIELDS and not (field == "args" and isinstance(node, ast.Call)):
            continue
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(child, ast.AST) and not isinstance(child, _SKIPPED) and not _is_text(child):
                yield _Place(child, node, field, index, scope)
                yield from _places(child, _scope(child, scope))


def _scope(node: ast.AST, around: str) -> str:
    named = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    return f"{around}.{node.name}".lstrip(".") if named else around  # type: ignore[attr-defined]


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _times_bound(tree: ast.AST) -> Counter[str]:
    """How often each name is bound: as an argument, by an assignment, by a loop."""
    return Counter(name for node in ast.walk(tree) for name in _bound_name(node))


def _bound_name(node: ast.AST) -> list[str]:
    if isinstance(node, ast.arg):
        return [node.arg]
    return [node.id] if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else []


def _changes(place: _Place, bound: Counter[str]) -> Iterator[ast.AST]:
    node = place.node
    yield from _by_kind(node)
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        yield _with(node, test=_not(node.test))
        yield _with(node, test=ast.Constant(False))
        if not isinstance(node, ast.While):
            yield _with(node, test=ast.Constant(True))
    if isinstance(node, ast.stmt):
        yield from _statements(place, bound)


def _by_kind(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.BinOp(op=op) | ast.AugAssign(op=op):
            yield from (_with(node, op=other()) for other in _OTHER_OPERATORS.get(type(op), ()))
        case ast.Compare(ops=signs):
            for index, sign in enumerate(signs):
                for other in _OTHER_COMPARISONS[type(sign)]:
                    yield _with(node, ops=[*signs[:index], other(), *signs[index + 1 :]])
        case ast.BoolOp(op=op, values=values):
            yield _with(node, op=ast.Or() if isinstance(op, ast.And) else ast.And())
            for index in range(len(values)):
                rest = [*values[:index], *values[index + 1 :]]
                yield rest[0] if len(rest) == 1 else _with(node, values=rest)
        case ast.UnaryOp(op=ast.USub() | ast.Not() | ast.Invert(), operand=operand):
            yield operand
        case ast.comprehension(ifs=ifs):
            for index, test in enumerate(ifs):
                yield _with(node, ifs=[*ifs[:index], *ifs[index + 1 :]])
                yield _with(node, ifs=[*ifs[:index], _not(test), *ifs[index + 1 :]])
        case ast.Constant(value=value):
            yield from (ast.Constant(other) for other in _other_numbers(value))
        case ast.Call():
            yield from _calls(node)


def _other_numbers(value: Any) -> list[Any]:
    if isinstance(value, bool):
        return [not value]
    if not isinstance(value, int | float):
        return []
    others = [0, value + 1, value - 1, 2 * value]
    if isinstance(value, float) or value > 9:  # smaller whole numbers are counts and indices, which no one scales
        others.append(_LITTLE_LESS * value)
    return [other for index, other in enumerate(others) if other != value and other not in others[:index]]


def _calls(node: ast.Call) -> Iterator[ast.AST]:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name in _OTHER_FUNCTIONS:
        part = {"attr" if isinstance(node.func, ast.Attribute) else "id": _OTHER_FUNCTIONS[name]}
        yield _with(node, func=_with(node.func, **part))
    if name in _REMOVED_CALLS and node.args:
        yield node.args[0]
    if name not in _SYMMETRIC:
        for index in range(len(node.args) - 1):
            one, other = node.args[index : index + 2]
            yield _with(node, args=[*node.args[:index], other, one, *node.args[index + 2 :]])


def _statements(place: _Place, bound: Counter[str]) -> Iterator[ast.AST]:
    node = place.node
    if isinstance(node, ast.Return) and node.value is not None:
        yield ast.Return(None)
    if isinstance(node, ast.Break | ast.Continue):
        yield ast.Continue() if isinstance(node, ast.Break) else ast.Break()
    if isinstance(node, ast.For) and not isinstance(node.body[-1], ast.Return | ast.Break | ast.Raise):
        yield _with(node, body=[*node.body, ast.Break()])
    if _droppable(place, bound):
        yield ast.Pass()
    early = _early_return(place)
    if early is not None:
        yield early


def _droppable(place: _Place, bound: Counter[str]) -> bool:
    """Whether leaving a statement out makes another program, and not only one in which a name is missing."""
    node = place.node
    if isinstance(node, _NEVER_DROPPED) or isinstance(place.parent, ast.Module):
        return False
    if isinstance(node, ast.Assign):
        names = [name for target in node.targets for part in ast.walk(target) for name in _bound_name(part)]
        return not names or any(bound[name] > 1 for name in names)
    return True


def _early_return(place: _Place) -> ast.AST | None:
    """A statement that ends its function at once, where the last one returns a name: with the name's value so far."""
    body = getattr(place.parent, place.field)
    if place.index is None or not isinstance(place.parent, ast.FunctionDef) or place.index >= len(body) - 1:
        return None
    last = body[-1]
    return ast.Return(last.value) if isinstance(last, ast.Return) and isinstance(last.value, ast.Name) else None


def _not(test: ast.expr) -> ast.expr:
    return (
        test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else ast.UnaryOp(ast.Not(), test)
    )


def _with(node: ast.AST, **changed: Any) -> ast.AST:
    """A copy of `node` with other fields; the rest is shared, since it is only read."""
    other = copy.copy(node)
    for field, value in changed.items():
        setattr(other, field, value)
    return other


def _identity(scope: str, whole: str, source: str, node: ast.AST) -> str:
    """The changed lines as text; of a block its first line, and the line of `node` where nothing went away."""
    before, after = whole.split("\n"), source.split("\n")
    while before and after and before[0] == after[0]:
        before, after = before[1:], after[1:]
    while before and after and before[-1] == after[-1]:
        before, after = before[:-1], after[:-1]
    old = _glance(before or [ast.unparse(node).split("\n")[0], ""])
    text = f"{scope}: - {old} + {_glance(after)}" if after else f"{scope}: - {old}"
    if len(text) <= MAX_IDENTITY:
        return text
    return f"{text[: MAX_IDENTITY - 10]}… {hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _glance(lines: list[str]) -> str:
    return lines[0].strip() + (" …" if len(lines) > 1 else "")
