"""Pictures of tiles: what is drawn is what a program touches, and bars say how often a tensor is moved."""

from __future__ import annotations

import matplotlib
import pytest

from edl_labs.errors import UsageError
from edl_labs.plots import style
from edl_labs.plots.tile_pictures import draw_bytes, draw_tile

matplotlib.use("Agg")


def test_the_last_program_of_a_ragged_grid_touches_what_is_left():
    axes = draw_tile(style.subplots()[1], m=100, n=70, k=10, bm=64, bn=64, program=3)
    touched = [(p.get_width(), p.get_height()) for p in axes.patches if p.get_fill()]

    assert [(10, 36), (6, 10), (6, 36)] == touched
    assert "program 3 reads 36 rows, 6 columns" == axes.get_title()


def test_bars_say_how_many_times_the_least_is_moved():
    axes = draw_bytes(style.subplots()[1], {"a": 4000.0, "c": 100.0}, {"a": 1000.0, "c": 100.0}, title="bytes")

    assert [" 4 ×", " 1 ×"] == [text.get_text() for text in axes.texts]
    assert ["a", "c"] == [label.get_text() for label in axes.get_yticklabels()]


def test_a_tensor_without_its_least_bytes_is_refused():
    with pytest.raises(UsageError, match="the bytes moved are given for a, but the minimum is given for b"):
        draw_bytes(style.subplots()[1], {"a": 1.0}, {"b": 1.0})
