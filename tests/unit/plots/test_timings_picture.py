"""Pictures of benchmarks: what they show can be read from the axes."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import matplotlib as mpl
import pytest

from edl_labs.bench import compare, measure, sweep
from edl_labs.plots import style, timings

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))
from scripted_clock import Noise, ScriptedClock, payload

mpl.use("agg")


@pytest.fixture
def axes():
    import matplotlib.pyplot as plt

    figure, axes = style.subplots()
    yield axes
    plt.close(figure)


def measured(cost_s=1e-4, name="f"):
    clock = ScriptedClock(cost_s=1e-7)
    return measure(payload(clock, cost_s, noise=Noise("bursts", 1)), clock=clock, budget_s=0.05, name=name)


def compared(truth=1.02):
    clock, noise = ScriptedClock(cost_s=1e-7), Noise("drift", 1)
    sides = {name: payload(clock, cost, noise=noise) for name, cost in (("a", 2e-5), ("b", 2e-5 * truth))}
    return compare(sides, clock=clock, seed=1, budget_s=0.1)


def test_a_strip_shows_every_block(axes):
    m = measured()

    assert axes is timings.strip(axes, m)
    assert m.times_s == tuple(axes.lines[0].get_xdata())
    assert ["f\n"] == [label.get_text()[:2] for label in axes.get_yticklabels()]


def test_several_measurements_get_a_row_each(axes):
    timings.strip(axes, [measured(name="one"), measured(name="two")])

    assert ["one", "two"] == [label.get_text().split("\n")[0] for label in axes.get_yticklabels()]


def test_a_forest_shows_interval_band_and_verdict_in_words(axes):
    c = compared()
    timings.forest(axes, c)

    assert any(tuple(line.get_xdata()) == (c.low, c.high) for line in axes.lines)
    assert "slower" in axes.texts[0].get_text()
    assert axes.get_xlim()[0] < 1 / 1.005 < 1.005 < axes.get_xlim()[1]


def test_a_ratio_without_an_interval_is_shown_as_a_point(axes):
    c = compared()
    endless = dataclasses.replace(c, rows=(dataclasses.replace(c.rows[0], low=0.0, high=float("inf")),))
    timings.forest(axes, endless)

    assert "no interval" in axes.texts[0].get_text()


def test_a_sweep_has_a_line_for_each_setting_of_the_other_parameters(axes):
    clock = ScriptedClock(cost_s=1e-7)

    def made(n, kind):
        if n == 30:
            raise ValueError("too large")
        return payload(clock, n * (1e-6 if kind == "fast" else 2e-6))

    result = sweep(made, {"kind": ["fast", "slow"], "n": [10, 20, 30]}, clock=clock, budget_s=0.05)
    timings.sweep(axes, result, x="n")

    assert ["kind=fast", "kind=slow"] == [text.get_text() for text in axes.get_legend().get_texts()]
    assert [10, 20] == list(axes.lines[0].get_xdata())


def test_results_draw_themselves_on_the_axes_that_are_given_and_on_new_ones(axes):
    import matplotlib.pyplot as plt

    clock = ScriptedClock(cost_s=1e-7)
    results = [
        (measured(), {}),
        (compared(), {}),
        (sweep(lambda n: payload(clock, 1e-6 * n), {"n": [8, 16]}, clock=clock, budget_s=0.02), {"x": "n"}),
    ]

    assert [axes] * 3 == [result.plot(axes, **options) for result, options in results]
    fresh = [result.plot(**options) for result, options in results]
    assert axes not in fresh
    for one in fresh:
        plt.close(one.figure)


def test_a_result_keeps_its_html_and_its_frame():
    pandas = pytest.importorskip("pandas")
    m = measured()

    assert "How it was measured" in m._repr_html_()
    assert isinstance(m.to_frame(), pandas.DataFrame)
