"""A student who runs all cells before writing anything is stopped by none of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

import edl_labs.roofline
from edl_labs.roofline import Machine

SMALL = (("width = 512", "width = 32"), ("measure_s = 0.4", "measure_s = 0.02"))
EXERCISES = ("intensity", "ridge_and_bound", "minibatch_crossover", "fused_or_not", "count_a_model", "amdahl")
EXERCISES += ("diagnose", "network_roofline", "scaling_plan")
# So fast that nothing on this machine lies above its roofs.
LIGHT = Machine.simple("given", peak_flop_per_s={"fp32": 1e15}, bandwidth_byte_per_s=1e14)
(MEMORY,) = LIGHT.levels
LIGHT = replace(LIGHT, levels=(replace(MEMORY, bandwidth={**MEMORY.bandwidth, "copy": MEMORY.ceiling()}),))


@pytest.fixture(autouse=True)
def _light(monkeypatch):
    monkeypatch.setattr(edl_labs.roofline, "ceilings", lambda **options: LIGHT, raising=False)


def test_every_cell_of_the_stub_notebook_runs(run_all, capsys):
    run_all(solved=False, small=SMALL)
    said = capsys.readouterr().out

    for name in EXERCISES:
        assert f"This cell shows something once {name} is written." in said


def test_no_cell_of_the_solution_notebook_waits_for_anything(run_all, capsys):
    run_all(solved=True, small=SMALL)
    said = capsys.readouterr().out

    assert "This cell" not in said
    assert "two kernels 42.7 FLOP/B, one kernel 64.0 FLOP/B" in said
    assert "free contraction: 2.56 times faster" in said
    assert "5 nodes: 267 ms, 213 ms, 187 ms, 167 ms, 160 ms with 1, 2, 4, 16, 256 buckets" in said
    assert "32000 ('strong', 7)" in said
    assert "100000 ('weak', 12)" in said


def test_the_formula_and_the_counter_differ_by_the_product_that_fused_attention_repeats(run_all, capsys):
    run_all(solved=True, small=SMALL)

    assert "the difference is 1.00 products q @ k.T" in capsys.readouterr().out
