"""Whether a student's cell is plain: what it does hangs on its own names alone, not on what else has run.

Plain code defines functions and classes, binds what cannot change, and calls. Whatever could look at the notebook,
keep a state between calls, or change somebody else's object is not plain, and neither is what does not parse: magics,
`exec`, `globals()`, star imports, caches, mutable defaults. Saying no costs time alone: the whole notebook runs then.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from edl_labs.course.grade.syntax_walk import children, walk

# Modules whose functions keep no state that marks could hang on; the library's own exercises are none.
_MODULES = frozenset((
    "__future__", "abc", "bisect", "collections", "contextlib", "copy", "dataclasses", "decimal", "edl_labs",
    "enum", "fractions", "functools", "heapq", "itertools", "math", "matplotlib", "numbers", "numpy", "operator",
    "pandas", "queue", "re", "scipy", "statistics", "string", "textwrap", "threading", "time", "torch",
    "torchvision", "typing"
))  # fmt: skip
_NAMES = frozenset((
    "In", "Out", "breakpoint", "builtins", "compile", "ctypes", "delattr", "dir", "eval", "exec", "exit", "gc",
    "get_ipython", "globals", "importlib", "input", "inspect", "locals", "os", "quit", "setattr", "subprocess",
    "sys", "vars"
))  # fmt: skip
_ATTRIBUTES = frozenset((
    "_getframe", "active_count", "ast_transformers", "attrgetter", "cache", "cached_property", "exercises", "gca",
    "gcf", "get_fignums", "input_transformers_cleanup", "lru_cache", "methodcaller", "modules", "register",
    "user_global_ns", "user_ns"
))  # fmt: skip
_SPECIAL = frozenset((
    "__init__", "__name__", "__len__", "__iter__", "__next__", "__call__", "__enter__", "__exit__", "__getitem__",
    "__repr__", "__str__", "__eq__", "__post_init__", "__add__", "__lt__", "__contains__"
))  # fmt: skip
_DECORATORS = frozenset((
    "staticmethod", "classmethod", "property", "dataclass", "dataclasses.dataclass", "torch.no_grad",
    "torch.inference_mode", "contextmanager", "contextlib.contextmanager", "functools.wraps", "wraps",
    "functools.total_ordering", "total_ordering", "abstractmethod", "abc.abstractmethod"
))  # fmt: skip
# What shows something below a cell, and reaches nothing of the notebook.
_SHOWS = frozenset(("HTML", "Image", "Markdown", "SVG", "clear_output", "display"))
_HISTORY = re.compile(r"_+|_i+|_i?\d+|_[iod]h")  # what IPython calls earlier cells and their results
_REACHING_FORMAT = re.compile(r"\{[^{}]*\.__")  # "{0.__globals__}".format(function)
_READING = frozenset((
    "get", "items", "keys", "values", "index", "count"
))  # fmt: skip
# Calls whose results keep nothing that a later call could alter, or are what `_reads` looks at.
_MAKERS = frozenset((
    "abs", "bool", "dict", "float", "frozenset", "int", "len", "list", "max", "min", "pow", "range", "round",
    "set", "sorted", "str", "sum", "tuple"
))  # fmt: skip
LABS_KEPT = 512  # released cells parsed once: some 50 a lab
IMMUTABLE = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
_FUNCTIONS = (ast.FunctionDef, ast.Lambda)
_MUTABLE = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)


def is_plain(sources: Sequence[str], *, beside: Iterable[str] = ()) -> bool:
    """Whether all of a student's cells are plain; they share one namespace with the released cells `beside` them."""
    try:
        trees, given = [ast.parse(source) for source in sources], [parsed(source) for source in beside]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    try:
        if not all(_is_harmless(node) for tree in trees for node in walk(tree)):
            return False
        return not _keeps_state(trees, given) and not any(_binds_unknown(s) for tree in trees for s in tree.body)
    except RecursionError:
        return False


def is_history(name: str) -> bool:
    """Whether IPython calls an earlier cell, or what came of it, so."""
    return _HISTORY.fullmatch(name) is not None


@lru_cache(maxsize=LABS_KEPT)
def parsed(source: str) -> ast.Module:
    """The tree of a released cell, which many submissions share: nobody alters it."""
    return ast.parse(source)


def parents_of(tree: ast.Module) -> dict[ast.AST, ast.AST]:
    """Above each node of a tree but the top: the node that it is a part of, in the order of `ast.walk`."""
    found: dict[ast.AST, ast.AST] = {}
    nodes: list[ast.AST] = [tree]
    for node in nodes:
        for child in children(node):
            found[child] = node
            nodes.append(child)
    return found


def _is_harmless(node: ast.AST) -> bool:
    """Whether one node, wherever it stands, reaches nothing but what it names."""
    match node:
        case ast.Import():
            return all(_is_known(alias.name) for alias in node.names)
        case ast.ImportFrom() if imports_displays(node):
            return True
        case ast.ImportFrom():
            starred = any(alias.name == "*" or alias.name in _ATTRIBUTES for alias in node.names)
            return not node.level and not starred and _is_known(node.module or "", [a.name for a in node.names])
        case ast.Name():
            shown = isinstance(node.ctx, ast.Load) and is_history(node.id)
            return node.id not in _NAMES and not node.id.startswith("__") and not shown
        case ast.Call(func=ast.Name(id="getattr" | "hasattr"), args=[_, asked, *_]):
            name = asked.value if isinstance(asked, ast.Constant) else None
            return isinstance(name, str) and not name.startswith("__") and name not in _ATTRIBUTES
        case ast.Constant(value=str(text)):
            return not _REACHING_FORMAT.search(text)
        case ast.Attribute():
            return node.attr not in _ATTRIBUTES and (not node.attr.startswith("__") or node.attr in _SPECIAL)
        case ast.FunctionDef() | ast.ClassDef():
            return all(_dotted(d.func if isinstance(d, ast.Call) else d) in _DECORATORS for d in node.decorator_list)
        case ast.arguments():
            return all(cannot_change(default) for default in [*node.defaults, *node.kw_defaults] if default)
        case ast.Global() | ast.Delete() | ast.AsyncFunctionDef() | ast.Await() | ast.AsyncFor() | ast.AsyncWith():
            return False
    return True


def imports_displays(node: ast.ImportFrom) -> bool:
    """Whether an import takes nothing but what shows something, from the module that has it."""
    return node.module == "IPython.display" and not node.level and all(alias.name in _SHOWS for alias in node.names)


def _is_known(module: str, names: list[str] | None = None) -> bool:
    top, _, rest = module.partition(".")
    reaches = {*rest.split("."), *(names or ())} & {"exercises", "course", "checks", "multiprocessing"}
    return top in _MODULES and not (reaches and top in ("edl_labs", "torch"))


def _dotted(node: ast.expr) -> str:
    try:
        return ast.unparse(node)
    except RecursionError:
        return ""


def cannot_change(node: ast.expr) -> bool:
    """Whether a value is a number, a text, a function, or made of such: nothing that a later call could alter."""
    match node:
        case ast.Constant() | ast.Name() | ast.JoinedStr():
            return True
        case ast.Lambda(args=taken):
            return all(cannot_change(one) for one in (*taken.defaults, *taken.kw_defaults) if one)
        case ast.Attribute():
            return cannot_change(node.value)
        case ast.Tuple():
            return all(cannot_change(item) for item in node.elts)
        case ast.UnaryOp():
            return cannot_change(node.operand)
        case ast.BinOp():
            return cannot_change(node.left) and cannot_change(node.right)
        case ast.Compare() | ast.BoolOp() | ast.IfExp():
            return all(cannot_change(part) for part in children(node) if isinstance(part, ast.expr))
    return False


def _binds_unknown(statement: ast.stmt) -> bool:
    """Whether a statement at the top gives a name to what a call made, or a bound method: it may keep a state."""
    if isinstance(statement, IMMUTABLE):
        return False
    binds = any(isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) for n in walk(statement))
    return binds and any(map(_may_keep_state, _evaluated(statement)))


def _evaluated(node: ast.AST) -> Iterator[ast.AST]:
    """What runs with a statement: not the bodies of functions in it."""
    yield node
    for child in children(node):
        if not isinstance(child, _FUNCTIONS):
            yield from _evaluated(child)


def _may_keep_state(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=name)):
            return name not in _MAKERS
        case ast.Call(func=ast.Attribute(value=ast.Name(id="math"))):
            return False
        case ast.Call() | ast.GeneratorExp() | ast.Attribute(value=ast.Name() | ast.Attribute()):
            return not (isinstance(node, ast.Attribute) and _root(node) in ("math", "torch", "np", "numpy"))
        case ast.Attribute():
            return True
    return False


def _keeps_state(trees: list[ast.Module], given: list[ast.Module]) -> bool:
    """Whether a function reads what is bound outside it and may change, or changes what lies outside it."""
    bound: _Bound = {}
    for name, value in (pair for tree in (*trees, *given) for pair in _bound_in(tree)):
        bound.setdefault(name, []).append(value)
    classes = [node for tree in trees for node in walk(tree) if isinstance(node, ast.ClassDef)]
    return any(map(_class_keeps_state, classes)) or any(_reaches_out(tree, bound) for tree in trees)


@lru_cache(maxsize=LABS_KEPT)
def _bound_in(tree: ast.Module) -> tuple[tuple[str, ast.AST | None], ...]:
    return tuple(bindings(tree.body))


def bindings(body: list[ast.stmt]) -> Iterator[tuple[str, ast.AST | None]]:
    """What a cell binds at its top, with the value where it is one; None for what a loop, `with` or import binds."""
    for statement in body:
        match statement:
            case ast.FunctionDef() | ast.ClassDef():
                yield statement.name, statement
            case ast.Import() | ast.ImportFrom():
                for alias in statement.names:
                    yield (alias.asname or alias.name).partition(".")[0], statement
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AugAssign(target=ast.Name(id=name), value=value)
            ):
                yield name, value
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)) if len(names) == len(values):
                yield from ((_root(name), value) for name, value in zip(names, values, strict=True))
            case _:
                for node in walk(statement):
                    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                        yield node.id, None


def _class_keeps_state(made: ast.ClassDef) -> bool:
    """Whether a class holds something that its instances share and could alter."""
    for statement in made.body:
        value = getattr(statement, "value", None)
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and value is not None and not cannot_change(value):
            made_by = _dotted(value.func) if isinstance(value, ast.Call) else ""
            if made_by not in ("field", "dataclasses.field"):
                return True
    return False


_Bound = dict[str, list[ast.AST | None]]


def _reaches_out(tree: ast.Module, bound: _Bound) -> bool:
    parents = parents_of(tree)
    known: _Locals = {}
    for node in [tree, *parents]:
        stored = isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, (ast.Store, ast.Del))
        if stored and _holder(node) not in _locals_around(node, parents, known):
            return True
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in bound:
            within = _locals_around(node, parents, known)
            outside = within is not _TOP and node.id not in within
            if outside and not all(_reads(node, value, parents) for value in bound[node.id]):
                return True
    return False


_Locals = dict[ast.AST, frozenset[str]]
_TOP: frozenset[str] = frozenset({"the top of a cell"})


def _locals_around(node: ast.AST, parents: dict[ast.AST, ast.AST], known: _Locals) -> frozenset[str]:
    """Names that functions around `node` bind themselves; `_TOP` outside of functions.

    `known` remembers them for what lies directly in each node above.
    """
    above = []
    while node in parents and parents[node] not in known:
        node = parents[node]
        above.append(node)
    found = known[parents[node]] if node in parents else _TOP
    for outer in reversed(above):
        if isinstance(outer, _FUNCTIONS):
            own = frozenset(_own_locals(outer))
            found = own if found is _TOP else found | own
        known[outer] = found
    return found


def _own_locals(node: ast.FunctionDef | ast.Lambda) -> set[str]:
    arguments = node.args
    given = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    found = {one.arg for one in given if one}
    for n in walk(node):
        match n:
            case ast.Name(id=name, ctx=ast.Store()) | ast.ExceptHandler(name=str(name)):
                found.add(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) if n is not node:
                found.add(name)
    return found


def _reads(node: ast.Name, value: ast.AST | None, parents: dict[ast.AST, ast.AST]) -> bool:
    """Whether a function's use of what is bound outside leaves it as it is."""
    if isinstance(value, IMMUTABLE):
        return True
    if isinstance(value, ast.expr) and cannot_change(value) and not isinstance(value, ast.Name):
        return True
    if not _holds_values(value):
        return False
    parent = parents[node]
    match parent:
        case ast.Subscript(ctx=ast.Load()):
            return parent.value is node
        case ast.Compare():
            return parent.left is not node
        case ast.For() | ast.comprehension():
            return parent.iter is node
        case ast.Call(func=ast.Name(id="len")):
            return True
        case ast.Attribute(attr=attribute):
            return attribute in _READING
    return False


def _holds_values(value: ast.AST | None) -> bool:
    """Whether it is a container or another name: looking in changes nothing, as drawing from an iterator does."""
    match value:
        case ast.BinOp():
            return _holds_values(value.left) and _holds_values(value.right)
        case ast.Call(func=ast.Name(id="dict" | "frozenset" | "list" | "set" | "sorted" | "tuple")):
            return True
    return isinstance(value, (*_MUTABLE, ast.Name))


def _holder(node: ast.AST) -> str:
    """The name of what is stored into: of `table.setdefault(key, {})[1] = 2` it is `table`, too."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        match node.value:
            case ast.Call(func=ast.Attribute(attr="setdefault" | "get") as asked):
                node = asked
            case _:
                node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _root(node: ast.AST) -> str:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
