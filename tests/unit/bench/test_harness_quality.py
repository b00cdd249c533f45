"""The evidence script: its table follows from raw data, its helpers do what they say, and CUDA's row is ready."""

from __future__ import annotations

import copy
import json
from itertools import pairwise
from types import SimpleNamespace

import harness_payloads
import harness_quality
import harness_rivals
import harness_rows
import pytest
import torch

BIAS = {"bias": -0.03, "p95": 0.05, "n": 5}
FOUND = {
    "bias": {
        "payloads": {
            name: {"torch timeit": BIAS, "ours": {"bias": 0.001, "doubt": 0.002, "p95": 0.002, "n": 5}}
            for name in [*harness_quality.LONG, *harness_quality.SHORT]
        },
        "wall": {"torch timeit": {"median": 1.0, "max": 6.5}, "ours": {"median": 1.0, "max": 1.02}},
    },
    "call_cost": {"naive loop": 51.0, "ours": 0.4},
    "identical_quiet": {"relu": {"p95": {"timeit": 0.02, "ours": 0.002}, "alarms": {}, "wall_max": 1.01, "n": 25}},
    "identical_noisy": {"relu": {"p95": {"timeit": 0.4, "ours": 0.003}, "alarms": {}, "wall_max": 1.01, "n": 25}},
    "false_alarms": {"interval": 0.05, "band": 0.0, "n": 200},
    "rank_tests": {"Mann-Whitney": 0.49, "Welch": 0.5, "n": 100},
    "slowdown": {"found": 1.0, "n": 100, "half_width": 0.002},
    "power_under_load": {"found": {"+1 %": 0.4, "+3 %": 0.9, "+10 %": 1.0}, "wrong": 0, "n": 50},
    "known_ratios": {"coverage": 0.95, "n": 200, "identical": 30, "alarms": {}},
    "one_percent": {"relu": {"median_s": 0.05, "p95_s": 0.06, "half_width": 0.008}},
    "replicates": {"ours": 80, "torch blocked_autorange": 1},
    "scripted": {"drift": 0.95, "bursts": 0.951, "bimodal": 0.949, "heavy": 0.95, "n": 1000},
    "mistakes": {"found": 1.0, "n": 39, "missed": [], "alarms": [], "clean": 35},
    "pyperf": {"bias": 0.01, "wall_s": 20.0},
    "cuda": {"matmul": {"ours": 0.004, "triton": -0.03}, "relu": {"ours": -0.006, "triton": 0.02}},
}


def test_all_figures_are_met_where_the_data_meets_them():
    table = harness_quality.figures(FOUND)

    assert [] == [figure.name for figure in table if not figure.met]
    assert "MISSED" not in harness_quality.text_table(table)


@pytest.mark.parametrize(
    ("path", "value", "name"),
    [
        (("bias", "payloads", harness_quality.LONG[0], "ours", "bias"), -0.006, "bias against known truth"),
        (("bias", "payloads", harness_quality.SHORT[0], "ours", "bias"), 0.03, "bias at 1 µs"),
        (("identical_quiet", "relu", "p95", "ours"), 0.0041, "A/A ratio error, p95, quiet"),
        (("identical_noisy", "relu", "p95", "ours"), 0.005, "A/A ratio error, p95, noisy"),
        (("false_alarms", "interval"), 0.09, "false alarms, only the interval"),
        (("false_alarms", "band"), 0.005, "false alarms with the band"),
        (("slowdown", "found"), 0.94, "1 % slowdowns found"),
        (("power_under_load", "found", "+10 %"), 0.94, "slowdowns found with"),
        (("power_under_load", "wrong"), 1, "slowdowns found with"),
        (("scripted", "heavy"), 0.93, "coverage, scripted"),
        (("known_ratios", "coverage"), 0.9, "coverage, real machine"),
        (("one_percent", "relu", "median_s"), 0.11, "time to"),
        (("call_cost", "ours"), -6.0, "cost per call"),
        (("identical_noisy", "relu", "wall_max"), 1.2, "wall time / budget"),
        (("replicates", "ours"), 19, "replicates"),
        (("mistakes", "found"), 0.9, "mistakes found"),
        (("mistakes", "alarms"), ["3"], "false alarms on 35 clean"),
        (("cuda", "relu", "ours"), -0.011, "bias on CUDA"),
        (("cuda", "matmul", "ours"), 0.011, "bias on CUDA"),
    ],
)
def test_a_figure_that_misses_its_target_is_said_to(path, value, name):
    found = copy.deepcopy(FOUND)
    place = found
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    missed = [figure.name for figure in harness_quality.figures(found) if not figure.met]

    assert 1 == len(missed)
    assert missed[0].startswith(name)


def test_the_script_writes_its_data_and_exits_by_the_table(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(harness_quality, "take", lambda *, full, say: FOUND)
    file = tmp_path / "found.json"

    assert 0 == harness_quality.main(["--quick", "--json", str(file)])
    assert FOUND == json.loads(file.read_text())["found"]
    assert json.loads(file.read_text())["stamp"]["cpu_model"]
    assert "false alarms with the band" in capsys.readouterr().out


def test_the_row_of_cuda_has_our_bias_on_each_payload_and_the_range_of_the_rivals():
    row = harness_quality.figures(FOUND)[-1]

    assert ("bias on CUDA, ≥ 20 µs", "-3.00% … +2.00%", "+0.40%, -0.60%") == (row.name, row.rivals, row.ours)


def test_a_row_that_is_skipped_says_why_and_is_not_missed(monkeypatch, capsys):
    found = FOUND | {"cuda": {"skipped": "no CUDA device here"}}
    monkeypatch.setattr(harness_quality, "take", lambda *, full, say: found)
    code = harness_quality.main(["--quick"])
    said = capsys.readouterr().out

    assert 0 == code
    assert "skipped: cuda: no CUDA device here" in said
    assert "bias on CUDA" not in said


def test_neighbours_compute_and_are_gone_afterwards():
    before = _children()
    with harness_payloads.neighbours(2) as _:
        started = _children() - before
    after = _children()

    assert 2 <= len(started)
    assert not started & after


def _children():
    psutil = pytest.importorskip("psutil", reason="psutil lists the neighbours")
    return {child.pid for child in psutil.Process().children() if child.is_running()}


def test_the_costly_clock_costs_what_it_says():
    clock = harness_payloads.CostlyClock()
    steps = [clock.now_s() for _ in range(50)]

    assert min(b - a for a, b in pairwise(steps)) >= 9.9e-6


@pytest.mark.parametrize("row", [harness_rows.false_alarms, harness_rows.known_ratios])
def test_half_of_the_runs_may_stop_early_as_by_default(monkeypatch, row):
    asked = []

    def compare(sides, *, budget_s, precision, clock=None):
        asked.append(precision)
        stopped = "the budget was used" if precision == 0.0 else "precise enough"
        return SimpleNamespace(low=0.9, high=1.3, verdict="same", stopped=stopped)

    monkeypatch.setattr(harness_rows, "compare", compare)
    monkeypatch.setattr(harness_rows, "units_of_work", lambda count, clock: count)
    found = row(runs=6, budget_s=0.1)

    assert [0.0, None, 0.0, None, 0.0, None] == asked
    assert 3 == found["early"]


def test_false_alarms_run_with_compare_itself():
    found = harness_rows.false_alarms(runs=2, budget_s=0.02)

    assert {"interval", "band", "early", "n"} == found.keys()


@pytest.mark.parametrize("name", harness_rivals.HARNESSES)
def test_each_harness_gives_seconds_per_call(name):
    took = harness_rivals.HARNESSES[name](lambda: sum(range(2000)), 0.02)

    assert 1e-7 < took < 1e-2


@pytest.mark.skipif(torch.cuda.is_available(), reason="this is about machines without CUDA")
def test_without_cuda_its_row_says_why_it_is_missing():
    assert {"skipped": "no CUDA device here"} == harness_rows.cuda_bias(rounds=1, budget_s=0.1)
