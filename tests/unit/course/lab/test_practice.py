"""Optional practice: checked, proved and shown as every exercise, and never worth a point."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pytest

from edl_labs.checks import Progress, check
from edl_labs.course.course_folder import Course
from edl_labs.course.lab.build import build
from edl_labs.course.lab.lab_toml import read_lab_toml
from edl_labs.course.lab.prove import prove
from edl_labs.course.lab.read import read_lab
from edl_labs.course.run.checkfile import CheckReport
from edl_labs.course.run.run_report import ExerciseResult
from edl_labs.errors import SourceError
from tests.unit.course.lab import kit

USES = ', uses=("doubled_time",)'


@pytest.fixture
def practising(course: Course, monkeypatch: pytest.MonkeyPatch) -> Course:
    """The small course, built, with `quadrupled_time` as practice."""
    kit.add_second(course, uses=USES, worth="optional = true")
    build(course)
    monkeypatch.setenv("EDL_LABS_EXERCISES", str(course.exercises))
    return course


def released(course: Course) -> nbformat.NotebookNode:
    return nbformat.read(course.labs / kit.LAB / f"{kit.LAB}.ipynb", as_version=4)


def solved(course: Course) -> dict[str, object]:
    """A namespace with the solution's names."""
    names: dict[str, object] = {}
    lab = read_lab(course, kit.LAB)
    for code in [lab.cell("given").source, lab.solution_cell("doubled_time"), lab.solution_cell("quadrupled_time")]:
        exec(code, names)
    return names


def test_nbgrader_and_the_goldens_know_it_without_points(practising: Course) -> None:
    facts = json.loads((practising.goldens / f"{kit.LAB}.json").read_text())
    marks = {
        c.metadata.nbgrader.grade_id: c.metadata.nbgrader
        for c in released(practising).cells
        if "nbgrader" in c.metadata
    }

    told = {e["name"]: (e["points"], e.get("optional")) for e in facts["exercises"]}
    assert {"doubled_time": (2, None), "quadrupled_time": (0.0, True), "why_twice": (3, None)} == told
    assert (True, True, 0) == tuple(marks["check_quadrupled_time"][key] for key in ("grade", "locked", "points"))
    assert 5 == sum(mark.get("points", 0) for mark in marks.values())


def test_the_table_of_labs_names_it_apart(practising: Course) -> None:
    row = (practising.labs / "README.md").read_text().split("\n")[5]

    assert "| 5 | `doubled_time`, `why_twice`; practice without points: `quadrupled_time` |" in row


def test_a_check_says_its_state_and_gives_no_points(practising: Course, capsys: pytest.CaptureFixture[str]) -> None:
    right = check("quadrupled_time", namespace=solved(practising))
    wrong = check("quadrupled_time", namespace={**solved(practising), "quadrupled_time": lambda x: x})

    assert (0.0, 0.0, "0.0") == (right, wrong, repr(right))
    assert ("passed", "wrong") == (right.outcome.state, wrong.outcome.state)
    assert "the duration came back as it was" == wrong.outcome.what
    assert "✓ quadrupled_time: passed, practice, no points" in capsys.readouterr().out


def test_the_card_has_it_in_a_part_of_its_own_at_the_end(practising: Course) -> None:
    for name in ("doubled_time", "quadrupled_time"):
        check(name, namespace=solved(practising))

    card = Progress(kit.LAB)

    assert (2, 5) == (card.points, card.max_points)
    assert str(card).endswith(
        "  · why_twice: 0 / 3 (marked by hand)\npractice, without points:\n  ✓ quadrupled_time (passed)"
    )
    graded, practice = card.html().split("practice, without points:")
    assert (2, 1) == (graded.count("<li "), practice.count("<li "))
    assert "<b>quadrupled_time</b><br><small>passed</small>" in practice


@pytest.mark.slow
def test_a_proof_judges_state_and_sentence_of_practice_as_of_the_others(course: Course) -> None:
    kit.add_second(course, uses=USES, worth="optional = true")
    build(course)

    proof = prove(course, kit.LAB, seeds=2)

    assert [] == proof.problems
    practice = next(one for one in proof.exercises if one.name == "quadrupled_time")
    assert (0, "full marks with 2 seeds") == (practice.points, practice.solution.text)
    assert {"the duration came back as it was", "another value came back"} == {
        known.said for known in practice.mistakes
    }


@pytest.mark.parametrize("optional", [True, False])
def test_a_constant_that_is_right_in_part_is_found_in_practice_too(course: Course, optional: bool) -> None:
    kit.add_second(course, uses=USES, worth="optional = true" if optional else "points = 1")
    module = course.exercises / f"{kit.LAB}.py"
    module.write_text(module.read_text() + "\n    def compare(self, case, got, want):\n        return 0.5\n")
    build(course)

    practice = next(one for one in prove(course, kit.LAB, seeds=2).exercises if one.name == "quadrupled_time")

    assert not practice.hostile.ok
    assert "scores 0.5 points" in practice.hostile.text


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("points = 2\n", "points = 2\noptional = true\n", "doubled_time is optional, but has points"),
        ("points = 2\n", "points = 0\n", "doubled_time: points must be a number above 0"),
        ("points = 2\n", 'optional = "yes"\n', "doubled_time: `optional` must be true or false"),
        ('kind = "explain"\n', 'kind = "explain"\noptional = true\n', "unknown key optional"),
    ],
)
def test_what_is_neither_practice_nor_graded_is_refused(old: str, new: str, what: str) -> None:
    with pytest.raises(SourceError, match=what):
        read_lab_toml(kit.TOML.replace(old, new), file="lab.toml")


@pytest.mark.parametrize(("graded", "practice", "code"), [("passed", "wrong", 0), ("wrong", "passed", 1)])
def test_practice_costs_a_notebook_nothing(graded: str, practice: str, code: int) -> None:
    results = (ExerciseResult("a", graded, 2.0 * (graded == "passed"), 2.0), ExerciseResult("b", practice, 0.0, 0.0))

    report = CheckReport("x.ipynb", kit.LAB, "Doubling", results, (), 1.0)

    assert (code, 2.0) == (report.exit_code, report.max_points)


def test_practice_that_became_graded_or_the_other_way_round_keeps_its_id(course: Course, tmp_path: Path) -> None:
    found = []
    for worth in ("points = 1", "optional = true"):
        other = kit.write_course(tmp_path / worth[:6].strip())
        kit.add_second(other, uses=USES, worth=worth)
        build(other)
        found.append([c.metadata.get("nbgrader", {}).get("grade_id") for c in released(other).cells])

    assert found[0] == found[1]
