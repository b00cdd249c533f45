"""The five places that define an exercise: all must contain the same names."""

from __future__ import annotations

import ast
import json
from functools import lru_cache

from edl_labs.course.course_folder import Course
from edl_labs.course.lab.parsed_lab import Lab
from edl_labs.errors import SourceError, did_you_mean


def registered(course: Course, lab: str, *, by: str = "exercise") -> dict[str, tuple[str, int]]:
    """The names that a lab's exercise modules register, each with its file and line; read, not run.

    `by` is the decorator: `exercise`, or `case_source` for the functions of the judge's part.
    """
    module = course.exercise_module(lab)
    if not module.is_file():
        file = course.shown(module)
        raise SourceError("the lab has no exercise module", file=file, line=1, next="run edl-labs new LAB EXERCISE")
    paths = sorted(module.parent.rglob("*.py")) if module.name == "__init__.py" else [module]
    found: dict[str, tuple[str, int]] = {}
    for path in paths:
        file = course.shown(path)
        for call in _decorators(path.read_text(encoding="utf-8"), file):
            name = _registered_name(call, by)
            if name in found:
                raise SourceError(f"{name} is registered twice", file=file, line=call.lineno)
            if name:
                found[name] = (file, call.lineno)
    return found


@lru_cache(maxsize=1024)  # each lab's modules are asked for three times; a course has some hundred
def _decorators(source: str, file: str) -> tuple[ast.expr, ...]:
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise SourceError(
            f"this is not valid Python: {error.msg}", file=file, line=error.lineno or 1, next="fix the line"
        ) from None
    return tuple(call for node in ast.walk(tree) for call in getattr(node, "decorator_list", []))


def _registered_name(call: ast.expr, by: str) -> str | None:
    if isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] == by and call.args:
        first = call.args[0]
        return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else None
    return None


def check_places(course: Course, lab: Lab, *, goldens: bool = False) -> None:
    """SourceError at the first difference between an exercise's places; `goldens` are checked once they are built."""
    cells = {str(c.name): c.line for c in lab.cells if c.role in ("solve", "explain")}
    kinds = {str(c.name): "explain" if c.role == "explain" else "code" for c in lab.cells if c.name}
    _check_toml(lab, cells, kinds)
    code = {name: line for name, line in cells.items() if kinds[name] == "code"}
    _check_registered(course, lab, code)
    _check_mistakes(lab, code)
    if goldens:
        _check_goldens(course, lab, list(cells))


def _check_toml(lab: Lab, cells: dict[str, int], kinds: dict[str, str]) -> None:
    for one in lab.toml.exercises:
        if one.name not in cells:
            raise SourceError(
                f"lab.toml lists {one.name}, but no cell has this name",
                file=lab.toml.file,
                line=one.line,
                why=f"the exercises of {lab.file} are {', '.join(cells) or 'none'}",
                next=did_you_mean(one.name, cells) or f'add a cell solve="{one.name}", or remove the table',
            )
    listed = {one.name: one for one in lab.toml.exercises}
    for name, line in cells.items():
        if name not in listed:
            raise SourceError(
                f"{name} is missing in lab.toml",
                file=lab.file,
                line=line,
                why=f"{lab.toml.file} has no [[exercise]] called {name}",
                next=did_you_mean(name, listed) or "add its [[exercise]] table with points and hints",
            )
        if listed[name].kind != kinds[name]:
            raise SourceError(
                f"{name} is {_kind(listed[name].kind)} here, but {_kind(kinds[name])} in {lab.file}",
                file=lab.toml.file,
                line=listed[name].line,
                why=f"its cell is at {lab.file}:{line}",
                next='write kind = "explain" for prose, and no kind for code',
            )


def _kind(kind: str) -> str:
    return "prose" if kind == "explain" else "code"


def _check_registered(course: Course, lab: Lab, code: dict[str, int]) -> None:
    found = registered(course, lab.name)
    for name, line in code.items():
        if name not in found:
            raise SourceError(
                f"{name} is not registered in {course.shown(course.exercise_module(lab.name))}",
                file=lab.file,
                line=line,
                next=did_you_mean(name, found) or f'add a class with @exercise("{name}") there',
            )
    for name, (file, line) in found.items():
        if name not in code:
            raise SourceError(
                f"{name} has no solve cell in {lab.file}",
                file=file,
                line=line,
                next=did_you_mean(name, code) or f'add a cell solve="{name}", or remove the class',
            )
    for name, (file, line) in registered(course, lab.name, by="case_source").items():
        if name not in found:
            why = f"the exercises are {', '.join(found) or 'none'}"
            raise SourceError(
                f"cases of {name} are drawn here, but {name} is not an exercise of {lab.name}",
                file=file,
                line=line,
                why=why,
                next=did_you_mean(name, found) or "remove the function",
            )


def _check_mistakes(lab: Lab, code: dict[str, int]) -> None:
    for name, line in code.items():
        count = sum(one.exercise == name for one in lab.mistakes)
        if count < 2:
            raise SourceError(
                f"{name} has {count} known mistake{'' if count == 1 else 's'}",
                file=lab.file,
                line=line,
                why="an exercise needs at least two known mistakes",
                next=f"add one to {lab.folder.name}/mistakes/{name}.py",
            )


def _check_goldens(course: Course, lab: Lab, names: list[str]) -> None:
    path = course.goldens / f"{lab.name}.json"
    file = course.shown(path)
    if not path.is_file():
        raise SourceError(
            "the lab has no goldens", file=file, line=1, why="it has not been built", next="run edl-labs build"
        )
    try:
        built = [e["name"] for e in json.loads(path.read_text(encoding="utf-8"))["exercises"]]
    except (ValueError, KeyError, TypeError):
        raise SourceError(
            "this file was not written by the build", file=file, line=1, next="run edl-labs build"
        ) from None
    if sorted(built) != sorted(names):
        raise SourceError(
            f"the goldens are for {', '.join(sorted(built))}",
            file=file,
            line=1,
            why=f"the exercises in {lab.file} are {', '.join(sorted(names))}",
            next="run edl-labs build",
        )
