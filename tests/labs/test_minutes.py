"""The minutes that labs announce follow one rule, which is this far from fifteen estimates of readers."""

from __future__ import annotations

import re
from pathlib import Path
from statistics import mean

import pytest

from edl_labs.course.course_folder import Course
from edl_labs.course.lab.minutes import CHECK_MIN, ESSAY_MIN, SOLUTION_LINE_MIN, Workload, workloads
from edl_labs.course.lab.read import read_labs

LABS = {lab.name: lab for lab in read_labs(Course(Path(__file__).resolve().parents[2]))}
# What four readers estimated for an ordinary student, and what there was to do in the labs that they read.
ESTIMATES = {
    "lab01": (205, Workload(3015, 220, 55, 6, 1)),
    "lab02": (139, Workload(2891, 231, 62, 5, 1)),
    "lab03": (180, Workload(3153, 358, 74, 6, 1)),
    "lab04": (210, Workload(3010, 349, 50, 5, 1)),
    "lab05": (173, Workload(2303, 282, 69, 4, 1)),
    "lab06": (213, Workload(2984, 300, 99, 5, 1)),
    "lab07": (148, Workload(2403, 195, 86, 4, 0)),
    "lab07b": (210, Workload(1787, 115, 70, 3, 1)),
    "lab08": (119, Workload(1691, 131, 55, 3, 0)),
    "lab08b": (145, Workload(1868, 221, 96, 2, 0)),
    "lab08c": (130, Workload(2163, 215, 65, 2, 1)),
    "lab09": (131, Workload(1762, 180, 83, 3, 0)),
    "lab09b": (160, Workload(1700, 171, 39, 3, 1)),
    "lab10": (125, Workload(1974, 257, 63, 4, 0)),
    "lab10b": (155, Workload(1569, 172, 66, 3, 1)),
}
# Labs whose reader needed a third more than the rule says: they announce the reader's minutes.
BY_THE_READER = {"lab07b_models_that_do_not_fit": 210, "lab09b_serving": 160}


def test_the_rule_is_within_an_eighth_of_the_estimates_on_average() -> None:
    errors = [work.minutes / estimate - 1 for estimate, work in ESTIMATES.values()]

    assert mean(map(abs, errors)) < 1 / 8
    assert max(map(abs, errors)) < 1 / 3
    assert abs(mean(errors)) < 0.05


def test_no_other_price_of_a_check_or_a_line_is_much_nearer() -> None:
    def error(line_min: float, check_min: float) -> float:
        fixed = {lab: work.reading_min + ESSAY_MIN * work.essays for lab, (_, work) in ESTIMATES.items()}
        return mean(
            ((fixed[lab] + line_min * work.solution_lines + check_min * work.checks) / estimate - 1) ** 2
            for lab, (estimate, work) in ESTIMATES.items()
        )

    others = [error(line / 10, check / 2) for line in range(21) for check in range(61)]

    assert error(SOLUTION_LINE_MIN, CHECK_MIN) <= 1.02 * min(others)


@pytest.mark.parametrize("name", LABS)
def test_a_lab_announces_what_the_rule_says(name: str) -> None:
    lab = LABS[name]
    graded = {one.name for one in lab.exercises if not one.optional}
    ruled = sum(work.minutes for exercise, work in workloads(lab).items() if exercise in graded)

    assert pytest.approx(BY_THE_READER.get(name, ruled), rel=0.1) == lab.minutes


@pytest.mark.parametrize("name", LABS)
def test_cell_1_says_the_minutes_of_each_exercise_and_that_they_are_estimated(name: str) -> None:
    lab = LABS[name]
    said = said_minutes(lab.cells[0].source)
    practice = sum(one.minutes for one in lab.exercises if one.optional)

    assert f"**About {lab.minutes} minutes (estimated)**" in lab.cells[0].source
    assert {one.name: one.minutes for one in lab.exercises} == said
    assert not practice or f"another {practice} minutes (estimated)" in lab.cells[0].source.replace("\n", " ")


def said_minutes(first: str) -> dict[str, int]:
    """Each exercise's minutes in the tables of a first cell, which go down or across."""
    found: dict[str, int] = {}
    names: list[str] = []
    for line in first.splitlines():
        row = [one.strip() for one in line.strip("|").split("|")]
        if re.fullmatch(r"`\w+`", row[0]):
            found[row[0].strip("`")] = int(row[-1])
        elif row[0] in ("exercise", "practice"):
            names = [one.strip("`") for one in row[1:]]
        elif row[0] == "minutes":
            found |= dict(zip(names, map(int, row[1:]), strict=True))
    return found


def test_every_part_of_a_lab_counts_once() -> None:
    lab = LABS["lab04_data_pipelines"]
    words = sum(len(re.findall(r"\w+", cell.source)) for cell in lab.cells if cell.kind == "markdown")

    assert words == sum(work.words for work in workloads(lab).values())


def test_what_follows_the_last_graded_exercise_is_no_practice() -> None:
    works = workloads(LABS["lab10_capstone"])

    assert works["same_curve"].words > 400


@pytest.mark.parametrize("name", ["lab06_memory", "lab09_inference", "lab09b_serving"])
def test_sections_are_numbered_and_the_practice_comes_last(name: str) -> None:
    lab = LABS[name]
    sources = [cell.source for cell in lab.cells]
    headings = [line for one in sources for line in one.splitlines() if re.match(r"## \d", line)]
    practised = ["Practice: " in one for one in headings]

    assert [str(at) for at in range(1, len(headings) + 1)] == [one.split()[1].rstrip(".") for one in headings]
    assert sorted(practised) == practised
    assert sum(one.optional for one in lab.exercises) == sum(practised)
