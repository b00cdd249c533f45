"""The pictures of tiles and waves take values and return the axes they drew on."""

from __future__ import annotations

import pytest

from edl_labs.plots import quantization


@pytest.fixture
def axes():
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots()
    yield axes
    pyplot.close(figure)


def test_a_matrix_that_fits_shows_four_tiles_and_no_waste(axes):
    quantization.tile_grid(axes, 256, 256, tile_m=128, tile_n=128)

    assert "256 × 256: 4 tiles, 0 % wasted" == axes.get_title()


def test_one_row_more_shows_the_decks_six_tiles(axes):
    quantization.tile_grid(axes, 257, 256, tile_m=128, tile_n=128)

    assert "257 × 256: 6 tiles, 33.1 % wasted" == axes.get_title()
    assert (384, 0) == axes.get_ylim()


def test_the_sawtooth_draws_the_values_it_is_given(axes):
    returned = quantization.sawtooth(axes, [1, 2, 3], [0.5, 1.0, 0.75], xlabel="tiles", title="waves")

    assert axes is returned
    assert [0.5, 1.0, 0.75] == list(axes.lines[0].get_ydata())
    assert ("tiles", "efficiency", "waves") == (axes.get_xlabel(), axes.get_ylabel(), axes.get_title())


def test_marks_are_written_with_their_values_and_strangers_are_left_out(axes):
    quantization.sawtooth(axes, [1, 2, 3], [0.5, 1.0, 0.505], xlabel="", title="", marks=(2, 3, 9))

    assert ["2: 100 %", "3: 50.5 %"] == [text.get_text() for text in axes.texts]
