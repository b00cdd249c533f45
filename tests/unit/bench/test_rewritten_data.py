"""Whether a call writes into its result is told without harm to the data, whatever it holds."""

from __future__ import annotations

import numpy as np
import pytest
from scripted_clock import ScriptedClock

from edl_labs.bench import FunctionFailed
from edl_labs.bench.detectors import Detection
from edl_labs.bench.detectors.results_and_state import rewritten


def look_at(fn):
    Detection(fn, feed=None, clock=ScriptedClock(), enabled=True, cold=False, budget_s=0.4).before()


VALUES = [0.0, -0.0, 2.5, -7.0, 3e7, 1e-310, 1e300, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_a_buffer_that_is_filled_anew_is_told_whatever_it_holds(kind, value):
    with np.errstate(over="ignore"):
        data = np.full(64, value, dtype=kind)
    out = data.copy()

    assert rewritten(out, lambda: np.copyto(out, data))
    assert not rewritten(out, lambda: None)
    assert data.tobytes() == out.tobytes()


@pytest.mark.parametrize("data", [np.array([2**63 - 1]), np.array([255], np.uint8), np.array([True]), np.array([-1])])
def test_whole_numbers_and_truths_are_altered_and_put_back(data):
    out = data.copy()

    assert rewritten(out, lambda: np.copyto(out, data))
    assert not rewritten(out, lambda: None)
    assert data.tobytes() == out.tobytes()


def test_data_is_put_back_when_the_call_fails():
    kept = np.arange(64.0) + 5
    cache, asked = {}, []

    def fn():
        asked.append(1)
        if kept[0] != 5:
            raise ValueError("the data has changed")
        return cache.setdefault("x", kept[:])

    with pytest.raises(FunctionFailed, match="the data has changed"):
        look_at(fn)
    assert 5 == kept[0]
    assert len(asked) > 4
