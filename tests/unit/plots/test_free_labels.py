"""Labels of rooflines: on machines of any kind none lies on another, and none leaves its axes."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from matplotlib.pyplot import close

from edl_labs.plots import style
from edl_labs.plots.free_labels import Label, Spot, box, corners_of, inside, overlap, write_labels
from edl_labs.plots.roofs import roofline
from edl_labs.roofline import Ceiling, Machine, MemoryLevel, Point, bound, work


@pytest.fixture(autouse=True)
def off_screen():
    import matplotlib

    matplotlib.use("Agg")
    yield
    matplotlib.pyplot.close("all")


def drawn_machine(rng: random.Random) -> Machine:
    """One to four memory levels and one to three dtypes, at times nearly as fast as one another."""
    rate, levels = 10 ** rng.uniform(9.5, 12.5), []
    for name in ("DRAM", "L3", "L2", "L1")[: rng.randint(1, 4)]:
        capacity_bytes = math.inf if name == "DRAM" else 1e9 * 0.03 ** (len(levels) + 1)
        levels.insert(0, MemoryLevel(name, capacity_bytes, {"read": Ceiling(rate), "copy": Ceiling(0.8 * rate)}))
        rate *= rng.choice((1.05, 1.5, 3.0, 8.0))
    peak, peaks = 10 ** rng.uniform(11, 14), {}
    for dtype in ("fp64", "fp32", "bf16")[: rng.randint(1, 3)]:
        peaks[dtype] = Ceiling(peak)
        peak *= rng.choice((1.05, 2.0, 16.0))
    return Machine("drawn", tuple(levels), peaks, origin="drawn")


def drawn_points(rng: random.Random, machine: Machine) -> list[Point]:
    points = []
    for number in range(rng.randint(0, 12)):
        side, dtype = 2 ** rng.randint(5, 12), rng.choice(list(machine.matmul))
        done = rng.choice((work.gemm(side, side, side, dtype=dtype), work.elementwise(side * side, dtype=dtype)))
        time_s = bound(machine, done).light_s * rng.choice((1.1, 2.0, 5.0))
        points.append(Point(f"operator {number}", done, time_s, module=rng.choice(("", "block", "head"))))
    return points


def pairs_and_strays(axes) -> tuple[list, list]:
    written = [text for text in axes.texts if not text.get_text().startswith(("you are here", "nothing was"))]
    areas = {text.get_text(): corners_of(text, axes) for text in written}
    pairs = [two for two in itertools.combinations(areas, 2) if overlap(areas[two[0]], areas[two[1]])]
    return pairs, [name for name, area in areas.items() if not inside(area, axes.bbox)]


@pytest.mark.parametrize("seeds", [range(1), pytest.param(range(1, 150), marks=pytest.mark.slow)], ids=["few", "many"])
def test_no_label_of_a_roofline_lies_on_another_or_leaves_the_axes(seeds):
    found = {}
    for seed in seeds:
        rng = random.Random(seed)
        figure, axes = style.subplots(figsize=(9, rng.choice((4.6, 5.4))))
        machine = drawn_machine(rng)
        points = drawn_points(rng, machine)
        roofline(axes, machine, points, dtypes=None if points else list(machine.matmul))
        figure.canvas.draw()  # the layout of the page, which must not move them again
        found[seed] = pairs_and_strays(axes)
        close(figure)

    assert {} == {seed: both for seed, both in found.items() if both != ([], [])}


def test_labels_of_one_place_are_moved_apart_and_what_has_no_room_is_left_out():
    figure, axes = style.subplots(figsize=(4, 3))
    axes.set(xlim=(0, 1), ylim=(0, 1))
    figure.draw_without_rendering()
    spots = [Spot(0.5, 0.5), Spot(0.5, 0.2)]
    labels = [Label("here", spots, style.TEXT) for _ in range(2)]
    written = write_labels(axes, [*labels, Label("nowhere", spots, style.TEXT, must_be_seen=False)])

    assert [(0.5, 0.5), (0.5, 0.2)] == [text.xy for text in written]
    assert not overlap(*(corners_of(text, axes) for text in written))


def test_turned_rectangles_overlap_where_their_upright_frames_do_and_they_do():
    square, far = box(0, 0, 2, 2), box(3, 0, 5, 2)
    diamond = ((2.6, 1.0), (3.6, 2.0), (2.6, 3.0), (1.6, 2.0))
    beside = ((2.9, 1.9), (3.9, 2.9), (2.9, 3.9), (1.9, 2.9))

    assert overlap(square, diamond)
    assert not overlap(square, far)
    assert not overlap(square, beside), "only its upright frame reaches into the square"
    assert not overlap(square, box(2, 0, 3, 2)), "they touch"
