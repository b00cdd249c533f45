"""Estimates how many minutes a lab takes, from its words, code and checks, with a rule fitted to readers' estimates.

Four outsiders worked labs 01 to 10b and estimated an ordinary student's minutes for each. `tests/labs/test_minutes.py`
has their estimates, and shows how far the rule is from them. No student was timed: the result is an estimate.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from edl_labs.course.lab.parsed_lab import Lab
from edl_labs.course.lab.source import Cell

WORDS_PER_MIN, CODE_LINES_PER_MIN = 200, 12  # stated by the readers; the rule before this one
ESSAY_MIN = 25.0  # about what the readers estimate for an essay, without the reading
SOLUTION_LINE_MIN, CHECK_MIN = 1.0, 11.0  # fitted to the fifteen estimates: least squares of relative errors, rounded


@dataclass(frozen=True)
class Workload:
    """What there is to read, to write and to check."""

    words: int = 0
    code_lines: int = 0
    solution_lines: int = 0
    checks: int = 0
    essays: int = 0

    def __add__(self, other: Workload) -> Workload:
        return Workload(
            self.words + other.words,
            self.code_lines + other.code_lines,
            self.solution_lines + other.solution_lines,
            self.checks + other.checks,
            self.essays + other.essays,
        )

    @property
    def reading_min(self) -> float:
        """Minutes of reading text and given code."""
        return self.words / WORDS_PER_MIN + self.code_lines / CODE_LINES_PER_MIN

    @property
    def minutes(self) -> float:
        """Minutes of reading, predicting, thinking, writing and checking.

        >>> round(Workload(words=400, code_lines=24, solution_lines=10, checks=1).minutes, 1)
        25.0
        """
        worked = SOLUTION_LINE_MIN * self.solution_lines + CHECK_MIN * self.checks + ESSAY_MIN * self.essays
        return self.reading_min + worked


def workloads(lab: Lab) -> dict[str, Workload]:
    """Each exercise's workload, practice too, in the lab's order.

    A cell belongs to the next exercise of its section; after a section's last exercise, to that one. A section
    without an exercise belongs to the next graded exercise, or to the last one where only practice follows.
    """
    sections: list[list[Cell]] = [[]]
    for cell in lab.cells:
        if cell.kind == "markdown" and re.match(r"## ", cell.source, re.MULTILINE):
            sections.append([])
        sections[-1].append(cell)
    graded = [one.name for one in lab.exercises if not one.optional]
    found = dict.fromkeys((one.name for one in lab.exercises), Workload())
    ahead = iter(graded)
    following = next(ahead, "")
    for section in sections:
        here = [cell.name for cell in section if cell.role in ("solve", "explain") and cell.name]
        for cell in section:
            owner = here[0] if here else following or graded[-1]
            found[owner] += _of(cell)
            if cell.name == owner and cell.role in ("check", "explain"):
                if owner == following:
                    following = next(ahead, "")
                here = here[1:] or here
    return found


def estimated_minutes(lab: Lab) -> dict[str, int]:
    """Whole minutes of each exercise, with the reading before it."""
    return {name: round(one.minutes) for name, one in workloads(lab).items()}


def _of(cell: Cell) -> Workload:
    lines = [line for line in cell.source.split("\n") if line.strip() and not line.strip().startswith("#")]
    if cell.kind == "markdown":
        return Workload(words=len(re.findall(r"\w+", cell.source)), essays=int(cell.role == "explain"))
    if cell.role == "solve":
        solution = [line for _, line in cell.solution_lines if line.strip() and not line.strip().startswith("#")]
        return Workload(code_lines=len(lines) - len(solution), solution_lines=len(solution), checks=1)
    return Workload() if cell.role in ("setup", "parameters", "check") else Workload(code_lines=len(lines))
