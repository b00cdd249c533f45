"""`%load_ext edl_labs`: `%measure stmt` and `%%compare` in a notebook."""

from __future__ import annotations

import argparse
import ast
import shlex
from collections.abc import Callable
from typing import Any, NoReturn

from edl_labs.bench._compare import compare
from edl_labs.bench._measure import measure
from edl_labs.bench.results import Comparison, Measurement
from edl_labs.errors import UsageError
from edl_labs.units import counted

_SEPARATOR = "---"
_USAGE = {
    "measure": "%measure [--budget SECONDS] [--cold] statement",
    "compare": "%%compare [--budget SECONDS] [--band FRACTION] [--no-outputs], then parts "
    "separated by lines of ---; each part may begin with a line `# its name`",
}


def load_ipython_extension(shell: Any) -> None:
    """Gives an IPython shell the magics `%measure`, `%%measure` and `%%compare`."""
    shell.register_magic_function(_line_or_cell(shell), "line_cell", "measure")
    shell.register_magic_function(lambda line, cell: compare_cell(line, cell, shell.user_ns), "cell", "compare")


def unload_ipython_extension(shell: Any) -> None:
    """Removes the magics again."""
    for kind, name in (("line", "measure"), ("cell", "measure"), ("cell", "compare")):
        shell.magics_manager.magics[kind].pop(name, None)


def measure_line(line: str, space: dict[str, Any], *, cell: str | None = None) -> Measurement:
    """The `Measurement` of a statement in a namespace; options come first, as in `--budget 1 f(x)`."""
    options, statement = _options("measure", line)
    source = statement if cell is None else "\n".join(filter(None, [statement, cell]))
    if not source.strip():
        raise UsageError("there is nothing to measure", why="the line contains no statement", next=_USAGE["measure"])
    name = " ".join(source.split())
    return measure(
        _function(source, space),
        budget_s=options.budget,
        cold=options.cold,
        name=name if len(name) <= 40 else name[:38] + " …",
    )


def compare_cell(line: str, cell: str, space: dict[str, Any]) -> Comparison:
    """The `Comparison` of the parts of a cell."""
    options, rest = _options("compare", line)
    if rest.strip():
        raise UsageError(
            f"%%compare does not accept {rest!r} on its first line",
            why="the code belongs in the lines below",
            next=_USAGE["compare"],
        )
    parts = [part for part in _parts(cell) if part.strip()]
    if len(parts) < 2:
        raise UsageError(
            "%%compare needs two parts", why=f"the cell has {counted(len(parts), 'part')}", next=_USAGE["compare"]
        )
    candidates: dict[str, Callable[[], Any]] = {}
    for index, part in enumerate(parts):
        candidates[_name(part, index, candidates)] = _function(part, space)
    equal = False if options.no_outputs else None
    return compare(candidates, budget_s=options.budget, band=options.band, equal=equal)


def _line_or_cell(shell: Any) -> Callable[..., Measurement]:
    def magic(line: str, cell: str | None = None) -> Measurement:
        return measure_line(line, shell.user_ns, cell=cell)

    return magic


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"%{self.prog}: {message}", why="an option is wrong", next=_USAGE[self.prog])


def _options(verb: str, line: str) -> tuple[argparse.Namespace, str]:
    """The options at the beginning of a line, and what follows them, which is code and is left as it is."""
    parser = _Parser(prog=verb, add_help=False)
    parser.add_argument("--budget", type=float, default=0.4)
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--band", type=float, default=0.005)
    parser.add_argument("--no-outputs", action="store_true")
    words: list[str] = []
    rest = line.strip()
    while rest.startswith("--"):
        word, _, rest = rest.partition(" ")
        words.append(word)
        if word in ("--budget", "--band"):
            value, _, rest = rest.lstrip().partition(" ")
            words.append(value)
        rest = rest.lstrip()
    return parser.parse_args([item for word in words for item in shlex.split(word)]), rest


def _parts(cell: str) -> list[str]:
    parts: list[list[str]] = [[]]
    for line in cell.splitlines():
        if line.strip() == _SEPARATOR:
            parts.append([])
        else:
            parts[-1].append(line)
    return ["\n".join(lines) for lines in parts]


def _name(part: str, index: int, taken: dict[str, Any]) -> str:
    first = part.strip().splitlines()[0].strip()
    name = first.lstrip("#").strip() if first.startswith("#") else " ".join(part.split())
    name = (name if len(name) <= 30 else name[:28] + " …") or f"part {index + 1}"
    return name if name not in taken else f"{name} ({index + 1})"


def _function(source: str, space: dict[str, Any]) -> Callable[[], Any]:
    """A function without arguments that runs `source` in `space` and returns the value of its last expression."""
    try:
        body = ast.parse(source).body
    except SyntaxError as error:
        raise UsageError(
            f"line {error.lineno}: {error.msg}",
            why="this is not valid Python",
            next="run the code in a cell of its own first",
        ) from None
    if not body:
        raise UsageError(
            "there is nothing to time", why="a part contains no statement", next="write a statement, or `pass`"
        )
    if isinstance(body[-1], ast.Expr):
        body[-1] = ast.copy_location(ast.Return(body[-1].value), body[-1])
    module = ast.parse("def timed():\n    pass")
    function = module.body[0]
    assert isinstance(function, ast.FunctionDef)
    function.body = body
    made: dict[str, Any] = {}
    exec(compile(ast.fix_missing_locations(module), "<measured>", "exec"), space, made)
    return made["timed"]
