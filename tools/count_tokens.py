"""Compares the number of code tokens of two commits: python -m tools.count_tokens BEFORE [AFTER] [--json].

Tokens are those of `tokenize`, without comments, docstrings and layout. `edl_labs/` without its `exercises/`, and
`tools/`, are counted. A top-level definition that is word for word in a different folder of the later commit has moved.
It counts as before and is listed separately. Without a second commit, the working tree is counted.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import subprocess
import sys
import tarfile
import tokenize
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from tools.exercise_hooks import hooks_of

LAYOUT = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT),
    *(tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER),
}
LONG = 300  # lines of a file
_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
Words = tuple[str, ...]


@dataclass
class Tree:
    """The Python files of one commit: text, number of code tokens, and top-level definitions as words."""

    texts: dict[str, str]
    tokens: dict[str, int] = field(default_factory=dict)
    definitions: dict[str, list[Words]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for path, text in self.texts.items():
            words = list(code_words(text))
            self.tokens[path], self.definitions[path] = len(words), list(_definitions(text, words))


def in_package(path: str) -> bool:
    """Whether a file is of the package without its exercises, or a tool."""
    return path.startswith(("edl_labs/", "tools/")) and not path.startswith("edl_labs/exercises/")


def in_course_or_checks(path: str) -> bool:
    """Whether a file is of the parts that grade."""
    return path.startswith(("edl_labs/course/", "edl_labs/checks/"))


GROUPS: dict[str, Callable[[str], bool]] = {"edl_labs + tools": in_package, "course + checks": in_course_or_checks}


def texts_of(commit: str | None) -> dict[str, str]:
    """The text of each Python file but notebooks' sources, of a commit or of the working tree."""
    if commit is None:
        paths = _git("ls-files", "--cached", "--others", "--exclude-standard").decode().splitlines()
        return {
            path: Path(path).read_text(encoding="utf-8") for path in filter(_is_code, paths) if Path(path).is_file()
        }
    with tarfile.open(fileobj=io.BytesIO(_git("archive", commit))) as archive:
        files = ((one, archive.extractfile(one)) for one in archive if _is_code(one.name))
        return {one.name: file.read().decode() for one, file in files if file is not None}


def _is_code(path: str) -> bool:
    return path.endswith(".py") and not path.startswith(("labs/", "solutions/"))


def code_words(text: str) -> Iterator[tokenize.TokenInfo]:
    """The tokens of code: no comments, docstrings and layout."""
    docstrings = set(_docstrings(text))
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in LAYOUT and token.start not in docstrings:
            yield token


def _docstrings(text: str) -> Iterator[tuple[int, int]]:
    """Where docstrings begin."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, *_NAMED)) and ast.get_docstring(node, clean=False) is not None:
            yield node.body[0].lineno, node.body[0].col_offset


def _definitions(text: str, words: list[tokenize.TokenInfo]) -> Iterator[Words]:
    """The words of each top-level statement that is no import."""
    for node in ast.parse(text).body:
        first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
        found = tuple(word.string for word in words if first <= word.start[0] <= (node.end_lineno or first))
        if found and not isinstance(node, (ast.Import, ast.ImportFrom)):
            yield found


def moved(before: Tree, after: Tree) -> Counter[tuple[str, str]]:
    """Tokens of definitions that are in another folder than they were, by (path before, path after)."""
    old, new = _places(before), _places(after)
    found: Counter[tuple[str, str]] = Counter()
    for words in old.keys() & new.keys():
        gone, come = old[words] - new[words], new[words] - old[words]
        for source, target in zip(sorted(gone.elements()), sorted(come.elements()), strict=False):
            if folder_of(source) != folder_of(target):
                found[source, target] += len(words)
    return found


def _places(tree: Tree) -> dict[Words, Counter[str]]:
    places: dict[Words, Counter[str]] = {}
    for path, definitions in tree.definitions.items():
        for words in definitions:
            places.setdefault(words, Counter())[path] += 1
    return places


def folder_of(path: str) -> str:
    """The part of the repository that a file is counted with."""
    parts = PurePosixPath(path).parent.parts
    return "/".join(parts[: 3 if parts[:2] == ("edl_labs", "course") else 2]) or "."


def by_folder(tree: Tree) -> Counter[str]:
    """Tokens of what counts, by folder."""
    found: Counter[str] = Counter()
    for path in filter(in_package, tree.tokens):
        found[folder_of(path)] += tree.tokens[path]
    return found


def newly_long(before: Tree, after: Tree, renamed: dict[str, str]) -> list[str]:
    """Files over LONG lines that were not: neither there nor, by git's account, where they came from."""

    def lines(tree: Tree, path: str) -> int:
        return tree.texts.get(path, "").count("\n")

    return sorted(
        path
        for path in filter(in_package, after.texts)
        if lines(after, path) > LONG >= lines(before, renamed.get(path, path))
    )


def renames(before: str, after: str | None) -> dict[str, str]:
    """Where files come from that git calls renamed."""
    listed = _git("diff", "--find-renames", "--diff-filter=R", "--name-status", before, *([after] if after else []))
    rows = (line.split("\t") for line in listed.decode().splitlines())
    return {new: old for _, old, new in rows}


def group_change(
    before: Tree, after: Tree, moves: Counter[tuple[str, str]], of: Callable[[str], bool]
) -> dict[str, Any]:
    """Tokens of a group before and after, what moved out of it and into it, and the change without that."""
    old, new = (sum(tree.tokens[path] for path in filter(of, tree.tokens)) for tree in (before, after))
    out, came = (
        sum(n for (source, target), n in moves.items() if (of(source), of(target)) == way)
        for way in ((True, False), (False, True))
    )
    return {"before": old, "after": new, "moved out": out, "moved in": came, "change": (new + out - came) / old - 1}


def compared(first: str, second: str | None) -> dict[str, Any]:
    """All figures, as plain data."""
    before, after = Tree(texts_of(first)), Tree(texts_of(second))
    moves, folders = moved(before, after), [by_folder(before), by_folder(after)]
    listed: Counter[str] = Counter()
    for (source, target), count in moves.items():
        if in_package(source) or in_package(target):
            listed[f"{folder_of(source)} -> {folder_of(target)}"] += count
    hooks = [hooks_of(tree.texts) for tree in (before, after)]
    return {
        "groups": {name: group_change(before, after, moves, of) for name, of in GROUPS.items()},
        "folders": {name: [one[name] for one in folders] for name in sorted({*folders[0], *folders[1]})},
        "moved": dict(sorted(listed.items())),
        f"files over {LONG} lines that were not": newly_long(before, after, renames(first, second)),
        "optional parts of an exercise": [len(one) for one in hooks],
        "their users": {name: [one.get(name) for one in hooks] for name in sorted({*hooks[0], *hooks[1]})},
    }


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], check=True, capture_output=True).stdout


def show(found: dict[str, Any]) -> None:
    """The figures as text."""
    for name, one in found.pop("groups").items():
        print(f"{name}: {one['before']:,} -> {one['after']:,}, moved out {one['moved out']:,}, ", end="")
        print(f"in {one['moved in']:,}: {one['change']:+.1%} without what moved")
    for part, rows in found.items():
        print(f"\n{part}:")
        for name, value in rows.items() if isinstance(rows, dict) else ((one, "") for one in rows):
            values = value if isinstance(value, list) else [value]
            print(f"  {name!s:60}", *(f"{'-' if one is None else one:>8}" for one in values))


def main() -> int:
    """Count, and show what was asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after", nargs="?")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    found = compared(asked.before, asked.after)
    print(json.dumps(found, indent=1)) if asked.json else show(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
