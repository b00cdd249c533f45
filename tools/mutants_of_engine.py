"""Do tests find small mistakes in the engine? python -m tools.mutants_of_engine [--count N] [--also COMMIT].

A fixed set of mistakes is drawn with a seed from `checks/`, `course/grade/` and `course/sandbox/` of a base commit.
Each is identified by its function and by the text of the node that it changes. A mistake counts if its function and
node still exist in the current tree, even in a different place. With `--also`, they must exist in that commit too, so
that both trees get the same mistakes. Each mistake is made in a copy of the committed tree, and the fast unit tests of
the module are run on this copy.
"""

from __future__ import annotations

import argparse
import ast
import copy
import hashlib
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tools.count_tokens import texts_of

BASE, SEED, COUNT = "ebedfed7", 38, 200
AREAS = {
    "edl_labs/checks/": "tests/unit/checks",
    "edl_labs/course/grade/": "tests/unit/course/grade",
    "edl_labs/course/sandbox/": "tests/unit/course/sandbox",
}
LONGEST_S, TOGETHER_S = 2.0, 15.0  # of one test, and of a module's, were the machine idle
_FILES = 4  # of tests for a module, those named after it first
_PATIENCE = 5.0  # times what its tests take unchanged; longer is an endless loop
_PAIRS = (
    *((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot), (ast.In, ast.NotIn)),
    *((ast.And, ast.Or), (ast.Add, ast.Sub), (ast.FloorDiv, ast.Mult), (ast.Mult, ast.Div)),
)
_SWAPPED: dict[type[ast.AST], type[ast.AST]] = {old: new for pair in _PAIRS for old, new in (pair, pair[::-1])}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Mutant:
    """One mistake: the `number`-th node of a function that reads `text`, changed in its way."""

    path: str
    function: str
    text: str
    number: int

    @property
    def key(self) -> str:
        """Its name, the same in every tree."""
        return f"{self.path}::{self.function}::{self.text}::{self.number}"


def functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Each function and method by its qualified name; what is nested in it belongs to it."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, _FUNCTIONS):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from functions(node, f"{prefix}{node.name}.")


def changed(node: ast.AST) -> ast.AST | None:
    """The node with a mistake in it, where one is made."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in _SWAPPED:
            return _with(node, ops=[_SWAPPED[type(op)]()])
        case ast.BoolOp(op=op) | ast.BinOp(op=op) if type(op) in _SWAPPED:
            return _with(node, op=_SWAPPED[type(op)]())
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return operand
        case ast.Constant(value=bool(value)):
            return ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            return ast.Constant(value + 1)
        case ast.Return(value=ast.expr()):
            return ast.Return(None)
        case ast.Expr(value=ast.Call()):
            return ast.Pass()
    return None


def _with(node: ast.AST, **fields: Any) -> ast.AST:
    made = copy.copy(node)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def sites(function: ast.AST) -> Iterator[tuple[str, int, ast.AST]]:
    """(text, number among those of the same text, node) of all that can be changed in a function."""
    seen: dict[str, int] = {}
    for node in ast.walk(function):
        if changed(node) is not None:
            text = f"{type(node).__name__} {ast.unparse(node)}"
            yield text, seen.setdefault(text, 0), node
            seen[text] += 1


def mutants(texts: Mapping[str, str]) -> list[Mutant]:
    """All of a tree, in an order that hangs on the seed alone."""
    found = [
        Mutant(path, name, text, number)
        for path, source in texts.items()
        if path.startswith(tuple(AREAS))
        for name, function in functions(ast.parse(source))
        for text, number, _ in sites(function)
    ]
    return sorted(found, key=lambda one: hashlib.sha256(f"{SEED}/{one.key}".encode()).digest())


class Tree:
    """A tree in which mutants are looked up."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = {path: text for path, text in texts.items() if path.startswith("edl_labs/")}
        self._homes: dict[str, list[str]] = {}
        for path, text in self.texts.items():
            for name, _ in functions(ast.parse(text)):
                self._homes.setdefault(name, []).append(path)

    @cache  # noqa: B019  (a tree is there as long as the process)
    def home(self, mutant: Mutant) -> str | None:
        """The file that has the mutant's function, its own or the only one, with the node; None where none has."""
        homes = self._homes.get(mutant.function, [])
        path = mutant.path if mutant.path in homes else homes[0] if len(homes) == 1 else None
        return path if path is not None and self.changed(mutant, path) is not None else None

    def changed(self, mutant: Mutant, path: str) -> str | None:
        """The file's text with the mistake in it."""
        module = ast.parse(self.texts[path])
        function = dict(functions(module))[mutant.function]
        for text, number, node in sites(function):
            if (text, number) == (mutant.text, mutant.number):
                made = _Replacing(node).visit(module)
                return ast.unparse(ast.fix_missing_locations(made)) + "\n"
        return None


class _Replacing(ast.NodeTransformer):
    def __init__(self, old: ast.AST) -> None:
        self._old = old

    def visit(self, node: ast.AST) -> Any:
        """The changed node in the place of the old one."""
        return changed(node) if node is self._old else self.generic_visit(node)


class Bench:
    """A copy of the committed tree in which tests are run."""

    def __init__(self, root: Path) -> None:
        self.root = root
        archive = subprocess.run(["git", "archive", "HEAD"], check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", str(root)], input=archive, check=True)
        self.env = {**os.environ, "PYTHONPATH": str(root), "MPLBACKEND": "agg"}

    @cache  # noqa: B019  (as above)
    def tests(self, path: str) -> tuple[list[str], float]:
        """The fast tests that belong to a module and pass unchanged, and their seconds: named after it or naming it."""
        area = next(tests for start, tests in AREAS.items() if path.startswith(start))
        stem, dotted = Path(path).stem.strip("_"), path.removesuffix(".py").replace("/", ".")
        files = [str(one.relative_to(self.root)) for one in sorted((self.root / "tests/unit").rglob("test_*.py"))]
        mine = [one for one in files if stem in Path(one).stem or dotted in (self.root / one).read_text()]
        asked = sorted(mine, key=lambda one: stem not in Path(one).stem)[:_FILES]
        asked = asked or [one for one in files if one.startswith(area)][:_FILES]
        wall_s, cpu_s = time.monotonic(), _children_cpu_s()
        done = self._pytest(*asked, "--durations=0", "--durations-min=0", "-rA", limit_s=1200.0)
        wall_s, cpu_s = time.monotonic() - wall_s, _children_cpu_s() - cpu_s
        chosen = _fastest(done.stdout, load=max(1.0, wall_s / max(cpu_s, 0.1)))
        began_s = time.monotonic()
        is_sound = bool(chosen) and self._run(chosen, limit_s=1200.0).returncode == 0
        return chosen if is_sound else [], time.monotonic() - began_s

    def is_killed(self, path: str, text: str) -> bool | None:
        """Whether a test fails, or never ends, with this text in place of a file's; None where it has no tests."""
        (tests, took_s), file = self.tests(path), self.root / path
        if not tests:
            return None
        before = file.read_text(encoding="utf-8")
        file.write_text(text, encoding="utf-8")
        try:
            return self._run(tests, limit_s=60.0 + _PATIENCE * took_s).returncode != 0
        except subprocess.TimeoutExpired:
            return True
        finally:
            file.write_text(before, encoding="utf-8")

    def _run(self, tests: list[str], *, limit_s: float) -> subprocess.CompletedProcess[str]:
        names = self.root / "tests_of_mutant.txt"
        names.write_text("\n".join(tests))
        return self._pytest(f"@{names}", "-x", limit_s=limit_s)

    def _pytest(self, *arguments: str, limit_s: float) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow and not browser", *arguments]
        return subprocess.run(command, cwd=self.root, env=self.env, capture_output=True, text=True, timeout=limit_s)


def _children_cpu_s() -> float:
    taken = resource.getrusage(resource.RUSAGE_CHILDREN)
    return taken.ru_utime + taken.ru_stime


def _fastest(report: str, *, load: float) -> list[str]:
    """The fastest tests that passed, on a machine with `load`, where all takes that much longer."""
    passed = set(re.findall(r"^PASSED (.+)$", report, re.MULTILINE))
    took: dict[str, float] = dict.fromkeys(passed, 0.0)
    for seconds, test in re.findall(r"^([\d.]+)s (?:call|setup|teardown) +(.+)$", report, re.MULTILINE):
        if test in passed:
            took[test] += float(seconds)
    chosen: list[str] = []
    together_s = 0.0
    for test in sorted(passed, key=lambda one: (took[one], one)):
        if took[test] <= LONGEST_S * load and together_s + took[test] <= TOGETHER_S * load:
            chosen.append(test)
            together_s += took[test]
    return chosen


def main() -> int:
    """Ask the first mutants that are there, and say how many are noticed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--base", default=BASE)
    parser.add_argument("--also", help="a commit that must also contain the function and the node")
    parser.add_argument("--json", type=Path, help="the file for the verdict on each mutant")
    asked = parser.parse_args()
    here = Tree(texts_of("HEAD"))
    trees = [here, *([Tree(texts_of(asked.also))] if asked.also else [])]
    fixed = [one for one in mutants(texts_of(asked.base)) if all(tree.home(one) for tree in trees)][: asked.count]
    verdicts: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="edl-mutants-") as folder:
        bench = Bench(Path(folder))
        for mutant in fixed:
            path = here.home(mutant) or mutant.path
            killed = bench.is_killed(path, here.changed(mutant, path) or "")
            verdicts.append({**asdict(mutant), "at": path, "killed": killed})
            print(f"{len(verdicts)}/{len(fixed)} {'-' if killed is None else killed} {mutant.key}", file=sys.stderr)
            if asked.json:
                asked.json.write_text(json.dumps(verdicts, indent=1))
    counts = {verdict: sum(one["killed"] is verdict for one in verdicts) for verdict in (True, False, None)}
    print(f"{len(verdicts)} mutants: {counts[True]} killed, {counts[False]} survived, {counts[None]} have no fast test")
    return 0


if __name__ == "__main__":
    sys.exit(main())
