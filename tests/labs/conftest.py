"""What the tests of a lab share: its text, the solution's names, and ways to judge a function and to run every cell.

A test in `labNN/` is about the lab of that number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from edl_labs.checks import Outcome, RegisteredExercise, judge
from edl_labs.checks.evidence import collect
from edl_labs.checks.lab_exercises import load_lab
from edl_labs.checks.spec import given_halves
from edl_labs.course.lab.source import Cell, parse

SOLUTIONS = Path(__file__).resolve().parents[2] / "solutions"


def cells_of(test_file: str) -> list[Cell]:
    """The cells of the lab that a test file is about."""
    (folder,) = SOLUTIONS.glob(f"{Path(test_file).parent.name}_*")
    source = folder / f"{folder.name}.py"
    return parse(source.read_text(encoding="utf-8"), file=source.name)


@pytest.fixture(scope="module", autouse=True)
def _own_exercises() -> Iterator[None]:
    """The package's exercises, whatever course a fixture that still lives elsewhere has chosen."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("EDL_LABS_EXERCISES", raising=False)
        yield


@pytest.fixture(scope="module")
def cells(request: pytest.FixtureRequest) -> list[Cell]:
    """The cells of the lab's text."""
    return cells_of(str(request.path))


@pytest.fixture(scope="module")
def solution(cells) -> dict[str, Any]:
    """The names that the solution notebook defines, from its set-up, parameters, given and solve cells."""
    names: dict[str, Any] = {}
    for cell in cells:
        if cell.role in ("setup", "parameters", "given", "solve"):
            exec(compile(cell.source, cell.label, "exec"), names)
    return names


@pytest.fixture(scope="module")
def exercises(request: pytest.FixtureRequest, _own_exercises) -> dict[str, RegisteredExercise]:
    """The lab's exercises by name."""
    (folder,) = SOLUTIONS.glob(f"{request.path.parent.name}_*")
    return {exercise.name: exercise for exercise in load_lab(folder.name)}


@pytest.fixture(scope="module")
def judged(solution, exercises) -> Callable[..., Outcome]:
    """`judged("name", seed=1, function=...)`: the outcome (of 1 point) with names of the solution replaced."""

    def judged(name: str, *, seed: int = 1, **replaced: Any) -> Outcome:
        exercise = exercises[name]
        cases = exercise.draw_cases(seed)
        want = [record["value"] for record in collect(exercise, dict(solution), given_halves(cases))]
        return judge(exercise, cases, collect(exercise, {**solution, **replaced}, given_halves(cases)), want, points=1)

    return judged


@pytest.fixture
def run_all(cells) -> Iterator[Callable[..., dict[str, Any]]]:
    """`run_all(solved=True, small=[("size = 9", "size = 2")])`: every cell but checks, from nothing; the names."""
    import matplotlib

    matplotlib.use("Agg")

    def run_all(*, solved: bool, small: Iterable[tuple[str, str]] = ()) -> dict[str, Any]:
        names: dict[str, Any] = {"__name__": "notebook"}
        for cell in cells:
            if cell.kind != "code" or cell.role == "check":
                continue
            source = cell.source if solved or cell.role != "solve" else cell.stub
            for full, quick in small:
                source = source.replace(full, quick)
            exec(compile(source, f"{cell.label}, line {cell.line}", "exec"), names)
        return names

    yield run_all
    from matplotlib import pyplot

    pyplot.close("all")
