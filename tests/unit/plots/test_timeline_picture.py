"""The picture of a timeline shows every row and kind, in any theme, in bounded size."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import matplotlib as mpl
import pytest

mpl.use("agg")

from matplotlib.figure import Figure

from edl_labs.palette import EXPONENT_BIT, FRACTION_BIT, ON_COLOUR, SIGN_BIT
from edl_labs.plots import (
    data_pipelines,
    memory_pictures,
    number_formats,
    style,
    timeline_picture,
    trace_pictures,
)
from edl_labs.plots.timeline_picture import KINDS, draw_timeline
from edl_labs.ui import timing_reports
from edl_labs.virtual import Span, Timeline, VirtualGPU, VirtualMachine


def drawn(timeline, **options):
    return draw_timeline(Figure().subplots(), timeline, **options)


def program():
    gpu = VirtualGPU(VirtualMachine(launch_overhead_s=1e-3, copy_overhead_s=1e-3, link_byte_per_s=1e3))
    source, there = gpu.host_empty(5, pin_memory=True), gpu.empty(5)
    gpu.copy(there, source, non_blocking=True)
    gpu.launch("relu", duration_s=20e-3, stream=gpu.Stream())
    gpu.host_work(2e-3)
    gpu.copy(source, there)
    return gpu


def test_the_rows_are_the_host_then_streams_then_copy_engines():
    axes = drawn(program().timeline, title="a program")

    assert ["host", "stream 1", "copy H2D", "copy D2H"] == [label.get_text() for label in axes.get_yticklabels()]
    assert "a program" == axes.get_title()
    assert (3.5, -0.5) == axes.get_ylim()


def test_every_kind_that_occurs_is_in_the_legend_and_no_other():
    axes = drawn(program().timeline)

    unseen = ("load", "backward", "comm")  # which no VirtualGPU records
    there = [label for kind, (_, _, label) in KINDS.items() if kind not in unseen]

    assert there == [text.get_text() for text in axes.get_legend().get_texts()]
    idle = drawn(Timeline((Span("stream 0", "kernel", "k", 0.0, 1.0),)))
    assert ["kernels"] == [text.get_text() for text in idle.get_legend().get_texts()]


def test_a_span_is_named_where_its_name_fits():
    axes = drawn(program().timeline)

    assert ["relu"] == [text.get_text() for text in axes.texts if text.get_text() == "relu"]
    narrow = Timeline((Span("stream 0", "kernel", "k" * 50, 0.0, 1.0), Span("stream 0", "kernel", "x", 99.0, 100.0)))
    assert [] == list(drawn(narrow).texts)


def test_of_spans_in_one_another_the_outer_one_is_named():
    spans = [Span("host", "work", "outer", 0.0, 1.0), Span("host", "work", "inner", 0.1, 0.9)]
    axes = drawn(Timeline((*spans, Span("host", "work", "next", 1.0, 2.0))))

    assert ["outer", "next"] == [text.get_text() for text in axes.texts]


def test_time_is_written_in_units_people_read():
    axes = drawn(program().timeline)

    assert "10 ms" == axes.xaxis.get_major_formatter()(10e-3, None)


def test_a_window_shows_what_lies_in_it():
    timeline = Timeline((Span("stream 0", "kernel", "a", 0.0, 1.0), Span("copy H2D", "copy", "b", 2.0, 3.0)))
    axes = drawn(timeline, start_s=1.5, end_s=4.0)

    assert ["copy H2D"] == [label.get_text() for label in axes.get_yticklabels()]
    assert (1.5, 4.0) == axes.get_xlim()


def test_an_empty_timeline_is_an_empty_picture():
    axes = drawn(Timeline(()))

    assert axes.get_legend() is None


def test_a_long_timeline_is_drawn_with_few_shapes():
    spans = tuple(Span("stream 0", "kernel", "k", i * 1e-3, i * 1e-3 + 4e-4) for i in range(50_000))
    axes = drawn(Timeline(spans))
    shapes = sum(len(collection.get_paths()) for collection in axes.collections)

    assert 0 < shapes < 2000


def test_joining_short_spans_keeps_long_gaps():
    spans = (
        *(Span("stream 0", "kernel", "k", i * 1e-6, i * 1e-6 + 5e-7) for i in range(1000)),
        Span("stream 0", "kernel", "k", 1.0, 2.0),
    )
    collections = drawn(Timeline(spans)).collections

    assert 2 == sum(len(bars.get_paths()) for bars in collections)


def test_thin_spans_have_the_width_of_a_pixel_inside_the_picture_and_lie_on_top():
    spans = (
        *(Span("copy D2H", "copy", "c", at, at + 1e-6) for at in (0.0, 0.5, 1.0 - 1e-6)),
        Span("host", "call", "launch", 0.2, 0.2 + 1e-6),
        Span("host", "wait", "wait", 0.2 + 1e-6, 0.9),
    )
    axes = drawn(Timeline(spans))
    wait, call, copies = sorted(axes.collections, key=lambda bars: (bars.get_zorder(), len(bars.get_paths())))
    edges = [(path.vertices[:, 0].min(), path.vertices[:, 0].max()) for path in copies.get_paths()]

    assert [1, 3] == [len(call.get_paths()), len(edges)]
    assert all(high - low > 1e-3 and 0 <= low and high <= 1 + 1e-9 for low, high in edges)
    assert wait.get_zorder() < call.get_zorder()


def luminance(colour):
    parts = [
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in mpl.colors.to_rgb(colour)
    ]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(first, second):
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("background", ["#ffffff", "#111111"], ids=["light", "dark"])
def test_text_and_colours_stand_out_in_both_themes(background):
    assert 4 < contrast(style.TEXT, background)
    assert all(3.8 < contrast(colour, background) for colour in style.COLOURS)


def test_names_can_be_read_on_every_colour():
    assert all(3.8 < contrast(style.ON_COLOUR, colour) for colour in style.COLOURS)


def test_what_shares_a_row_or_a_bar_has_another_hatch():
    """Whoever sees no difference between green and orange tells them by their strokes."""
    rows = [("call", "work", "load", "wait"), ("kernel", "backward", "copy", "comm")]
    groups = {f"row {row[0]}": [timeline_picture.KINDS[kind][1] for kind in row] for row in rows}
    groups["workers"] = [hatch for _, hatch, _ in data_pipelines.KINDS.values()]
    groups["fates"] = [hatch for _, hatch in number_formats.FATES.values()]
    groups["passes"] = [trace_pictures._PASSES[cat][1] for cat in ("forward", "backward")]
    groups["memory"] = list(memory_pictures._HATCHES.values())

    assert {} == {name: hatches for name, hatches in groups.items() if len(set(hatches)) < len(hatches)}


def test_text_has_the_contrast_of_small_print_on_white_and_on_black():
    """4.5 on both. On JupyterLab's dark page, #111111, no grey that also reads on white has more than 4.35."""
    assert 4.5 <= min(contrast(style.TEXT, "#ffffff"), contrast(style.TEXT, "#000000"))
    greys = [f"#{level:02x}{level:02x}{level:02x}" for level in range(256)]
    assert 4.4 > max(min(contrast(grey, "#ffffff"), contrast(grey, "#111111")) for grey in greys)


def test_text_on_buttons_has_it_too():
    assert all(4.5 <= contrast(ON_COLOUR, bit) for bit in (SIGN_BIT, EXPONENT_BIT, FRACTION_BIT))


def test_words_of_reports_have_the_pages_ink():
    """No colour that marks good or bad reads on both pages at 4.5, so that none is a word's."""
    source = Path(timing_reports.__file__).read_text()

    assert not re.findall(r"[\"; ]color:\{", source)


def test_no_two_colours_are_the_same():
    assert all(first != second for first, second in itertools.combinations(style.COLOURS, 2))


def test_a_dressed_picture_has_a_clear_background_and_grey_text():
    axes = drawn(program().timeline, title="t")

    assert (0.0, 0.0) == (axes.figure.patch.get_alpha(), axes.patch.get_alpha())
    assert {style.TEXT} == {axes.title.get_color(), *(label.get_color() for label in axes.get_xticklabels())}


def test_the_look_ends_with_its_context():
    before = mpl.rcParams["text.color"]
    with style.look():
        assert style.TEXT == mpl.rcParams["text.color"]

    assert before == mpl.rcParams["text.color"]


def test_new_subplots_have_the_look():
    import matplotlib.pyplot as plt

    figure, axes = style.subplots(1, 2)

    assert (0, 0, 0, 0) == figure.get_facecolor()
    assert 2 == len(axes)
    plt.close(figure)
