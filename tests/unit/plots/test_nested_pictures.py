"""The picture of nested events: one row a depth, two colours, names where they fit."""

from __future__ import annotations

import matplotlib as mpl
import pytest

from edl_labs.plots import style
from edl_labs.plots.trace_pictures import draw_nested

mpl.use("Agg")


@pytest.fixture
def axes():
    from matplotlib import pyplot

    figure, axes = style.subplots()
    yield axes
    pyplot.close(figure)


def event(name, ts, dur, cat="forward"):
    return {"name": name, "cat": cat, "ph": "X", "ts": ts, "dur": dur, "pid": 0, "tid": 0}


def test_a_call_lies_below_the_one_around_it(axes):
    draw_nested(axes, [event("a", 0, 40), event("model", 0, 100), event("b", 40, 60)])

    assert [0, 1, 1] == sorted(round(bar.get_y() + bar.get_height() / 2) for bar in axes.patches)


def test_passes_have_colours_of_their_own(axes):
    draw_nested(axes, [event("a", 0, 50), event("a", 50, 50, "backward")])

    assert 2 == len({bar.get_facecolor() for bar in axes.patches})
    assert ["forward", "backward"] == [text.get_text() for text in axes.get_legend().get_texts()]


def test_names_that_do_not_fit_are_left_out(axes):
    draw_nested(axes, [event("model", 0, 1000), event("a.very.long.name", 0, 3)])

    assert ["model"] == [text.get_text() for text in axes.texts]


def test_no_events_draw_an_empty_picture(axes):
    assert axes is draw_nested(axes, [])


def test_events_of_no_time_are_drawn(axes):
    assert 1 == len(draw_nested(axes, [event("a", 5, 0)]).patches)
