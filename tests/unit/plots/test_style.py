"""The shared look leaves matplotlib as it found it, but for what a backend turns on when it is loaded."""

from __future__ import annotations

import datetime
from pathlib import Path

import matplotlib as mpl
import pytest

from edl_labs.plots import style


@pytest.fixture(autouse=True)
def quiet_figures():
    mpl.use("Agg")
    yield
    mpl.interactive(False)


def test_the_look_ends_with_its_context():
    before = mpl.rcParams["text.color"]
    with style.look():
        inside = mpl.rcParams["text.color"]

    assert (style.TEXT, before) == (inside, mpl.rcParams["text.color"])


def test_interactive_mode_that_began_inside_goes_on_so_that_later_pictures_appear():
    mpl.interactive(False)
    with style.look():
        mpl.interactive(True)

    assert mpl.is_interactive()


def test_a_figure_is_told_in_words():
    figure, axes = style.subplots()
    axes.plot([1, 2, 3], [8.0, 4.0, 2.0], label="fp16")
    axes.set(xlabel="step", ylabel="loss", yscale="log", title="Training")
    axes.legend()

    assert "Plot “Training”. x: step, y: loss (logarithmic). series: fp16 from 8 to 2." == style.alt_text(figure)
    assert "An empty figure." == style.alt_text(style.subplots()[0])


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (["low", "high"], "a from low to high"),
        ([datetime.date(2026, 1, 2), datetime.date(2026, 3, 4)], "a from 2026-01-02 to 2026-03-04"),
        ([1.0], "series: a."),
        ([float("nan"), 2], "a from nan to 2"),
    ],
)
def test_what_is_no_number_is_told_as_it_is(values, said):
    figure, axes = style.subplots()
    axes.plot(range(len(values)), values, label="a")

    assert said in style.alt_text(figure)


def test_in_a_notebook_a_picture_speaks_and_keeps_the_pages_background(tmp_path: Path):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    lines = ("from edl_labs.plots import style", "figure, axes = style.subplots()", "axes.plot([1, 2])")
    cell = nbformat.v4.new_code_cell("\n".join((*lines, 'title = axes.set_title("Two points")')))
    notebook = nbformat.v4.new_notebook(cells=[cell])
    nbclient.NotebookClient(notebook, kernel_name="python3").execute(cwd=str(tmp_path))
    shown = [output.metadata for output in cell.outputs if "image/png" in output.get("data", {})]

    assert [{"image/png": {"alt": "Plot “Two points”."}}] == shown


def test_what_is_added_after_the_look_reads_on_a_dark_page_too():
    figure, axes = style.subplots()
    axes.plot([1, 2], label="a line")
    legend = axes.legend()
    style.make_readable(figure)

    assert [style.TEXT] == [text.get_color() for text in legend.get_texts()]
    assert 0 == legend.get_frame().get_facecolor()[3]
