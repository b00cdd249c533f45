"""Results of trace go to JSON and back, and show themselves in a line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from edl_labs.errors import UsageError
from edl_labs.trace import Diagnosis, Samples, SideBySide, VirtualLoop, ablate, attribute, diagnose
from tests.unit.trace.loops import held_then_busy, traced


def results() -> list[Any]:
    return [
        diagnose(VirtualLoop(held_then_busy)),
        attribute(traced(data_s=1e-3), skip=1),
        ablate(VirtualLoop(held_then_busy), "host", steps=4),
        Samples({("main (a.py:1)", "load (a.py:5)"): 6}),
        SideBySide("a.py", {"cProfile": {"load": 1.0}}, {"plain": 0.5}, {"scalene": "not installed"}),
    ]


@pytest.mark.parametrize("result", results(), ids=lambda result: type(result).__name__)
def test_a_result_comes_back_from_its_json(result: Any) -> None:
    tree = json.loads(json.dumps(result.to_json(), allow_nan=False))

    assert result == type(result).from_json(tree)
    assert len(repr(result)) < 1500


def test_an_interval_that_is_unknown_comes_back_unknown() -> None:
    tree = attribute(traced(steps=2)).to_json()
    low, high = type(attribute(traced(steps=2))).from_json(tree).intervals["data"]

    assert [None, None] == tree["intervals"]["data"]
    assert low != low
    assert high != high


def test_a_diagnosis_from_json_has_its_text_and_says_why_it_has_no_pictures() -> None:
    found = diagnose(traced())
    kept = Diagnosis.from_json(found.to_json())

    assert found.text() == kept.text()
    with pytest.raises(UsageError, match="has no trace"):
        kept.figure()
