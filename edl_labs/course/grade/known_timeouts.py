"""Checks that timed out earlier, so that grading again does not wait for the same endless loop.

A time-out is named by all that it depends on: the cells that run before the check, the student's files, the probe, what
it is sent, and the limits. A changed `compare` is no reason to wait again; a changed `probe` is.
"""

from __future__ import annotations

import ast
import hashlib
from functools import cached_property
from pathlib import Path

from edl_labs import __version__
from edl_labs.checks import RegisteredExercise
from edl_labs.checks.lab_exercises import module_path
from edl_labs.course.assignment import Assignment
from edl_labs.course.grade.files import write_atomically
from edl_labs.course.grade.plan import MarkingPlan
from edl_labs.course.sandbox.limits import Limits

_JUDGES = {
    "cases", "compare", "combine", "diagnose_all_cases", "explain_exception", "format_case", "format_answer",
    "public_want", "leaderboard_metrics", "leaderboard_timelines",
}  # fmt: skip


class KnownTimeouts:
    """The time-outs of a class, one small file each. With `fresh`, those of earlier runs do not count."""

    def __init__(self, folder: Path, assignment: Assignment, *, limits: Limits, fresh: bool = False) -> None:
        self._folder, self._assignment, self._limits, self._fresh = folder, assignment, limits, fresh

    def find(self, key: str) -> str:
        """Why the check was stopped then; an empty text where it was not."""
        try:
            return "" if self._fresh else (self._folder / key).read_text(encoding="utf-8")
        except OSError:
            return ""

    def add(self, key: str, why: str) -> None:
        """Keep a time-out."""
        self._folder.mkdir(parents=True, exist_ok=True)
        write_atomically(self._folder / key, why.encode())

    def key(self, plan: MarkingPlan, index: int, exercise: RegisteredExercise, request: bytes) -> str:
        """The name of the check at `index` of a plan: equal exactly when running it again could only repeat it."""
        cells = [cell.runs_as for cell in plan.cells[: index + 1] if cell.runs]
        named = [self._same_for_all, exercise.name, exercise.timeout_s, cells, sorted(plan.modules.items()), request]
        return hashlib.sha256(repr(named).encode()).hexdigest()[:40]

    @cached_property
    def _same_for_all(self) -> str:
        files = sorted(one for one in self._assignment.files.items() if not one[0].startswith(".edl/"))
        named = [__version__, self._limits.key(), files, probing_text(module_path(self._assignment.name))]
        return hashlib.sha256(repr(named).encode()).hexdigest()


def probing_text(path: Path) -> str:
    """A lab's exercises without comments and the parts that only judge; `path` is its module, or its folder's."""
    files = sorted(path.parent.glob("*.py")) if path.name == "__init__.py" else [path]
    return "\n".join(ast.dump(_Probing().visit(ast.parse(file.read_bytes()))) for file in files)


class _Probing(ast.NodeTransformer):
    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef | None:
        return None if node.name in _JUDGES else node
