"""A trace is analysed once, however many questions are asked about it, and stays what it was."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields
from typing import Any

import pytest

from edl_labs.trace import AnalysedTrace, Trace, antipatterns, attribute, diagnose, most_to_gain, what_if
from edl_labs.trace import analysed_trace as module
from tests.unit.trace.loops import traced


def test_a_diagnosis_analyses_its_trace_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: Counter[str] = Counter()

    def counted(name: str) -> Any:
        make = getattr(module, name)

        def made(*args: Any) -> Any:
            asked[name] += 1
            return make(*args)

        return made

    parts = ("host_intervals", "device_work", "dependency_graph", "issuing_calls", "tiny_reads", "Places")
    for name in parts:
        monkeypatch.setattr(module, name, counted(name))
    diagnose(traced(reads=5)).figure()

    assert dict.fromkeys(parts, 1) == asked


def test_analysed_or_not_the_answers_are_the_same() -> None:
    trace = traced(reads=5, data_s=1e-3)
    analysed = AnalysedTrace(trace)

    assert attribute(trace, skip=1) == attribute(analysed, skip=1)
    assert what_if(trace, "data") == what_if(analysed, "data")
    assert most_to_gain(trace) == most_to_gain(analysed)
    assert antipatterns(trace) == antipatterns(analysed)
    assert analysed is AnalysedTrace.of(analysed)


def test_asking_leaves_nothing_behind_in_the_trace() -> None:
    trace = traced(reads=5)
    diagnose(trace)

    assert set(vars(trace)) <= {field.name for field in fields(Trace)} | {"nesting", "steps"}
