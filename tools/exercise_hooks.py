"""Lists the optional parts of an exercise, and how many exercises use each.

The optional parts are the parameters of the decorator `exercise` (except its name and lab) and the names that the
engine looks up in the decorated class: names in `getattr(….spec, "name", …)` and in an undecorated class `Exercise`.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping

REQUIRED = {"name", "lab", "probe", "compare", "cases"}  # cases are drawn here, or in the judge's part
_BASES = {"Exercise", "ExerciseSpec"}  # the second until version 2 of the contract


def hooks_of(texts: Mapping[str, str]) -> dict[str, int]:
    """Each optional part with its number of users, from the package's files by path."""
    engine = {path: text for path, text in texts.items() if path.startswith(("edl_labs/checks/", "edl_labs/course/"))}
    trees = [ast.parse(text) for text in engine.values()]
    optional = {name for tree in trees for name in (*_looked_up(tree), *_of_base(tree), *_of_decorator(tree))}
    users = Counter(name for path, text in texts.items() if _is_exercise(path) for name in _used(ast.parse(text)))
    return {name: users[name] for name in sorted(optional - REQUIRED)}


def _is_exercise(path: str) -> bool:
    return path.startswith("edl_labs/exercises/lab")


def _looked_up(tree: ast.Module) -> Iterator[str]:
    """Names that `getattr` and `hasattr` look for in a spec."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="getattr" | "hasattr"), args=[of, ast.Constant(value=str(name)), *_]):
                if ast.unparse(of).split(".")[-1] == "spec":
                    yield name


def _of_base(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name in _BASES and not node.decorator_list:
            yield from (name for name in _members(node) if not name.startswith("_"))


def _of_decorator(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == "exercise":
            yield from (one.arg for one in node.args.kwonlyargs)


def _used(tree: ast.Module) -> Iterator[str]:
    """What the exercises of a module have, those of their bases in the module included."""
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    for node in classes.values():
        flags = [
            one for one in node.decorator_list if isinstance(one, ast.Call) and ast.unparse(one.func) == "exercise"
        ]
        if flags:
            yield from {*_inherited(node, classes), *(one.arg for one in flags[0].keywords if one.arg)}


def _inherited(node: ast.ClassDef, classes: Mapping[str, ast.ClassDef]) -> set[str]:
    bases = (classes[one.id] for one in node.bases if isinstance(one, ast.Name) and one.id in classes)
    return {*_members(node), *(name for base in bases for name in _inherited(base, classes))}


def _members(node: ast.ClassDef) -> Iterator[str]:
    for one in node.body:
        if isinstance(one, (ast.FunctionDef, ast.ClassDef)):
            yield one.name
        elif isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            yield one.target.id
        elif isinstance(one, ast.Assign):
            yield from (target.id for target in one.targets if isinstance(target, ast.Name))
