"""No wrong answer of a blind batch gets full marks, and no right one loses any."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.labs.trials import Mistake, Trial
from tests.labs.trials.play import lab_of_trial, play

BATCHES = sorted(Path(__file__).parent.glob("lab*/*.toml"))
# Right by another reading of the text, which says more since.
REFUSED = {"attention.always_normalized": "the host answers a call without keys by itself; now a kernel has to"}


def answers(path: Path, kind: str) -> tuple[Mistake, ...]:
    """The wrong answers (`mistake`) or the right ones (`honest`) of a file."""
    return tuple(Mistake(**one) for one in tomllib.loads(path.read_text(encoding="utf-8"))[kind])


@pytest.mark.parametrize("path", BATCHES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_an_exercise_has_eleven_wrong_answers_and_three_right_ones(path: Path) -> None:
    for kind, least in (("mistake", 11), ("honest", 3)):
        names = [one.name for one in answers(path, kind)]

        assert len(set(names)) == len(names) >= least


@pytest.mark.slow
@pytest.mark.parametrize("path", BATCHES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_wrong_answers_lose_points_and_right_ones_none(path: Path) -> None:
    lab, exercise = path.parent.name, path.stem
    points = {
        kind: {
            one.name: one.points
            for one in play(Trial(lab, exercise, path.parent, answers(path, kind)), lab_of_trial(lab))
        }
        for kind in ("mistake", "honest")
    }

    assert [] == [name for name, share in points["mistake"].items() if share == 1]
    lost = [name for name, share in points["honest"].items() if share < 1]
    assert [] == [name for name in lost if f"{exercise}.{name}" not in REFUSED]
