"""What one submission of the largest size costs grading and the report outside of its kernel, as a program."""

from __future__ import annotations

import json
import re
import resource
import sys
from contextlib import suppress
from pathlib import Path

from edl_labs.checks import Outcome, RegisteredExercise
from edl_labs.course.assignment import Assignment, KnownCell
from edl_labs.course.grade.broken_cells import tell_broken_cells
from edl_labs.course.grade.declared_cells import declared_plan
from edl_labs.course.grade.graded_notebook import graded_notebook
from edl_labs.course.grade.plan import make_plan
from edl_labs.course.grade.run_record import ProbedRun
from edl_labs.course.grade.submission import Submission, Unreadable, parse
from edl_labs.course.marks.class_report import imports_exercises, likenesses, shown_hints
from edl_labs.course.sandbox.limits import DEFAULTS

SIZE = DEFAULTS.source_bytes - 5_000
SOURCES = {
    "nine thousand lines": "\n".join(f"value_{i} = other_{i} + (other_{i + 1} * 3) - {i:08}" for i in range(9000)),
    "nested brackets": "x = " + "[" * (SIZE // 2) + "]" * (SIZE // 2),
    "nested attributes": "x = a" + ".b" * (SIZE // 2),
    "one long line": "x = " + "a+" * (SIZE // 2) + "a",
    "many names": "\n".join(f"n{i}=0" for i in range(SIZE // 10)),
    "many functions": "\n".join(f"def f{i}(): return g{i}" for i in range(SIZE // 30)),
    "one formatted text": "f'" + "{a}" * (SIZE // 3) + "'",
    "many imports": "from edl_labs import " * (SIZE // 21),
    "many magics": "%a\n" * (SIZE // 3),
}
NO_JSON = {"merges begun": b"<<<<<<< a\n" * 400_000, "merges half finished": b"<<<<<<< a\n=======\n" * 200_000}
PROSE = {"many brackets": "[" * 9_990, "many formulas": r"\begin{a}" * 1_110}

KNOWN = (
    KnownCell("code", "setup", "import math", "import math", {}, lab_role="setup"),
    KnownCell("code", "c-1", "print(1)", "print(1)", {}),
    KnownCell("code", "solve-area", "def area(): stub", "def area(): right", {}, "solve", "area"),
    KnownCell("code", "check-area", 'check("area")', "", {}, "check", "check_area", 2.0),
)
ASSIGNMENT = Assignment(
    "lab01_gpu_basics", KNOWN, (RegisteredExercise("area", "lab", None),), {}, {}, own_exercises=False
)


def handed_in(name: str) -> Submission:
    """A notebook whose answer, or whose prose, is one of those above."""
    cells = [{"cell_type": "code", "id": c.id, "metadata": {}, "source": c.source} for c in KNOWN]
    for cell, known in zip(cells, KNOWN, strict=True):
        cell["metadata"] = {"nbgrader": {"grade_id": known.grade_id}} if known.grade_id else {}
    if name in SOURCES:
        cells[2]["source"] = SOURCES[name]
    else:
        prose = {"cell_type": "markdown", "id": "mine", "metadata": {}, "source": PROSE[name]}
        cells += [{**prose, "id": f"mine-{number}"} for number in range(SIZE // len(PROSE[name]))]
    return parse(json.dumps({"cells": cells, "metadata": {}}).encode())


def read(name: str) -> None:
    """All that reading does with a file that is no notebook."""
    with suppress(Unreadable):
        parse(NO_JSON[name])


def graded(submission: Submission) -> None:
    """All that grading does with the text; its cell ended in an error."""
    plan = make_plan(ASSIGNMENT, submission)
    run = ProbedRun(outcomes={"area": Outcome("area", "lab", "not attempted", 0.0, 2.0)}, raised={2: "SyntaxError"})
    declared_plan(plan)
    tell_broken_cells(plan, run)
    graded_notebook(ASSIGNMENT, plan, run)


def reported(submission: Submission) -> None:
    """All that the report does with it."""
    any(imports_exercises(cell.source) for cell in submission.cells)
    shown_hints(submission)
    likenesses(ASSIGNMENT, {"ann": {"area": submission.cells[2].source}})


if __name__ == "__main__":
    verb, name = sys.argv[1:]
    read(name) if verb == "read" else {"grade": graded, "report": reported}[verb](handed_in(name))
    taken = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    # Not ru_maxrss of its own: that keeps the peak of the process which started this one.
    own = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    peak_kb = max(int(own[1]) if own else 0, taken[1].ru_maxrss)
    print(json.dumps([sum(one.ru_utime + one.ru_stime for one in taken), peak_kb << 10]))
