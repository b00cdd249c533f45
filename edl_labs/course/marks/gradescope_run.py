"""Grades the one submission of a Gradescope container, and writes results.json in Gradescope's published form.

The student's code runs in a sandbox and the judge outside it, as in `edl-labs grade`. Where that cannot be, nothing is
written and the exit code says so: Gradescope then tells of an autograder that failed, and gives no zero.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edl_labs.checks import Outcome
from edl_labs.checks.outcome_display import outcome_text
from edl_labs.course.assignment import Assignment
from edl_labs.course.course_folder import Course
from edl_labs.course.grade.grader import Grader
from edl_labs.course.grade.judge_process import public
from edl_labs.course.grade.result import Result
from edl_labs.course.grade.submission import Unreadable
from edl_labs.course.marks.gradescope import SETTINGS
from edl_labs.course.sandbox import Level, best_level
from edl_labs.errors import EdlError, UsageError
from edl_labs.units import counted

_NOBODY = "student"  # who hands in where no metadata say


def grade_one(root: Path) -> dict[str, Any]:
    """The results of `root/submission`, graded with what the zip put into `root/source`; EdlError for trouble."""
    settings = json.loads((root / "source" / SETTINGS).read_text(encoding="utf-8"))
    name, student = settings["assignment"], _who(root / "submission_metadata.json")
    with tempfile.TemporaryDirectory(prefix="edl-gradescope-") as folder:
        place = Path(folder, "course")
        shutil.copytree(root / "source" / "course", place)
        course = Course(place)
        known = course.assignment(name)
        _hand_in(root / "submission", course.path("submitted", student=student, assignment=name))
        level = _level(unsafe=settings["unsafe"])
        with Grader(course, known, seed=settings["seed"], draws=settings["draws"], level=level) as grader:
            try:
                return results(known, grader.grade(student)[0])
            except Unreadable as unreadable:
                return unread(known, unreadable)


def results(assignment: Assignment, result: Result) -> dict[str, Any]:
    """A result as Gradescope reads it: a test for each exercise that the judge marks, in the lab's order.

    What a person has to mark, prose and measurements, has no score here.
    """
    tests = []
    outcomes = {outcome.name: outcome for outcome in result.outcomes}
    for number, exercise in enumerate((n for n in assignment.points if n in outcomes), start=1):
        tests.append(_test(number, outcomes[exercise]))
    notes = [*result.notes, *(f"{e.where}: {e.kind}{f' ({e.why})' if e.why else ''}" for e in result.events)]
    return {
        "execution_time": round(result.usage.wall_s),
        "output": "\n".join([*notes, *_by_hand(assignment)]),
        "output_format": "text",
        "stdout_visibility": "hidden",
        "tests": tests,
        "extra_data": {"level": result.level, "flags": list(result.flags), "draw": result.draw},
    }


def unread(assignment: Assignment, problem: Unreadable) -> dict[str, Any]:
    """What a student whose notebook cannot be graded reads at once; handing in again fixes it."""
    lines = [
        problem.what,
        *(f"  {word}: {said}" for word, said in (("why", problem.why), ("next", problem.next)) if said),
    ]
    judged = [cell for cell in assignment.cells if cell.role == "check"]
    tests = [
        {"name": c.exercise, "number": str(n), "score": 0.0, "max_score": c.points} for n, c in enumerate(judged, 1)
    ]
    return {"output": "\n".join(lines), "output_format": "text", "stdout_visibility": "hidden", "tests": tests}


def _test(number: int, outcome: Outcome) -> dict[str, Any]:
    test: dict[str, Any] = {
        "name": outcome.name,
        "number": str(number),
        "output": outcome_text(public(outcome)),
        "output_format": "text",
        "visibility": "visible",
    }
    if outcome.is_practice:
        return test
    status = "passed" if outcome.state == "passed" else "failed"
    return test | {"score": outcome.points, "max_score": outcome.max_points, "status": status}


def _by_hand(assignment: Assignment) -> list[str]:
    prose = [cell for cell in assignment.cells if cell.role == "answer"]
    if not prose:
        return []
    points = counted(sum(cell.points for cell in prose), "point")
    return [f"A person gives the {points} for written answers ({', '.join(cell.exercise for cell in prose)})."]


def _level(*, unsafe: bool) -> Level:
    """The best level of this container; without any only where the instructor asked for that."""
    try:
        return best_level()
    except UsageError:
        if unsafe:
            return Level.UNSAFE
        raise


def _who(metadata: Path) -> str:
    """The first submitter's id, which chooses the draw: a group has one. A fixed name where nobody says."""
    try:
        users = json.loads(metadata.read_text(encoding="utf-8"))["users"]
        return f"s{min(int(user['id']) for user in users)}"
    except (OSError, ValueError, KeyError, TypeError):
        return _NOBODY


def _hand_in(handed_in: Path, submitted: Path) -> None:
    """Copy the plain files that were uploaded; links and folders are no part of a submission."""
    submitted.mkdir(parents=True)
    for path in sorted(handed_in.iterdir()):
        if path.is_file() and not path.is_symlink():
            shutil.copyfile(path, submitted / path.name)


def write_results(root: Path, found: Mapping[str, Any]) -> None:
    """Put results.json where Gradescope looks for it, whole or not at all."""
    folder = root / "results"
    folder.mkdir(exist_ok=True)
    part = folder / "results.json.part"
    part.write_text(json.dumps(found, indent=1), encoding="utf-8")
    part.replace(folder / "results.json")


if __name__ == "__main__":
    try:
        write_results(Path(sys.argv[1]), grade_one(Path(sys.argv[1])))
    except EdlError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
