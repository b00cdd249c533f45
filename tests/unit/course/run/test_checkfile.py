"""`edl-labs check FILE` tells a student the truth about a notebook, whatever is in it, and never changes it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import nbformat
import pytest

from edl_labs.course.run.checkfile import CheckReport, check_notebook
from edl_labs.course.run.run_report import RunLimits
from edl_labs.errors import UsageError
from tests.sampling import few
from tests.unit.course.run.running_kit import QUICK, check, code, explain, notebook, passed, raw, solve, write

NAMES = ("sums", "tiles")


@pytest.fixture(autouse=True)
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A course of one built lab: two exercises that are checked and one that a person marks."""
    folder = tmp_path / "exercises"
    (folder / "goldens").mkdir(parents=True)
    exercises = [fact(name, "code") for name in NAMES] + [fact("why_so", "explain")]
    cells = [*map(check, NAMES), *explain("why_so")]
    locked = {
        cell.id: hashlib.sha256(cell.source.encode()).hexdigest()
        for cell in cells
        if cell.metadata["nbgrader"]["locked"]
    }
    facts = {"schema": 2, "lab": "lab90_small", "title": "Small", "minutes": 5, "exercises": exercises}
    raw(folder / "goldens" / "lab90_small.json", {**facts, "goldens": {}, "locked": locked})
    monkeypatch.setenv("EDL_LABS_EXERCISES", str(folder))
    return folder


def fact(name: str, kind: str) -> dict[str, Any]:
    return {"name": name, "kind": kind, "points": 2, "hints": ["a", "b"], "uses": [], "trusting": False}


def submission(folder: Path, *cells: Any, name: str = "lab90_small") -> Path:
    home = folder / "home"
    home.mkdir(exist_ok=True)
    return write(home, name, *cells, *map(check, NAMES), *explain("why_so"))


def states(report: CheckReport) -> dict[str, str]:
    return {exercise.name: exercise.state for exercise in report.exercises}


def test_all_passed_is_0_and_the_file_is_as_it_was(tmp_path: Path) -> None:
    own = code("open('lab90_small.ipynb', 'w').write('gone')")
    path = submission(tmp_path, own, passed(*NAMES))
    before = path.read_bytes()

    report = check_notebook(path, limits=QUICK)
    assert {"sums": "passed", "tiles": "passed", "why_so": "marked by hand"} == states(report)
    assert (0, 4.0, 4.0, 2.0) == (report.exit_code, report.points, report.max_points, report.by_hand_points)
    assert before == path.read_bytes()
    assert [path] == list(path.parent.iterdir())
    assert (1, 0) == tuple(json.loads(json.dumps(report.to_json()))[key] for key in ("schema", "exit_code"))


@pytest.mark.parametrize(
    ("answer", "said"),
    [("Because.", ""), ("YOUR ANSWER HERE", "its answer cell is empty"), ("", "its answer cell is empty")],
)
def test_an_answer_that_nobody_wrote_is_said(tmp_path: Path, answer: str, said: str) -> None:
    home = tmp_path / "home"
    home.mkdir()
    path = write(home, "lab90_small", passed(*NAMES), *map(check, NAMES), *explain("why_so", answer))
    found = next(e for e in check_notebook(path, limits=QUICK).exercises if e.name == "why_so")

    assert ("marked by hand", said) == (found.state, found.what)


def test_a_stub_is_1_and_not_a_crash(tmp_path: Path) -> None:
    stub = solve("sums", "def sums(): raise NotImplementedError\nsums()")

    report = check_notebook(submission(tmp_path, stub), limits=QUICK)
    assert (1, ()) == (report.exit_code, report.failures)
    assert {"not attempted", "marked by hand"} == set(states(report).values())


def test_a_cell_that_raises_costs_only_itself_but_is_4(tmp_path: Path) -> None:
    report = check_notebook(submission(tmp_path, code("1 / 0"), passed(*NAMES)), limits=QUICK)

    assert (4, 4.0) == (report.exit_code, report.points)
    assert ["cell 2 (1 / 0) raised ZeroDivisionError: division by zero"] == [f.what for f in report.failures]


# A loop that no interrupt gets out of.
STUBBORN = """\
while True:
    try:
        while True:
            pass
    except BaseException:
        pass
"""


@pytest.mark.slow
def test_an_endless_cell_is_interrupted_and_costs_itself_alone(tmp_path: Path) -> None:
    path = submission(tmp_path, passed(*NAMES))
    made = nbformat.read(path, as_version=4)
    made.cells.insert(4, code("while True: pass", "trap"))
    nbformat.write(made, path)

    report = check_notebook(path, limits=RunLimits(cell_s=6, notebook_s=240))

    assert {"sums": "passed", "tiles": "passed", "why_so": "marked by hand"} == states(report)
    assert (4, 4.0) == (report.exit_code, report.points)
    (failure,) = report.failures
    assert "cell 4 (while True: pass) was still running after 6 s, and was interrupted" == failure.what


def test_a_cell_that_is_not_python_is_told_by_its_number_in_jupyterlab(tmp_path: Path) -> None:
    words = [nbformat.v4.new_markdown_cell("Words, which JupyterLab gives no number.") for _ in range(2)]
    broken = solve("sums", "def sums(:\n    return 1")

    report = check_notebook(submission(tmp_path, *words, broken, passed("tiles")), limits=QUICK)

    (failure,) = report.failures
    assert failure.what.startswith("cell 2 (def sums(:) is not valid Python: SyntaxError: invalid syntax")
    assert "no part of this cell ran" in failure.why
    assert "passed" == states(report)["tiles"]


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        pytest.param(STUBBORN, "cell-timeout", marks=pytest.mark.slow),
        ("import os; os._exit(0)", "dead"),
        pytest.param("exit()", "exit", marks=pytest.mark.slow),
    ],
)
def test_a_notebook_that_does_not_end_is_4_with_the_points_before_it(tmp_path: Path, source: str, kind: str) -> None:
    path = submission(tmp_path, passed(*NAMES))
    made = nbformat.read(path, as_version=4)
    made.cells.insert(4, code(source, "trap"))
    nbformat.write(made, path)

    report = check_notebook(path, limits=RunLimits(cell_s=6, notebook_s=240))
    assert (4, [kind]) == (report.exit_code, [f.kind for f in report.failures])
    assert {"sums": "passed", "tiles": "not reached", "why_so": "marked by hand"} == states(report)


def test_a_touched_check_is_5_and_gives_no_points(tmp_path: Path) -> None:
    path = submission(tmp_path, passed(*NAMES))
    made = nbformat.read(path, as_version=4)
    made.cells[3].source = 'RESULTS["sums"] = (2.0, 2.0, "passed"); check("sums")'
    nbformat.write(made, path)

    report = check_notebook(path, limits=QUICK)
    assert (5, 2.0) == (report.exit_code, report.points)
    assert {"sums": "tampered", "tiles": "passed", "why_so": "marked by hand"} == states(report)


@pytest.mark.slow
def test_a_renamed_notebook_of_another_kernel_without_ids_is_checked_all_the_same(tmp_path: Path) -> None:
    path = submission(tmp_path, passed(*NAMES), name="my homework (final)")
    made = json.loads(path.read_text(encoding="utf-8"))
    made["metadata"] = {"kernelspec": {"name": "gone", "display_name": "Gone", "language": "python"}}
    made["nbformat_minor"] = 4
    made["cells"] = [{key: value for key, value in cell.items() if key != "id"} for cell in made["cells"]]

    report = check_notebook(raw(path, made), limits=QUICK)
    assert (0, "my homework (final).ipynb") == (report.exit_code, report.file)


def test_a_notebook_of_no_lab_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not belong to a lab that is installed here") as error:
        check_notebook(raw(tmp_path / "mine.ipynb", nbformat.writes(notebook(code("1")))))
    assert 2 == error.value.exit_code


@pytest.mark.slow
def test_a_notebook_that_lost_every_check_is_known_by_its_name(tmp_path: Path) -> None:
    report = check_notebook(raw(tmp_path / "lab90_small.ipynb", nbformat.writes(notebook(code("1")))), limits=QUICK)

    assert 5 == report.exit_code
    assert 3 == len(report.failures)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"cells": 1}'])
def test_a_broken_file_is_2(tmp_path: Path, content: str) -> None:
    with pytest.raises(UsageError) as error:
        check_notebook(raw(tmp_path / "lab90_small.ipynb", content))
    assert 2 == error.value.exit_code


def test_broken_facts_are_a_sentence_too(tmp_path: Path, course: Path) -> None:
    raw(course / "goldens" / "lab91_other.json", '{"schema": 1}')

    with pytest.raises(UsageError, match="the stored facts of lab91_other are damaged"):
        check_notebook(submission(tmp_path))


FORGED = 'RESULTS["sums"] = (2.0, 2.0, "passed"); check("sums")'


def forged_in_place(made: Any) -> None:
    made.cells[3].source = FORGED


def forged_under_a_mark_of_ones_own(made: Any) -> None:
    made.cells[3].metadata.pop("nbgrader")
    made.cells.append(code(FORGED, "mine"))
    made.cells[-1].metadata["nbgrader"] = {"grade": True, "solution": False, "grade_id": "sums"}


@pytest.mark.parametrize(
    ("forge", "release"),
    few(
        [
            (forged_under_a_mark_of_ones_own, "fedcba9876543210"),
            (forged_in_place, "x"),
            (forged_under_a_mark_of_ones_own, "x"),
        ],
        quick=1,
    ),
)
def test_no_metadata_makes_a_check_count_that_does_more_than_check(
    tmp_path: Path, course: Path, forge: Any, release: str
) -> None:
    path = submission(tmp_path, passed("tiles"))
    made = nbformat.read(path, as_version=4)
    forge(made)
    made.metadata["edl_labs"] = {"lab": "lab90_small", "release": release}
    nbformat.write(made, path)
    home = course.parent / "labs" / "lab90_small" / "lab90_small.ipynb"
    home.parent.mkdir(parents=True)
    raw(home, {"cells": [], "metadata": {"edl_labs": {"lab": "lab90_small", "release": "fedcba9876543210"}}})

    report = check_notebook(path, limits=QUICK)

    assert (5, 2.0) == (report.exit_code, report.points)
    assert {"sums": "tampered", "tiles": "passed", "why_so": "marked by hand"} == states(report)


@pytest.mark.slow
def test_a_notebook_of_another_release_is_a_sentence_and_no_lost_mark(tmp_path: Path, course: Path) -> None:
    path = submission(tmp_path, passed(*NAMES))
    made = nbformat.read(path, as_version=4)
    made.cells[3].source += "  # as it was released then"
    made.metadata["edl_labs"] = {"lab": "lab90_small", "release": "0123456789abcdef"}
    nbformat.write(made, path)
    home = course.parent / "labs" / "lab90_small" / "lab90_small.ipynb"
    home.parent.mkdir(parents=True)
    raw(home, {"cells": [], "metadata": {"edl_labs": {"lab": "lab90_small", "release": "fedcba9876543210"}}})

    report = check_notebook(path, limits=QUICK)

    assert (0, 4.0) == (report.exit_code, report.points)
    assert "a different release of the lab (01234567) than edl_labs" in report.note
