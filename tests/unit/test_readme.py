"""README's commands are those that exist, and its doors open from a fresh shell."""

from __future__ import annotations

import re
import statistics
from pathlib import Path

import typer

from edl_labs.cli import app

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOORS = README.partition("## Three doors")[2].partition("\n## ")[0]


def verbs() -> set[str]:
    """Every verb of the command line."""
    return set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


def commands(door: str) -> str:
    """The commands in the first block of a door."""
    return DOORS.partition(f"**{door}**")[2].split("```")[1]


def test_the_doors_name_verbs_and_targets_that_exist() -> None:
    blocks = "\n".join(DOORS.split("```")[1::2])
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))

    assert {"start", "new", "test", "collect", "grade"} == set(re.findall(r"edl-labs ([a-z]+)", blocks))
    assert set(re.findall(r"edl-labs ([a-z]+)", blocks)) <= verbs()
    assert {"setup", "test", "run"} == set(re.findall(r"make ([a-z-]+)", blocks)) & targets


def test_each_door_has_the_command_before_it_is_used() -> None:
    student, instructor = commands("Student"), commands("Instructor")

    assert student.index("pip install") < student.index("edl-labs start")
    assert instructor.index("make setup") < instructor.index(". .venv/bin/activate") < instructor.index("edl-labs new")


def test_the_table_of_commands_lists_every_verb() -> None:
    table = README.partition("## Commands")[2].partition("\n## ")[0]

    assert verbs() == set(re.findall(r"^\| `([a-z]+)", table, re.MULTILINE))


def test_the_loader_tables_errors_are_the_medians_of_those_beside_them() -> None:
    text = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    heading = r"^\|.*\| median of the rounds' errors \| error in each round, % \|\n"
    tables = re.findall(heading + r"\|[-|]+\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    rows = [row.replace("−", "-").split("|")[-3:-1] for table in tables for row in table.splitlines()]

    assert [16, 12] == [len(table.splitlines()) for table in tables]
    for error, rounds in rows:
        assert abs(float(error.strip(" %")) - statistics.median(map(int, rounds.split(",")))) <= 1
