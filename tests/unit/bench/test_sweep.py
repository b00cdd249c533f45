"""Sweeps: the grid's order, resuming from the file, failures kept with their reason."""

from __future__ import annotations

import json

import pytest
from scripted_clock import ScriptedClock, payload

from edl_labs.bench import Sweep, sweep
from edl_labs.errors import UsageError


def maker(clock, calls=None):
    def made(n, dtype="a"):
        if calls is not None:
            calls.append(n)
        if n == 13:
            raise ValueError("unlucky")
        return payload(clock, n * 1e-6)

    return made


def test_the_product_of_a_grid_is_measured_in_its_order():
    clock = ScriptedClock(cost_s=1e-7)
    result = sweep(maker(clock), {"n": [10, 20], "dtype": ["a", "b"]}, clock=clock)

    assert [(10, "a"), (10, "b"), (20, "a"), (20, "b")] == [tuple(p.parameters.values()) for p in result.points]
    assert [1e-5, 1e-5, 2e-5, 2e-5] == pytest.approx([p.measurement.median_s for p in result.points])


def test_a_function_that_computes_at_once_is_measured_itself():
    clock = ScriptedClock(cost_s=1e-7)
    result = sweep(lambda n: payload(clock, n * 1e-6)(), [{"n": 30}], clock=clock)

    assert 3e-5 == pytest.approx(result.points[0].measurement.median_s)


def test_a_sweep_goes_on_where_its_file_ends(tmp_path):
    clock, file = ScriptedClock(cost_s=1e-7), tmp_path / "sweep.json"
    first, second = [], []
    sweep(maker(clock, first), {"n": [1, 2]}, path=file, clock=clock)
    result = sweep(maker(clock, second), {"n": [1, 2, 3]}, path=file, clock=clock)

    assert ({1, 2}, {3}) == (set(first), set(second))
    assert result == Sweep.from_json(file.read_text())


def test_an_interrupted_sweep_keeps_what_it_had(tmp_path):
    clock, file = ScriptedClock(cost_s=1e-7), tmp_path / "sweep.json"

    def stops(n):
        if n == 3:
            raise KeyboardInterrupt
        return payload(clock, 1e-5)

    with pytest.raises(KeyboardInterrupt):
        sweep(stops, {"n": [1, 2, 3]}, path=file, clock=clock)

    assert 2 == len(Sweep.from_json(file.read_text()))
    assert [file] == list(tmp_path.iterdir())


def stopping_at(stop, clock, calls=None):
    def made(n):
        if calls is not None:
            calls.append(n)
        if n == stop:
            raise KeyboardInterrupt
        return payload(clock, n * 1e-6)

    return made


def saved_places(file):
    return [point.parameters["n"] for point in Sweep.from_json(file.read_text()).points]


def test_an_interrupted_sweep_over_another_order_loses_nothing(tmp_path):
    clock, file = ScriptedClock(cost_s=1e-7), tmp_path / "sweep.json"
    sweep(maker(clock), {"n": [1, 2, 3]}, path=file, clock=clock)
    with pytest.raises(KeyboardInterrupt):
        sweep(stopping_at(4, clock), {"n": [1, 7, 4, 2, 3]}, path=file, clock=clock)

    assert [1, 7, 2, 3] == saved_places(file)


def test_another_grid_is_added_to_the_file(tmp_path):
    clock, file, calls = ScriptedClock(cost_s=1e-7), tmp_path / "sweep.json", []
    sweep(maker(clock), {"n": [1, 2]}, path=file, clock=clock)
    result = sweep(maker(clock), {"n": [5]}, path=file, clock=clock)
    sweep(maker(clock, calls), {"n": [1, 2, 5]}, path=file, clock=clock)

    assert [5] == [point.parameters["n"] for point in result.points]
    assert [5, 1, 2] == saved_places(file)
    assert [] == calls


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"name": "other"}, "it contains the times of made, but this sweep is of other"),
        ({"budget_s": 0.2}, "it was measured with budget_s=0.1, clock=scripted, but this sweep uses budget_s=0.2"),
        ({"level": 0.9}, "this sweep uses budget_s=0.1, clock=scripted, level=0.9"),
        ({"cold": True}, "this sweep uses budget_s=0.1, clock=scripted, cold=True"),
    ],
)
def test_a_file_of_another_sweep_is_refused_before_anything_is_measured(tmp_path, options, said):
    clock, file, calls = ScriptedClock(cost_s=1e-7), tmp_path / "sweep.json", []
    sweep(maker(clock), {"n": [1]}, path=file, clock=clock, budget_s=0.1)
    before = file.read_text()
    with pytest.raises(UsageError, match=r"sweep\.json belongs to a different sweep") as caught:
        sweep(maker(clock, calls), {"n": [1, 2]}, path=file, **{"clock": clock, "budget_s": 0.1, **options})

    assert said in caught.value.why
    assert "path=" in caught.value.next
    assert ([], before) == (calls, file.read_text())


def test_a_default_that_is_spelled_out_is_the_same_sweep(tmp_path):
    clock, file, calls = ScriptedClock(cost_s=1e-7), tmp_path / "sweep.json", []
    sweep(maker(clock), {"n": [1]}, path=file, clock=clock)
    sweep(maker(clock, calls), {"n": [1]}, path=file, clock=clock, cold=False, level=0.95)

    assert [] == calls


def test_a_place_that_failed_is_tried_again(tmp_path):
    clock, file = ScriptedClock(cost_s=1e-7), tmp_path / "sweep.json"

    def made(n):
        if n in unlucky:
            raise ValueError("unlucky")
        return payload(clock, n * 1e-6)

    unlucky = {2}
    first = sweep(made, {"n": [1, 2]}, path=file, clock=clock)
    unlucky = set()
    second = sweep(made, {"n": [1, 2]}, path=file, clock=clock)

    assert (["", "ValueError: unlucky"], ["", ""]) == tuple([p.failed for p in s.points] for s in (first, second))
    assert second == Sweep.from_json(file.read_text())


def test_a_place_that_fails_is_kept_with_its_reason():
    clock = ScriptedClock(cost_s=1e-7)
    result = sweep(maker(clock), {"n": [13, 14]}, clock=clock)

    assert ("ValueError: unlucky", None) == (result.points[0].failed, result.points[0].measurement)
    assert "n=13: ValueError: unlucky" in repr(result)
    assert result == Sweep.from_json(json.dumps(result.to_json()))


def test_progress_is_told_of_each_place():
    clock, told = ScriptedClock(cost_s=1e-7), []
    sweep(maker(clock), {"n": [1, 2]}, clock=clock, progress=lambda *a: told.append(a))

    assert [(0, 2, "n=1"), (1, 2, "n=2"), (2, 2, "")] == told


@pytest.mark.parametrize(
    ("grid", "what"), [({}, "grid"), ({"n": []}, "grid is empty"), ([{"n": object()}], "plain values")]
)
def test_a_grid_that_is_none_is_refused(grid, what):
    with pytest.raises(UsageError, match=what):
        sweep(lambda **_: None, [] if grid == {} else grid)
