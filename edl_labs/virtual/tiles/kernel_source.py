"""Kernels from source text: bounded before it is parsed, never executed."""

from __future__ import annotations

import ast
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from edl_labs.virtual.tiles.tile_errors import refuse

MAX_SOURCE_BYTES = 64_000  # the longest published kernel files have some 30 kB
MAX_NESTING = 50  # levels of expressions and statements; published kernels have some 15
_DECORATORS = frozenset({"jit", "triton.jit"})
_TUNERS = {
    "autotune": "pass the block sizes at the launch: kernel[grid](..., BLOCK=64)",
    "heuristics": "compute the value on the host and pass it as a constexpr",
}
RESERVED = frozenset({"tl", "triton", "range", "min", "max", "float", "int", "len", "jit"})
_ALTERNATIVES: dict[type[ast.AST], tuple[str, str]] = {
    ast.Break: ("break", "move the condition into a `while`, or mask the rest of the loop"),
    ast.Continue: ("continue", "put the rest of the body under an `if`"),
    ast.Lambda: ("lambda", "define a function with @jit"),
    ast.ListComp: ("A comprehension", "write a loop over tl.static_range"),
    ast.SetComp: ("A comprehension", "write a loop over tl.static_range"),
    ast.DictComp: ("A comprehension", "write a loop over tl.static_range"),
    ast.GeneratorExp: ("A generator", "write a loop over tl.static_range"),
    ast.JoinedStr: ("An f-string", "use a plain string"),
    ast.Try: ("try", "a kernel has no exceptions; test the condition with tl.where"),
    ast.Raise: ("raise", "use tl.static_assert"),
    ast.Assert: ("assert", "use tl.static_assert for conditions that are known at compile time"),
    ast.With: ("with", "write the statements without `with`"),
    ast.Import: ("import", "import modules on the host; a kernel uses only `tl`"),
    ast.ImportFrom: ("import", "import modules on the host; a kernel uses only `tl`"),
    ast.Global: ("global", "pass the value as a constexpr parameter"),
    ast.Nonlocal: ("nonlocal", "pass the value as a parameter"),
    ast.FunctionDef: ("A function inside a kernel", "define it at module level with @jit"),
    ast.ClassDef: ("A class", "use plain values"),
    ast.Delete: ("del", "remove it; values that are no longer needed take no space"),
    ast.Dict: ("A dict", "use separate names"),
    ast.Set: ("A set", "use separate names"),
    ast.Starred: ("A starred expression", "write out the parts"),
    ast.Await: ("await", "remove it; a kernel is not asynchronous"),
    ast.Yield: ("yield", "store the values with tl.store"),
    ast.NamedExpr: ("`:=`", "write a separate assignment statement"),
    ast.Match: ("match", "use `if`"),
}
_ALLOWED = (
    ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.For, ast.While, ast.If, ast.Return, ast.Pass,
    ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Call, ast.Name, ast.Attribute, ast.Subscript, ast.Slice,
    ast.Constant, ast.Tuple, ast.List, ast.IfExp, ast.keyword, ast.operator, ast.unaryop, ast.boolop, ast.cmpop,
    ast.expr_context, ast.arguments, ast.arg,
)  # fmt: skip


@dataclass(frozen=True)
class KernelFunction:
    """One function with @jit: its parameters, those that are constexpr, its defaults and its body."""

    name: str
    line: int
    parameters: tuple[str, ...]
    constants: frozenset[str]
    defaults: dict[str, ast.expr]
    body: tuple[ast.stmt, ...]


@dataclass(frozen=True)
class KernelModule:
    """The kernels of a source, and its constexpr names."""

    kernels: dict[str, KernelFunction]
    constants: dict[str, ast.expr]

    def kernel(self, name: str) -> KernelFunction:
        """A kernel by its name; TileError where there is none."""
        if name not in self.kernels:
            known = ", ".join(self.kernels) or "no kernel"
            raise refuse(
                f"There is no kernel `{str(name)[:60]}`.",
                why=f"the source contains {known}",
                next="add @jit above the function",
            )
        return self.kernels[name]


def parse_kernels(source: str) -> KernelModule:
    """The kernels of a source text; TileError, with the line, for anything outside of the language.

    >>> sorted(parse_kernels("@jit\\ndef f(x_ptr, n): pass").kernels)
    ['f']
    """
    if type(source) is not str or len(source.encode(errors="replace")) > MAX_SOURCE_BYTES:
        raise refuse(
            f"The source has more than {MAX_SOURCE_BYTES:,} bytes, or is not a string.", next="shorten the kernel"
        )
    tree = _tree(unicodedata.normalize("NFKC", source))
    kernels, constants = {}, {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and _is_kernel(node):
            kernels[node.name] = _function(node)
        elif constant := _constant(node):
            constants[constant[0]] = constant[1]
    return KernelModule(kernels, constants)


def _tree(source: str) -> ast.Module:
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        line = error.lineno or 0
        raise refuse(f"The source is not valid Python: {error.msg}.", next="fix that line").at(line) from None
    except (ValueError, RecursionError, MemoryError):
        raise refuse(
            "The source cannot be parsed.",
            why="the source is nested too deeply",
            next="split it into parts, and give each part a name",
        ) from None
    return tree


def _is_kernel(node: ast.FunctionDef) -> bool:
    names = [ast.unparse(one) if _depth_fits(one) else "" for one in node.decorator_list]
    for name in names:
        word = name.partition("(")[0].rpartition(".")[2]
        if word in _TUNERS:
            raise refuse(f"@{word} is not supported.", next=_TUNERS[word]).at(node.lineno)
    is_kernel = [name.partition("(")[0] in _DECORATORS for name in names]
    if any(is_kernel) and not all(is_kernel):
        other = names[is_kernel.index(False)][:40]
        raise refuse(f"The decorator @{other} is not known.", next="use only @jit").at(node.lineno)
    return any(is_kernel)


def _depth_fits(node: ast.AST) -> bool:
    return all(depth <= MAX_NESTING for _, depth in _walk(node))


def _walk(top: ast.AST) -> Iterator[tuple[Any, int]]:
    """All nodes with their depth; without recursion, so that no source can exhaust the stack."""
    stack: list[tuple[ast.AST, int]] = [(top, 0)]
    while stack:
        node, depth = stack.pop()
        yield node, depth
        if depth <= MAX_NESTING:
            stack.extend((child, depth + 1) for child in ast.iter_child_nodes(node))


def _function(node: ast.FunctionDef) -> KernelFunction:
    given = node.args
    if given.vararg or given.kwarg:
        raise refuse("A kernel cannot have *args or **kwargs.", next="name each parameter").at(node.lineno)
    for part in [*node.body, *given.defaults, *filter(None, given.kw_defaults)]:
        _check(part)
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    names = tuple(one.arg for one in every)
    for name in names:
        check_name(name, node.lineno)
    positional = [one.arg for one in (*given.posonlyargs, *given.args)]
    defaults = dict(zip(positional[len(positional) - len(given.defaults) :], given.defaults, strict=True))
    defaults |= {one.arg: value for one, value in zip(given.kwonlyargs, given.kw_defaults, strict=True) if value}
    constants = frozenset(one.arg for one in every if is_constexpr(one.annotation))
    return KernelFunction(node.name, node.lineno, names, constants, defaults, tuple(node.body))


def check_name(name: str, line: int) -> None:
    """TileError where a name would hide a name of the language."""
    if name in RESERVED:
        raise refuse(f"The name `{name}` is reserved.", why="the language uses this name itself", next="rename it").at(
            line
        )


def is_constexpr(annotation: ast.expr | None) -> bool:
    """Whether an annotation is `tl.constexpr`, also as text."""
    if isinstance(annotation, ast.Constant):
        return annotation.value in ("tl.constexpr", "constexpr")
    if isinstance(annotation, ast.Attribute):
        return annotation.attr == "constexpr"
    return isinstance(annotation, ast.Name) and annotation.id == "constexpr"


def _check(top: ast.AST) -> None:
    for node, depth in _walk(top):
        line = getattr(node, "lineno", getattr(top, "lineno", 0))
        if depth > MAX_NESTING:
            raise refuse(
                f"The source has more than {MAX_NESTING} levels of nesting.",
                next="assign parts of the expression to names",
            ).at(line)
        if not isinstance(node, _ALLOWED):
            what, then = _ALTERNATIVES.get(type(node), (type(node).__name__, "see the list in docs/library/tiles.md"))
            raise refuse(f"{what} is not part of the language.", next=then).at(line)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            check_name(node.id, line)
        if isinstance(node, ast.For | ast.While) and node.orelse:
            raise refuse("A loop cannot have an `else`.", next="write that code after the loop").at(line)


def _constant(node: ast.stmt) -> tuple[str, ast.expr] | None:
    """A module-level constexpr: `N: tl.constexpr = 4` or `N = tl.constexpr(4)`."""
    if isinstance(node, ast.AnnAssign) and is_constexpr(node.annotation) and isinstance(node.target, ast.Name):
        name, value = node.target.id, node.value
    elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and is_constexpr(node.value.func):
        target, value = node.targets[0], (node.value.args[0] if node.value.args else None)
        name = target.id if isinstance(target, ast.Name) else ""
    else:
        return None
    if value is None or not name:
        return None
    check_name(name, node.lineno)
    _check(value)
    return name, value
