"""What the five decks say, row by row, and which exercise grades it: `coverage.tsv`, counted."""

from __future__ import annotations

import csv
import re
from collections import Counter
from pathlib import Path

import pytest

from edl_labs.course.course_folder import Course
from edl_labs.course.lab.read import read_labs

ROOT = Path(__file__).resolve().parents[2]
STATUSES = ("graded", "practised", "taught", "partial", "library", "missing", "none")
EXERCISES = {one.name: one for lab in read_labs(Course(ROOT)) for one in lab.exercises}

with (Path(__file__).parent / "coverage.tsv").open(encoding="utf-8") as _file:
    ROWS = list(csv.DictReader(_file, delimiter="\t", quoting=csv.QUOTE_NONE))


def counted(deck: str, column: str) -> list[int]:
    """How many of a deck's rows ("all": of all) have each status."""
    found = Counter(row[column] for row in ROWS if deck in (row["deck"], "all"))
    return [found[status] for status in STATUSES]


def named(row: dict[str, str]) -> list[str]:
    """The exercises that a row names."""
    return [word for word in re.findall(r"\w+", row["by"]) if word in EXERCISES]


def test_every_row_has_its_place_and_two_known_statuses():
    assert [str(number) for number in range(1, 369)] == [row["row"] for row in ROWS]
    assert set(STATUSES) >= {row[column] for row in ROWS for column in ("before", "now")}


def test_what_is_called_graded_names_an_exercise_with_points():
    graded = [row for row in ROWS if row["now"] == "graded"]

    assert [] == [row["row"] for row in graded if not any(EXERCISES[name].points for name in named(row))]


def test_what_is_called_practised_names_an_exercise():
    assert [] == [row["row"] for row in ROWS if row["now"] == "practised" and not named(row)]


def test_at_least_206_rows_are_graded_and_none_is_missing():
    now = dict(zip(STATUSES, counted("all", "now"), strict=True))

    assert now["graded"] >= 206
    assert now["missing"] == 0


@pytest.mark.parametrize("deck", ["000", "001", "002", "003", "004", "all"])
@pytest.mark.parametrize("column", ["before", "now"])
def test_the_counts_of_contributing_are_those_of_the_rows(deck: str, column: str):
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    counts = counted(deck, column)

    assert f"| {deck} | {sum(counts)} | {column} | {' | '.join(map(str, counts))} |" in text
