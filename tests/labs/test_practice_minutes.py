"""The minutes in cell 1 of the labs on inference: the core's, the practice's and each section's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from edl_labs.course.course_folder import Course
from edl_labs.course.lab.read import read_labs

LABS = {lab.name: lab for lab in read_labs(Course(Path(__file__).resolve().parents[2]))}


@pytest.mark.parametrize("name", ["lab09_inference", "lab09b_serving"])
def test_cell_1_says_the_minutes_of_the_core_and_of_the_practice(name: str) -> None:
    lab = LABS[name]
    first = lab.cells[0].source
    core, practice = (
        [int(one) for one in row.split("|")] for row in re.findall(r"\| minutes \|([ \d|]+)\|(?:\n|$)", first)
    )
    named = re.findall(r"`(\w+)`", re.findall(r"\| practice \|(.+)\|\n", first)[0])
    optional = {one.name: one.minutes for one in lab.exercises if one.optional}

    assert f"**About {lab.minutes} minutes**" in first
    assert lab.minutes == sum(core)
    assert dict(zip(named, practice, strict=True)) == optional
    assert f"their {sum(practice)} minutes" in first
    assert "sitting" not in first


@pytest.mark.parametrize("name", ["lab09_inference", "lab09b_serving"])
def test_sections_are_numbered_and_the_practice_comes_last(name: str) -> None:
    lab = LABS[name]
    sources = [cell.source for cell in lab.cells]
    headings = [line for one in sources for line in one.splitlines() if re.match(r"## \d", line)]
    practised = ["Practice: " in one for one in headings]

    assert [str(at) for at in range(1, len(headings) + 1)] == [one.split()[1].rstrip(".") for one in headings]
    assert sorted(practised) == practised
    assert sum(one.optional for one in lab.exercises) == sum(practised)
