"""What a call of something imported may alter that has no name in the notebook: settings, files, random numbers."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from edl_labs.course.grade.syntax_walk import walk

PROCESS = "<settings of the process>"  # whatever alters them runs
DRAWS = "<generators and modes>"  # what torch and numpy keep: whatever alters them runs where something needed asks
FOLDER = "tempfile.TemporaryDirectory"  # a folder with a name that nobody can guess: only who has it sees its files
_PACKAGE = Path(__file__).resolve().parents[2]
_QUIET = frozenset((
    "__future__", "bisect", "collections", "dataclasses", "edl_labs", "enum", "fractions", "itertools", "math",
    "numbers", "operator", "statistics", "string", "textwrap", "time", "timeit", "types", "typing"
))  # fmt: skip
_ARRAYS = frozenset(("numpy", "torch"))
_PYPLOT = frozenset(("subplots", "show", "figure", "plot", "close", "title", "xlabel", "ylabel", "legend"))
_SETS = (
    "set", "seed", "default", "enable", "disable", "use_", "backends", "option", "err", "register", "patch",
    "hook", "init", "library", "reset", "config", "style", "rc", "environ", "update", "append", "insert", "clear"
)  # fmt: skip
# Methods that write files, of whatever object.
_WRITES = frozenset((
    "dump", "export_chrome_trace", "mkdir", "rename", "rmdir", "save", "savefig", "savetxt", "savez", "symlink_to",
    "to_csv", "to_json", "tofile", "touch", "unlink", "write_bytes", "write_text"
))  # fmt: skip
# Calls that make something new, whose methods alter that alone.
_MAKES = frozenset((
    "numpy.random.default_rng", "numpy.random.RandomState", "queue.Queue", "queue.SimpleQueue", "random.Random",
    "tempfile.TemporaryDirectory", "threading.Event", "threading.Lock", "threading.Thread", "torch.Generator"
))  # fmt: skip
# Functions of torch and numpy, and methods, that draw random numbers, whatever object they belong to.
_DRAWS = frozenset((
    "bernoulli", "bernoulli_", "cauchy_", "exponential_", "geometric_", "log_normal_", "multinomial", "normal_",
    "random_", "uniform_"
))  # fmt: skip
# Parts of the names of what draws.
_RANDOM = (
    "bernoulli", "choice", "dropout", "fork_rng", "gumbel", "multinomial", "normal", "permut", "poisson", "rand",
    "rrelu", "shuffle", "uniform"
)  # fmt: skip
# Methods that alter what they belong to, where that was imported.
_CHANGES = frozenset(("add", "discard", "extend", "pop", "popitem", "remove", "reverse", "sort", "write"))
_UPWARDS = frozenset(("parent", "parents", "resolve", "absolute", "home", "cwd", "anchor"))  # out of a folder
# Those that neither draw nor set anything.
_COMPUTES = frozenset((
    "abs", "allclose", "arange", "array", "asarray", "cat", "empty", "exp", "eye", "full", "linspace", "log", "mean",
    "ones", "sin", "sqrt", "square", "stack", "sum", "tanh", "tensor", "where", "zeros"
))  # fmt: skip
# Functions of other modules that give something new, or show something, and alter nothing.
_HARMLESS = frozenset(("copy.copy", "copy.deepcopy", "zlib.compress", "zlib.decompress"))
_DISPLAYS = "IPython.display"
# Our own functions whose names look as if they set something. They report.
_REPORTS = frozenset(("edl_labs.pipeline.seed_report",))
_READS = frozenset((
    "os.close", "os.cpu_count", "os.fspath", "os.getpid", "os.pread", "os.sched_getaffinity", "sys._current_frames",
    "traceback.extract_stack", "traceback.format_exc"
))  # fmt: skip


@dataclass(frozen=True)
class NamedCall:
    """A call by name: `root` is its first part, `rest` the others, the last of them what is called.

    `made_by`: where `rest` belongs to what a call returned, that call's own `rest`; None otherwise. `given`: the name
    that a path which it makes, or writes to, begins with. `reads`: it opens a file for reading alone.
    """

    root: str
    rest: str
    made_by: str | None
    given: frozenset[str]
    reads: bool = False
    leaves: bool = False
    """It takes a path upwards, or hands on one that it does not write to."""
    holds: bool = False
    """It is `partial(something, ...)`, and the call that this will make is looked at beside it."""


def makes_partial(call: ast.Call) -> bool:
    """Whether a call is of something called `partial`, with what it will call as the first argument."""
    called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return called == "partial" and bool(call.args) and not isinstance(call.args[0], ast.Starred)


def later_call(call: ast.Call) -> ast.Call:
    """The call that `partial(something, ...)` will make."""
    return ast.Call(call.args[0], call.args[1:], call.keywords)


def named_call(call: ast.Call) -> NamedCall:
    """A call as its text has it."""
    parts: list[str] = []
    made_by: str | None = None
    inner, node = call, path_base(call.func)
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        if isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = path_base(node.value)
        elif isinstance(node, ast.Subscript):
            node = node.value
        else:
            inner, node = node, node.func
            made_by = ast.unparse(node).partition(".")[2]
    root = node.id if isinstance(node, ast.Name) else ""
    reads = len(call.args) == 2 and ast.unparse(call.args[1]) == "os.O_RDONLY"
    leaves = parts[:1] in (["save"], ["dump"]) or any(_leads_up(n) for n in walk(call))
    given = frozenset(_first(inner) if inner.args else ())
    return NamedCall(root, ".".join(reversed(parts)), made_by, given, reads, leaves, makes_partial(call))


def _leads_up(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in _UPWARDS


def _first(call: ast.Call) -> Iterator[str]:
    node: ast.AST = call.args[0]
    while isinstance(node, ast.Attribute):
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id


def path_base(node: ast.expr) -> ast.expr:
    """What a path begins with, in `base / "part"`, where no part leads out of it; the node itself where it is none."""
    base: ast.expr = node.value if isinstance(node, ast.NamedExpr) else node
    while isinstance(base, ast.BinOp) and isinstance(base.op, ast.Div) and _leads_down(base.right):
        base = base.left
    return base if not isinstance(base, ast.BinOp) else node


def _leads_down(part: ast.expr) -> bool:
    texts = [n.value for n in walk(part) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    return bool(texts) and not any(".." in text or text.startswith("/") for text in texts)


def effects(call: NamedCall, modules: Iterable[str], *, in_folder: bool) -> set[str]:
    """What the call may alter that has no name.

    `modules`: what its root may stand for, of what was imported. `in_folder`: the path that it makes, or writes to,
    lies in a temporary folder of the notebook's own.
    """
    last = call.rest.rpartition(".")[2]
    in_folder = in_folder and not call.leaves
    found = {DRAWS} if last in _DRAWS else set()
    if last in _WRITES and not in_folder:
        found.add(PROCESS)
    for module in modules:
        made = f"{module}.{call.made_by}".rstrip(".") if call.made_by is not None else ""
        called = f"{module}.{call.rest}".rstrip(".")
        if in_folder and "pathlib.Path" in (made, called):
            continue
        if made not in _MAKES and called not in _MAKES:
            found |= _of_function(module, call)
    return found


def _of_function(module: str, call: NamedCall) -> set[str]:
    called = f"{module}.{call.rest}".rstrip(".")
    top, *parts = called.split(".")
    made = f"{module}.{call.made_by}" if call.made_by is not None else ""
    if (
        called in _REPORTS
        or (called in _HARMLESS and call.made_by is None)
        or (called == "functools.partial" and call.holds and call.made_by is None)
        or {called, made} & _READS
        or called.startswith((f"{_DISPLAYS}.", "os.path."))
        or (called == "os.open" and call.reads)
    ):
        return set()
    parts = parts[: len(call.made_by.split("."))] if call.made_by in _COMPUTES and module in _ARRAYS else parts
    looked_at = parts[-1:] if top in _QUIET else parts
    if call.rest.rpartition(".")[2] in _CHANGES:
        return {PROCESS}
    if any(part.lower().startswith(_SETS) or "seed" in part or "default" in part for part in looked_at):
        return {PROCESS}
    if top in _QUIET or (top == "matplotlib" and parts[-1] in _PYPLOT):
        return set()
    if top in _ARRAYS and len(parts) == 1 and (parts[0] in _COMPUTES or call.made_by in _COMPUTES):
        return set()
    return {DRAWS} if top in _ARRAYS else {PROCESS}


def of_handed_on(imported: str) -> set[str]:
    """What who is handed something imported, a function say or a setting, may alter by it that has no name."""
    top, *parts = imported.split(".")
    if not parts or imported in _READS or imported.startswith(f"{_DISPLAYS}."):
        return set()
    looked_at = parts[-1:] if top in _QUIET else parts
    if any(part.lower().startswith(_SETS) or "seed" in part or "default" in part for part in looked_at):
        return {PROCESS}
    # A layer draws its weights where it is made.
    if top in _ARRAYS and (parts[-1][:1].isupper() or any(word in part.lower() for part in parts for word in _RANDOM)):
        return {DRAWS}
    known = top in _QUIET or top in _ARRAYS or top == "matplotlib" or imported.startswith("os.path.")
    return set() if known or parts[-1].isupper() else {PROCESS}


def of_import(module: str) -> set[str]:
    """What importing a module may alter: nothing, for Python's own, ours, and those that all labs import."""
    top = module.partition(".")[0]
    known = top in sys.stdlib_module_names or top in _ARRAYS or top in ("edl_labs", "matplotlib", "torchvision")
    known = known or module.startswith(f"{_DISPLAYS}.")
    return set() if known else {PROCESS}


def is_module(imported: str, name: str) -> bool:
    """Whether something imported under a `name` may be a module: looked up for most, by its spelling for others."""
    top, _, rest = imported.partition(".")
    if top == "edl_labs" and rest:
        return _is_file(_PACKAGE.parent, imported)
    if top in sys.stdlib_module_names and rest and imported != "os.path":
        return _is_file(Path(ast.__file__).parent, imported)
    if top in _ARRAYS and rest and "_." not in imported and not rest.startswith("_") and "generator" not in rest:
        return any(_is_file(folder, imported) for folder in _folders_of(top))
    last = imported.rpartition(".")[2]
    return "." not in imported or last == name or last[:1].islower()


@cache
def _folders_of(top: str) -> tuple[Path, ...]:
    """Where a package's own folder lies, found without importing it; the working folder where it is not installed."""
    found = find_spec(top)
    return tuple(Path(part).parent for part in (found and found.submodule_search_locations) or ("x/x",))


def _is_file(folder: Path, imported: str) -> bool:
    path = folder.joinpath(*imported.split("."))
    return path.with_suffix(".py").is_file() or path.is_dir()
