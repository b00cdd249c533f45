"""Every mechanism of the corpus has its true verdict, shares, line and speed-up."""

from __future__ import annotations

from pathlib import Path

import pytest

from edl_labs.trace import Diagnosis, diagnose
from tests.data.traces import CORPUS, Case


def diagnosed(case: Case, folder: Path) -> Diagnosis:
    return diagnose(case.make().write(folder, "trace"))


def test_the_corpus_is_large_enough() -> None:
    assert 60 <= len({case.name for case in CORPUS})


@pytest.mark.parametrize("case", CORPUS, ids=lambda case: case.name)
def test_a_mechanism_is_told_as_it_is(case: Case, tmp_path: Path) -> None:
    found, truth = diagnosed(case, tmp_path), case.truth
    period_us = sum(truth.period_us.values())
    blame = found.attribution.blames[found.attribution.dominant][0]
    shares = {cause: truth.period_us.get(cause, 0.0) / period_us for cause in found.shares}

    assert truth.verdict == found.verdict
    assert shares == pytest.approx(found.shares, abs=0.011)
    assert truth.line in (blame.line or blame.what)
    if truth.note:
        assert any(truth.note in note for note in found.notes)
    else:
        assert () == found.notes
    assert ("overlap:" in found.text()) == (truth.overlap is not None)
    assert truth.overlap == pytest.approx(found.overlap)


@pytest.mark.parametrize("case", [case for case in CORPUS if case.truth.speedup], ids=lambda case: case.name)
def test_a_speedup_is_within_a_tenth(case: Case, tmp_path: Path) -> None:
    found = diagnosed(case, tmp_path)
    cause, factor = case.truth.speedup or ("", 0.0)
    (gain,) = (gain for gain in found.gains if gain.cause == cause)

    assert factor == pytest.approx(gain.speedup, rel=0.1)
