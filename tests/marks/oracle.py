"""The recorded marks of a lab: their file, and how marks differ from them.

A file has a table for each submission, with the points of each exercise by draw. A submission of wrong answers has
`exercise.file` for those it carries, and other exercises only where they have not full marks.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

from edl_labs.course.lab.parsed_lab import Lab
from tests.marks.grading import Marks
from tests.marks.submissions import Submission, full_marks, submissions

DATA = Path(__file__).parent / "data"


def path_of(lab: str) -> Path:
    """The file of a lab's marks."""
    return DATA / f"{lab}.toml"


def read_marks(lab: str) -> Marks:
    """The recorded marks; none where nothing was recorded."""
    path = path_of(lab)
    tables = tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return {name: dict(_flat(table)) for name, table in tables.items()}


def write_marks(lab: str, marks: Marks, order: list[str]) -> None:
    """Record marks, in the order of the submissions."""
    lines = []
    for name in (one for one in order if one in marks):
        lines += ["", f'["{name}"]']
        lines += [f"{what} = [{', '.join(f'{one:.9g}' for one in points)}]" for what, points in marks[name].items()]
    path_of(lab).write_text("\n".join(lines).lstrip() + "\n", encoding="utf-8")


def _flat(table: dict) -> Iterator[tuple[str, list[float]]]:
    for key, value in table.items():
        yield from (
            ((f"{key}.{file}", points) for file, points in value.items())
            if isinstance(value, dict)
            else ((key, value),)
        )


def as_recorded(lab: Lab, marks: Marks) -> Marks:
    """Marks of the grader in the form in which they are recorded."""
    full, known = full_marks(lab), {one.name: one for one in submissions(lab)}
    return {name: dict(_rows(known[name], row, full)) for name, row in marks.items()}


def _rows(
    submission: Submission, row: dict[str, list[float]], full: dict[str, float]
) -> Iterator[tuple[str, list[float]]]:
    for exercise in full:
        points = [round(one, 6) for one in row[exercise]]
        if exercise in submission.carried:
            yield f"{exercise}.{submission.carried[exercise]}", points
        elif not submission.carried or set(points) != {full[exercise]}:
            yield exercise, points


def draws_of(rows: dict[str, list[float]]) -> int:
    """The draws of a submission that are recorded."""
    return max(map(len, rows.values()))


def differences(lab: str, recorded: Marks, found: Marks, *, full: dict[str, float]) -> list[str]:
    """A line for each mark that differs: lab, submission, exercise, draw, what was expected and what came."""
    lines = []
    for name in recorded:
        for what in dict.fromkeys((*recorded[name], *found[name])):
            draws = range(min(map(draws_of, (recorded[name], found[name]))))
            before, now = (marks[name].get(what) or [full[what]] * len(draws) for marks in (recorded, found))
            lines += [
                f"{lab}, {name}, {what}, draw {draw}: expected {before[draw]:g}, got {now[draw]:g}"
                for draw in draws
                if before[draw] != now[draw]
            ]
    return lines
