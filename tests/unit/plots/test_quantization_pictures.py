"""The pictures of tiles and waves take values and return the axes they drew on."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path

import pytest

from edl_labs.plots import quantization, style


def _code_of(lab: str) -> list[str]:
    notebook = Path(__file__).parents[3] / "labs" / lab / f"{lab}.ipynb"
    cells = json.loads(notebook.read_text())["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


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


def test_lab01_draws_each_grid_with_ticks_of_its_own():
    """Axes that share a side share its ticks too: beside 257 rows, 256 would be told as 257."""
    cell = next(cell for cell in _code_of("lab01_gpu_basics") if "tile_grid(right" in cell)
    names: dict = {"style": style, "reveal_prediction": lambda *_: nullcontext(lambda **values: None)}
    exec(cell, names)

    assert [[0, 256], [0, 257]] == [list(names[side].get_yticks()) for side in ("left", "right")]


def test_the_sawtooth_draws_the_values_it_is_given(axes):
    returned = quantization.sawtooth(axes, [1, 2, 3], [0.5, 1.0, 0.75], xlabel="tiles", title="waves")

    assert axes is returned
    assert [0.5, 1.0, 0.75] == list(axes.lines[0].get_ydata())
    assert ("tiles", "efficiency", "waves") == (axes.get_xlabel(), axes.get_ylabel(), axes.get_title())


def test_marks_are_written_with_their_values_and_strangers_are_left_out(axes):
    quantization.sawtooth(axes, [1, 2, 3], [0.5, 1.0, 0.505], xlabel="", title="", marks=(2, 3, 9))

    assert ["2: 100 %", "3: 50.5 %"] == [text.get_text() for text in axes.texts]
