"""Names that a statement gives to what nobody can alter, and statements that only define.

A function, a class or a constant is fixed as long as it keeps nothing that its callers share: no default or attribute
that can change, no decorator of the notebook's own, no hook that other classes call.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from edl_labs.course.grade.plain_code import cannot_change
from edl_labs.course.grade.syntax_walk import walk

_HOOKS = frozenset(("__init_subclass__", "__set_name__", "__class_getitem__", "__new__", "__del__"))
_HARMLESS = ("staticmethod", "property")  # decorators that keep nothing
# What these give as base classes tells nobody of its subclasses.
_LIBRARIES = frozenset(("abc", "enum", "nn", "torch", "typing"))
_ERRORS = frozenset(
    ("ArithmeticError", "Exception", "LookupError", "RuntimeError", "TypeError", "ValueError", "object")
)


def only_defines(statement: ast.stmt) -> bool:
    """Whether a statement binds functions, classes or imports, and runs nothing that could do more."""
    match statement:
        case ast.FunctionDef():
            return not statement.decorator_list and _calls_nothing(*_outside(statement))
        case ast.ClassDef(bases=bases):
            known = all(ast.unparse(base) in _ERRORS or _first_name(base) in _LIBRARIES for base in bases)
            return known and not statement.decorator_list and not statement.keywords and _only_members(statement)
        case ast.Import() | ast.ImportFrom():
            return True
        case ast.Expr(value=value):
            return isinstance(value, ast.Constant)
    return False


def fixed_names(statement: ast.stmt) -> Iterator[tuple[str, frozenset[str]]]:
    """What a statement binds that nobody can alter, each with the names on which that hangs."""
    match statement:
        case ast.Import() | ast.ImportFrom():
            yield from ((name, frozenset[str]()) for name, _ in imports_of([statement]))
        case ast.FunctionDef(name=name, decorator_list=[]) if all(map(cannot_change, _defaults(statement.args))):
            yield name, frozenset(n for d in _defaults(statement.args) for n in names_in(d))
        case ast.ClassDef(name=name) if _keeps_nothing(statement):
            yield (
                name,
                frozenset(_first_name(base) for base in statement.bases) | frozenset(_method_defaults(statement)),
            )
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if cannot_change(value) and not any(
            isinstance(n, ast.Attribute) and not isinstance(value, ast.Lambda) for n in walk(value)
        ):
            yield name, frozenset(_kept_names(value))
        case ast.Try() | ast.If() | ast.With():
            yield from imported_only(statement)


def imported_only(statement: ast.stmt) -> Iterator[tuple[str, frozenset[str]]]:
    """Names that a statement binds by imports alone."""
    nodes = list(walk(statement))
    other = {n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    other |= {n.name for n in nodes if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    yield from ((name, frozenset[str]()) for name, _ in imports_of(nodes) if name not in other)


def imports_of(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, str]]:
    """Names that imports bind, each with what it stands for: `import a.b` binds `a`, which is `a`."""
    for node in nodes:
        match node:
            case ast.Import(names=names):
                yield from ((a.asname, a.name) if a.asname else (_top(a.name), _top(a.name)) for a in names)
            case ast.ImportFrom(module=module, names=names):
                yield from ((a.asname or a.name, f"{module}.{a.name}") for a in names)


def names_in(node: ast.AST) -> Iterator[str]:
    """Names anywhere in a node."""
    return (n.id for n in walk(node) if isinstance(n, ast.Name))


def _top(dotted: str) -> str:
    return dotted.partition(".")[0]


def _defaults(arguments: ast.arguments) -> list[ast.expr]:
    return [one for one in (*arguments.defaults, *arguments.kw_defaults) if one]


def _outside(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """What of a function runs where it is defined."""
    yield from _defaults(function.args)
    yield from (n.annotation for n in walk(function.args) if isinstance(n, ast.arg) and n.annotation)
    if function.returns:
        yield function.returns


def _calls_nothing(*nodes: ast.AST) -> bool:
    return not any(isinstance(n, (ast.Call, ast.NamedExpr, ast.Await)) for node in nodes for n in walk(node))


def _only_members(made: ast.ClassDef) -> bool:
    """Whether a class body is functions and constants; whatever else runs where it stands."""
    for part in made.body:
        match part:
            case ast.FunctionDef():
                if part.decorator_list or part.name in _HOOKS or not _calls_nothing(*_outside(part)):
                    return False
            case ast.Assign(value=value) | ast.AnnAssign(value=value):
                noted = [part.annotation] if isinstance(part, ast.AnnAssign) else []
                if (value is not None and not cannot_change(value)) or not _calls_nothing(*noted):
                    return False
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                pass
            case _:
                return False
    return True


def _kept_names(value: ast.expr) -> Iterator[str]:
    """Names whose objects a value that cannot change holds; of a function, those of its defaults."""
    if isinstance(value, ast.Lambda):
        yield from (n for d in _defaults(value.args) for n in names_in(d))
    elif not isinstance(value, ast.JoinedStr):
        yield from names_in(value)


def _keeps_nothing(made: ast.ClassDef) -> bool:
    """Whether a class cannot hold what its instances share and alter."""
    odd = any(
        (isinstance(n, ast.Name) and n.id in ("cls", "type")) or (isinstance(n, ast.Attribute) and n.attr[:2] == "__")
        for n in walk(made)
        if not (isinstance(n, ast.Attribute) and n.attr == "__init__")
    )
    plain = all(
        isinstance(part, ast.Pass)
        or (isinstance(part, ast.FunctionDef) and _is_plain_method(part))
        or (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))
        or (isinstance(part, (ast.Assign, ast.AnnAssign)) and (part.value is None or cannot_change(part.value)))
        for part in made.body
    )
    known = all(isinstance(base, (ast.Name, ast.Attribute)) for base in made.bases)
    return plain and known and not odd and not made.decorator_list and not made.keywords


def _is_plain_method(method: ast.FunctionDef) -> bool:
    harmless = all(isinstance(d, ast.Name) and d.id in _HARMLESS for d in method.decorator_list)
    return harmless and method.name not in _HOOKS and all(map(cannot_change, _defaults(method.args)))


def _method_defaults(made: ast.ClassDef) -> Iterator[str]:
    methods = (part for part in made.body if isinstance(part, ast.FunctionDef))
    return (name for method in methods for d in _defaults(method.args) for name in names_in(d))


def _first_name(node: ast.AST) -> str:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
