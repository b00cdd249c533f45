"""Finds the functions of solutions and of the judge by what they do; only instructors may have them.

A copy is found under another name and with other names inside; a change of what it computes makes it another function.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from edl_labs.course.course_folder import Course
from edl_labs.course.lab.parsed_lab import Lab

MIN_NAME = 12  # letters: shorter names (`shapes`, `_spans`) come to anybody
MIN_NODES = 30  # of a body's syntax tree; smaller ones (`return x * y + z`) any two programs may share
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_NAMED = {ast.Name: "id", ast.arg: "arg", ast.FunctionDef: "name", ast.AsyncFunctionDef: "name"}
_UNSEEN = {ast.arg: ("annotation",), ast.FunctionDef: ("returns",), ast.AsyncFunctionDef: ("returns",)}


@dataclass(frozen=True)
class SecretFunction:
    """A function that must not be published. `digest` is of its body, empty where that says too little.

    `name` is empty unless it is a secret too: long, and defined in no module of the course that students have.
    """

    name: str
    digest: str
    file: str
    line: int


def secret_functions(course: Course, labs: Iterable[Lab]) -> list[SecretFunction]:
    """Those of every solution and of every judge's part of a course."""
    texts = (path.read_text(encoding="utf-8") for path in _public_modules(course))
    public = {node.name for text in texts for node in _functions(text)}
    found = [one for lab in labs for one in _of_solutions(lab)]
    for path in sorted(course.exercises.glob("*/judge/**/*.py")):
        for name, digest, line in functions_in(path.read_text(encoding="utf-8")):
            own = "" if name in public or len(name) < MIN_NAME else name
            found.append(SecretFunction(own, digest, course.shown(path), line))
    return [one for one in found if one.name or one.digest]


def published(name: str, text: str, secret: Iterable[SecretFunction]) -> Iterator[SecretFunction]:
    """The secret functions that a published file's text defines; a notebook's code cells are read one by one."""
    defined = [one for code in _codes(name, text) for one in functions_in(code)]
    names, digests = {one[0] for one in defined}, {one[1] for one in defined}
    return (one for one in secret if (one.name and one.name in names) or (one.digest and one.digest in digests))


def functions_in(text: str) -> list[tuple[str, str, int]]:
    """(name, digest of the body, line) of every function that a text defines; none where it is not Python."""
    return [(node.name, _digest(node), node.lineno) for node in _functions(text)]


def _functions(text: str) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    return [node for node in ast.walk(tree) if isinstance(node, _FUNCTIONS)]


def _digest(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """The same for functions that do the same under other names; empty for a body that says too little."""
    body = [node for node in function.body if not _is_text(node)]
    if sum(1 for node in body for _ in ast.walk(node)) < MIN_NODES:
        return ""
    numbers = {arg.arg: f"v{i}" for i, arg in enumerate(_arguments(function))}
    text = "\n".join(word for node in body for word in _words(node, numbers))
    return hashlib.sha256(text.encode()).hexdigest()


def _words(node: ast.AST, numbers: dict[str, str]) -> Iterator[str]:
    """A syntax tree in words, without annotations of functions; a name is the number of its first place, kept in
    `numbers`."""
    yield type(node).__name__
    unseen, named = _UNSEEN.get(type(node), ()), _NAMED.get(type(node))
    for field in node._fields:
        value = None if field in unseen else getattr(node, field, None)
        if field == named:
            yield numbers.setdefault(str(value), f"v{len(numbers)}")
        elif isinstance(value, ast.AST):
            yield from _words(value, numbers)
        elif isinstance(value, list):
            yield f"{field} {len(value)}"
            for item in value:
                yield from _words(item, numbers) if isinstance(item, ast.AST) else (repr(item),)
        else:
            yield f"{field} {value!r}"


def _arguments(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.arg]:
    given = function.args
    return [*given.posonlyargs, *given.args, *given.kwonlyargs]


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _public_modules(course: Course) -> list[Path]:
    paths = (course.root / "edl_labs").rglob("*.py")
    return [path for path in paths if "judge" not in path.relative_to(course.root).parts]


def _of_solutions(lab: Lab) -> Iterator[SecretFunction]:
    for cell in lab.cells:
        if cell.role == "solve":
            given = {digest for _, digest, _ in functions_in(cell.stub)}
            for _, digest, line in functions_in(cell.source):
                if digest not in given:
                    yield SecretFunction("", digest, lab.file, cell.first + line - 1)


def _codes(name: str, text: str) -> list[str]:
    if name.endswith(".py"):
        return [text]
    if not name.endswith(".ipynb"):
        return []
    try:
        cells = json.loads(text)["cells"]
        return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return []
