"""The commands in README and docs/commands.md exist; README opens from a fresh shell; what tests a promise exists."""

from __future__ import annotations

import re
from pathlib import Path

import typer

from edl_labs.cli import app

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOORS = README.partition("## Three ways to start")[2].partition("\n## ")[0]


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
    assert {"setup", "test", "run", "docs"} == set(re.findall(r"make ([a-z-]+)", blocks)) & targets


def test_each_door_has_the_command_before_it_is_used() -> None:
    student, instructor = commands("Student"), commands("Instructor")

    assert student.index("pip install") < student.index("edl-labs start")
    assert instructor.index("make setup") < instructor.index(". .venv/bin/activate") < instructor.index("edl-labs new")


def test_the_table_of_commands_lists_every_verb() -> None:
    table = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")

    assert verbs() == set(re.findall(r"^\| `([a-z]+)", table, re.MULTILINE))


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 120


def promises() -> list[tuple[str, str]]:
    """What grading promises, and what tests it, row by row."""
    table = (ROOT / "docs" / "grading.md").read_text(encoding="utf-8").partition("\n## What grading promises")[2]
    rows = re.findall(r"^\| (.+) \|$", table.partition("\n## ")[0], re.MULTILINE)[1:]
    return [(row.split(" | ")[0], row.split(" | ")[2]) for row in rows]


def exists(name: str) -> bool:
    """Whether a test, a folder of tests or an attack of that name is here; of a command, whether its verb is."""
    words = name.split()
    if len(words) > 1:
        return words[0] == "make" or words[1] in verbs()
    attack = ROOT / "tests" / "attacks" / "submissions" / f"{name}.cells"
    return (ROOT / name).exists() or attack.exists() or bool(name[-3:] == ".py" and [*(ROOT / "tests").rglob(name)])


def test_what_tests_a_promise_of_grading_exists() -> None:
    named = [(promise, name) for promise, tests in promises() for name in re.findall(r"`([^`]+)`", tests)]

    assert [] == [one for one in named if not exists(one[1])]
    assert {promise for promise, _ in promises()} == {promise for promise, _ in named}
    assert [] == [one for one in ("test_that_is_none.py", "an_attack_that_is_none", "edl-labs dance") if exists(one)]
