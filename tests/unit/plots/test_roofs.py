"""The roofline picture shows every ceiling, every ridge and every point, and no point above its roof."""

from __future__ import annotations

import math

import pytest

from edl_labs.errors import UsageError
from edl_labs.plots import style
from edl_labs.plots.roofs import roofline
from edl_labs.roofline import AboveRoof, Ceiling, Count, Machine, MemoryLevel, Point, bound, work
from edl_labs.roofline._count import OperatorCount

MACHINE = Machine(
    "bench",
    (
        MemoryLevel("L2", 1e6, {"read": Ceiling(200e9)}),
        MemoryLevel("DRAM", math.inf, {"read": Ceiling(22e9), "copy": Ceiling(20e9)}),
    ),
    {"fp32": Ceiling(1e12), "bf16": Ceiling(4e12), "fp16": Ceiling(4e12)},
    origin="measured",
)


@pytest.fixture(autouse=True)
def off_screen():
    import matplotlib

    matplotlib.use("Agg")


def drawn(points=(), **options):
    figure, axes = style.subplots()
    roofline(axes, MACHINE, points, **options)
    figure.draw_without_rendering()
    return axes


def texts(axes):
    return [text.get_text() for text in axes.texts]


def point(name, done, times, **where):
    light = bound(MACHINE, done).light_s
    return Point(name, done, light * times, light * times * 0.9, light * times * 1.2, **where)


POINTS = [
    point("gemm", work.gemm(512, 512, 512), 1.5, module="mlp"),
    point("relu", work.elementwise(10**7), 4.0, module="mlp"),
    point("softmax", work.softmax(4096, 4096), 2.0, module="attention"),
]


def test_every_ceiling_and_ridge_is_drawn_with_its_value():
    found = texts(drawn())

    assert any("DRAM read, 22 GB/s" in text for text in found)
    assert any("L2 read, 200 GB/s" in text for text in found)
    assert any("bf16, fp16 4 TFLOP/s" in text for text in found)
    assert {"ridge 45.5", "ridge 182"} <= set(found)


def test_a_slope_meets_its_roof_at_the_ridge():
    lines = [line for line in drawn(dtypes=["fp32"]).lines if len(line.get_xdata()) == 2]
    tops = {max(line.get_ydata()) for line in lines}

    assert {1e12} == tops
    assert any(math.isclose(line.get_xdata()[1], 1e12 / 22e9) for line in lines)


@pytest.mark.slow
def test_points_stand_at_their_intensity_and_rate_with_sizes_by_time_lost():
    axes = drawn(POINTS)
    marks = {mark.get_gid(): mark for mark in axes.collections if mark.get_gid()}

    assert {"point-0", "point-1", "point-2"} == set(marks)
    assert marks["point-0"].get_sizes()[0] > marks["point-1"].get_sizes()[0] > marks["point-2"].get_sizes()[0]
    for mark in marks.values():
        x, y = mark.get_offsets()[0]
        assert y <= min(1e12, x * 22e9) * 1.0001


def test_bars_are_the_interval_of_the_time():
    axes = drawn([POINTS[0]])
    bars = [line for line in axes.lines if line.get_marker() == "_"]
    ends = sorted(float(bar.get_ydata()[0]) for bar in bars)

    assert [
        POINTS[0].work.total_flops / POINTS[0].high_s,
        POINTS[0].work.total_flops / POINTS[0].low_s,
    ] == pytest.approx(ends)


def test_a_time_without_an_interval_is_drawn_without_bars():
    done = work.gemm(512, 512, 512)
    time_s = bound(MACHINE, done).light_s * 2
    axes = drawn([Point("gemm", done, time_s, 0.0, math.inf)])
    ends = [float(line.get_ydata()[0]) for line in axes.lines if line.get_marker() == "_"]

    assert [done.total_flops / time_s] * 2 == pytest.approx(ends)


def test_names_modules_and_where_you_are_are_in_words():
    axes = drawn(POINTS)

    assert {"mlp.gemm", "mlp.relu", "attention.softmax"} <= set(texts(axes))
    assert any(text.startswith("you are here: ") for text in texts(axes))
    assert {"mlp", "attention"} == {text.get_text() for text in axes.get_legend().get_texts()}


def test_what_computes_nothing_is_told_in_words_alone():
    axes = drawn([point("lookup", work.embedding(1000, 64), 2.0)])

    assert not [mark for mark in axes.collections if mark.get_gid()]
    assert any("lookup: 50 %" in text for text in texts(axes))


def test_a_point_above_its_roof_is_refused():
    with pytest.raises(AboveRoof):
        drawn([point("gemm", work.gemm(512, 512, 512), 0.5)])


def test_a_dtype_without_a_ceiling_is_refused():
    with pytest.raises(UsageError):
        drawn(dtypes=["fp64"])


def test_the_look_fits_light_and_dark():
    axes = drawn(POINTS)

    assert 0.0 == axes.figure.patch.get_alpha() == axes.patch.get_alpha()
    assert {style.TEXT, style.BLUE, style.ORANGE} >= {text.get_color() for text in axes.texts}


def test_a_dtype_that_only_other_arithmetic_has_draws_the_roofs_of_products():
    import dataclasses

    machine = dataclasses.replace(MACHINE, vector={"fp64": Ceiling(1e11)})
    done = work.elementwise(10**7, dtype="fp64")
    axes = roofline(style.subplots()[1], machine, [Point("add", done, 2 * bound(machine, done).light_s)])

    assert any("fp32 1 TFLOP/s" in text for text in texts(axes))


def test_a_count_draws_its_operators_by_bytes_and_sums_up_the_rest():
    rows = [OperatorCount(f"op{i}", "", "forward", "fp32", 1, 0, 10.0 * i, 1000 * i) for i in range(12)]
    axes = Count(tuple(rows), 5000, ()).plot()
    labels = [label.get_text() for label in axes.get_yticklabels()]

    assert ("op11, fp32", "4 others") == (labels[0], labels[-1])
    assert [11000, 10000, 9000, 8000, 7000, 6000, 5000, 4000, 6000] == [bar.get_width() for bar in axes.patches]
    assert "660 FLOP, 66" in axes.get_title()
