"""The build: everything generated, byte for byte the same each time, and a diff of what is stale."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

from edl_labs.checks import plain
from edl_labs.course.lab.build import build
from edl_labs.course.lab.course import Course
from edl_labs.course.lab.goldens import rounded
from edl_labs.errors import EdlError
from tests.unit.course.lab import kit

NOTEBOOK, TABLE = f"labs/{kit.LAB}/{kit.LAB}.ipynb", "labs/README.md"
GOLDENS = f"edl_labs/exercises/goldens/{kit.LAB}.json"


def generated(course: Course) -> dict[str, bytes]:
    """Every generated file and its bytes."""
    places = (course.labs, course.goldens, course.source)
    return {course.shown(p): p.read_bytes() for place in places for p in sorted(place.rglob("*")) if p.is_file()}


def test_a_build_makes_notebooks_goldens_and_the_table(course: Course) -> None:
    steps: list[tuple[int, int]] = []

    report = build(course, progress=lambda done, total, text: steps.append((done, total)))

    assert {NOTEBOOK, GOLDENS, TABLE, f"build/source/{kit.LAB}/{kit.LAB}.ipynb"} == set(generated(course))
    assert {NOTEBOOK, GOLDENS, TABLE} == set(report.changed)
    assert [(1, 4), (2, 4), (3, 4), (4, 4)] == steps


def test_a_rebuild_changes_no_byte_not_even_in_another_process(built: Course) -> None:
    before = generated(built)
    code = (
        "import sys; from edl_labs.course.lab.course import Course; from edl_labs.course.lab.build import build;"
        "print(build(Course(sys.argv[1])).changed)"
    )

    env = {**os.environ, "PYTHONHASHSEED": "7"}
    done = subprocess.run([sys.executable, "-c", code, built.root], env=env, capture_output=True, text=True, check=True)

    assert "()" == done.stdout.strip()
    assert before == generated(built)


def test_check_writes_nothing_and_finds_nothing_stale_after_a_build(built: Course) -> None:
    report = build(built, check=True)

    assert (True, (), "") == (report.ok, report.changed, report.diff)


def test_check_shows_a_stale_notebook_as_a_diff(built: Course) -> None:
    kit.replace(kit.source(built), "print(size)", "print(label)")
    before = generated(built)

    report = build(built, check=True)

    assert (False, before) == (report.ok, generated(built))
    assert (NOTEBOOK,) == report.changed
    assert f"--- a/{NOTEBOOK}\n+++ b/{NOTEBOOK}\n" in report.diff
    assert '-    "print(size)"\n+    "print(label)"\n' in report.diff


@pytest.mark.parametrize("name", [NOTEBOOK, GOLDENS, TABLE])
def test_check_shows_what_is_missing(built: Course, name: str) -> None:
    (built.root / name).unlink()

    report = build(built, check=True)

    assert (False, (name,)) == (report.ok, report.changed)
    assert f"--- /dev/null\n+++ b/{name}\n" in report.diff


@pytest.mark.parametrize("name", ["labs/lab99_gone/lab99_gone.ipynb", "edl_labs/exercises/goldens/lab99_gone.json"])
def test_check_shows_what_no_lab_makes_any_more_and_a_build_removes_it(built: Course, name: str) -> None:
    orphan = built.root / name
    orphan.parent.mkdir(exist_ok=True)
    orphan.write_text("{}\n")

    report = build(built, check=True)

    assert (False, (name,)) == (report.ok, report.changed)
    assert f"--- a/{name}\n+++ /dev/null\n" in report.diff
    assert (name,) == build(built).changed
    assert not orphan.exists()


def test_a_file_of_somebody_in_labs_is_neither_kept_silently_nor_removed(built: Course) -> None:
    notes = built.labs / kit.LAB / "notes.txt"
    notes.write_text("mine")

    for check in (True, False):
        with pytest.raises(EdlError, match=f"no lab makes labs/{kit.LAB}/notes.txt"):
            build(built, check=check)
    assert "mine" == notes.read_text()


def test_stale_points_are_found_in_notebook_goldens_and_table(built: Course) -> None:
    kit.replace(kit.toml(built), "points = 2", "points = 4")

    assert {NOTEBOOK, GOLDENS, TABLE} == set(build(built, check=True).changed)


def test_a_data_file_that_lab_toml_names_is_released_and_no_other_is(course: Course) -> None:
    (kit.source(course).parent / "runs.csv").write_text("1,2\n")
    kit.replace(kit.toml(course), 'device = "any"', 'device = "any"\ndata = ["runs.csv"]')

    build(course)

    names = {p.name for p in course.labs.rglob("*") if p.is_file()}
    assert {"README.md", f"{kit.LAB}.ipynb", "runs.csv"} == names


def test_the_goldens_hold_public_facts_and_what_the_solution_gives(built: Course) -> None:
    data = json.loads((built.goldens / f"{kit.LAB}.json").read_text())

    golden = data["goldens"]["doubled_time"]
    cases, wants = plain.from_json(golden["cases"]), plain.from_json(golden["wants"])
    assert (1, "Doubling", 30) == (data["schema"], data["title"], data["minutes"])
    assert [("doubled_time", "code", 2), ("why_twice", "explain", 3)] == [
        (e["name"], e["kind"], e["points"]) for e in data["exercises"]
    ]
    assert ["doubled_time"] == list(data["goldens"])
    assert [rounded(2 * case, 9) for case in cases] == wants


def test_goldens_hold_no_rubric_and_no_model_answer(built: Course) -> None:
    text = (built.goldens / f"{kit.LAB}.json").read_text()

    assert "allocator" not in text


def test_the_library_reads_the_goldens_of_a_course(built: Course) -> None:
    from edl_labs.checks.public import facts

    with built.activated():
        found = facts(kit.LAB)

    assert 5 == found.points
    assert 4 == len(found.golden("doubled_time")[1])


def test_floats_are_rounded_wherever_they_are() -> None:
    import torch

    third = 1 / 3
    value = {"a": [third, 7, "x", None, True], "b": numpy.array([third, float("nan")]), "c": torch.tensor([third])}

    got = rounded(value, 3)

    assert [0.333, 7, "x", None, True] == got["a"]
    assert 0.333 == got["b"][0]
    assert numpy.isnan(got["b"][1])
    assert abs(0.333 - got["c"].item()) < 1e-7
    assert torch.float32 == got["c"].dtype


def test_a_solution_that_does_not_run_is_named_and_nothing_is_written(course: Course) -> None:
    kit.replace(kit.source(course), "label = ", "other = undefined_name\nlabel = ")
    kit.toml(course).write_text(kit.TOML.replace("size = ", "other = 1\nsize = "))

    with pytest.raises(EdlError, match=f"{kit.LAB}: the solution does not run") as caught:
        build(course)

    assert "parameters: NameError" in caught.value.why
    assert {} == generated(course)


def test_a_probe_that_fails_on_the_solution_is_named(course: Course) -> None:
    kit.replace(course.exercises / f"{kit.LAB}.py", "student.doubled_time(case)", "student.doubled_time(case).nothing")

    with pytest.raises(EdlError, match="the probe of doubled_time failed on the solution, case 0"):
        build(course)


def test_the_sources_of_a_lab_that_is_gone_are_removed(built: Course) -> None:
    old = built.source / "lab99_gone" / "lab99_gone.ipynb"
    old.parent.mkdir()
    old.write_text("{}")

    build(built)

    assert not old.parent.exists()


def test_the_table_lists_title_minutes_points_exercises_and_device(built: Course) -> None:
    lines = (built.labs / "README.md").read_text().splitlines()
    row = next(line for line in lines if line.startswith(f"| [{kit.LAB}]"))

    assert f"| [{kit.LAB}]({kit.LAB}/{kit.LAB}.ipynb) | Doubling | 30 | 5 | `doubled_time`, `why_twice` | any |" == row


def test_building_leaves_directory_and_environment_as_they_were(course: Course) -> None:
    before = (Path.cwd(), os.environ.get("EDL_LABS_EXERCISES"))

    build(course)

    assert before == (Path.cwd(), os.environ.get("EDL_LABS_EXERCISES"))
