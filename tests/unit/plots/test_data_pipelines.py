"""The pictures of data pipelines take values and return the axes they drew on."""

from __future__ import annotations

from typing import Any

import pytest

from edl_labs.pipeline import DecoderRanks, Ladder, Rung, frontier
from edl_labs.pipeline._rank_decoders import DecoderRow
from edl_labs.plots import data_pipelines as pictures
from edl_labs.virtual import HDD, VirtualWorkers


@pytest.fixture
def axes():
    import matplotlib

    matplotlib.use("Agg")
    from edl_labs.plots import style

    figure, axes = style.subplots(figsize=(9, 4))
    yield axes
    figure.canvas.draw()
    from matplotlib import pyplot

    pyplot.close(figure)


def ranks() -> DecoderRanks:
    seen = (("x", 1500.0, 1900.0, 1, 2), ("y", 1400.0, 2300.0, 2, 1), ("z", 1395.0, 1880.0, 3, 3))
    rows = [
        DecoderRow(name, "1", alone, alone - 9, alone + 9, inside, inside - 9, inside + 9, a, b)
        for name, alone, inside, a, b in seen
    ]
    return DecoderRanks(tuple(rows), 2, 8, {})


def test_workers_disks_and_device_have_a_row_each(axes: Any) -> None:
    vw = VirtualWorkers(cores=2, disks=(HDD,))
    file = vw.file(10**6)
    for _ in vw.loader([[("read", file, 0, 5000), ("cpu", "decode", 4e-3)]] * 6, workers=2):
        vw.step(2e-3)
    pictures.draw_workers(axes, vw.timeline, title="two workers")

    assert ["main", "device", "worker 0", "worker 1", "hdd"] == [label.get_text() for label in axes.get_yticklabels()]
    assert {"works on a core", "waits", "disk reads", "step"} == {t.get_text() for t in axes.get_legend().get_texts()}


def test_the_ladder_shows_each_rung(axes: Any) -> None:
    rungs = (Rung("read", 1e-5, 9e-6, 1.2e-5, 1e-5, "worker"), Rung("step", 2e-3, 2e-3, 2.1e-3, 2.1e-3, "main"))

    assert axes is pictures.draw_ladder(axes, Ladder(rungs, 4, "warm"))
    assert ["read", "step"] == [label.get_text() for label in axes.get_yticklabels()]


def test_a_prediction_is_drawn_beside_what_was_measured(axes: Any) -> None:
    bounds = {"workers": {1: 100.0, 2: 200.0, 4: 400.0}, "cores": {1: 250.0, 2: 250.0, 4: 250.0}}
    pictures.draw_prediction(axes, {1: 100.0, 2: 200.0, 4: 250.0}, {1: 95.0, 4: 240.0}, bounds=bounds)

    assert ["workers allows", "cores allows", "predicted", "measured"] == [
        text.get_text() for text in axes.get_legend().get_texts()
    ]


def test_decoders_that_change_places_are_drawn_with_a_full_line(axes: Any) -> None:
    pictures.draw_decoders(axes, ranks())

    assert ["-", "-", ":"] == [line.get_linestyle() for line in axes.get_lines()]
    assert (("x", "y"),) == ranks().surely_moved


def test_the_frontier_has_a_line_for_each_method(axes: Any) -> None:
    found = frontier([n % 90 + 5 for n in range(600)], max_tokens=3000, capacity=256, windows=(1, 4, 99))
    pictures.draw_frontier(axes, found)

    assert ["buckets", "budget", "packing"] == [text.get_text() for text in axes.get_legend().get_texts()]


def test_the_story_shows_predictions_where_there_are_some(axes: Any) -> None:
    pictures.draw_story(axes, [("naive", 100.0, None), ("two workers", 180.0, 200.0)])

    assert ["naive", "two workers"] == [label.get_text() for label in axes.get_yticklabels()]
