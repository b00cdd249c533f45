"""Pictures of memory name the peak and its owner, show holes, and speak."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import pytest

from edl_labs.numerics import MemoryMoment, MemoryPlan
from edl_labs.numerics.step_memory import CATEGORIES
from edl_labs.plots import memory_pictures, style
from edl_labs.virtual.memory import Tape, VirtualAllocator, segmented

mpl.use("Agg")

MIB = 1 << 20


def moment(phase: str, **held: int) -> MemoryMoment:
    return MemoryMoment("mm", phase, {name: held.get(name, 0) * MIB for name in CATEGORIES})


def plan() -> MemoryPlan:
    steps = [
        *(moment("forward", parameters=40, activations=30 * i, temporaries=i % 3) for i in range(10)),
        *(moment("backward", parameters=40, activations=30 * (9 - i), gradients=4 * i) for i in range(10)),
        *(moment("optimizer", parameters=40, gradients=40, temporaries=8) for _ in range(4)),
    ]
    tape = Tape.chain(3, activation_bytes=2, output_bytes=1)
    return MemoryPlan("ResNet", "cpu", steps[9], (("layer1.0", 90 * MIB),), tuple(steps), tape)


def fragmented() -> Any:
    allocator = VirtualAllocator()
    blocks = [allocator.malloc(size * MIB) for size in (4, 6, 4, 3, 12, 9, 9)] + [allocator.malloc(700_000)]
    for number in blocks[1:4:2] + blocks[5:6]:
        allocator.free(number)
    return allocator.replay()


@pytest.fixture
def axes():
    import matplotlib.pyplot as plt

    figure, axes = style.subplots(figsize=(9, 4))
    yield axes
    figure.canvas.draw()
    plt.close(figure)


def texts(axes: Any) -> str:
    return " | ".join(text.get_text() for text in axes.texts)


def test_a_step_is_stacked_by_category_with_its_peak_named(axes: Any) -> None:
    assert axes is plan().plot(axes)
    assert "325 MB in forward: activations, most in layer1.0" in texts(axes)
    assert ["parameters", "gradients", "activations", "temporaries"] == [
        text.get_text() for text in axes.get_legend().get_texts()
    ]
    assert "Memory of a step of ResNet" in style.alt_text(axes.figure)


def test_holes_of_segments_are_where_the_allocator_has_them(axes: Any) -> None:
    replay = fragmented()
    replay.plot(axes)
    holes = [bar for bar in axes.patches if bar.get_hatch() and bar.get_width()]

    assert replay.reserved_bytes - replay.allocated_bytes == pytest.approx(sum(bar.get_width() for bar in holes) * MIB)
    assert len(replay.segments) == len(axes.get_yticklabels())
    assert {"in use", "hole"} == {text.get_text() for text in axes.get_legend().get_texts()}
    assert "in holes" in style.alt_text(axes.figure)


def test_a_replayed_tape_names_the_operation_of_its_peak(axes: Any) -> None:
    tape = Tape.chain(8, activation_bytes=2 * MIB, output_bytes=MIB, forward_s=1.0, backward_s=2.0)
    segmented(tape, 4).replay().plot(axes)

    assert "at forward(7): layer6" in texts(axes)


@pytest.mark.parametrize(("pass_s", "unit", "end"), [(1.0, "s", "24"), (1e-3, "ms", "24"), (1e-6, "µs", "24")])
def test_a_tape_has_the_unit_of_its_seconds(axes: Any, pass_s: float, unit: str, end: str) -> None:
    tape = Tape.chain(8, activation_bytes=2 * MIB, output_bytes=MIB, forward_s=pass_s, backward_s=2 * pass_s)
    segmented(tape, 1).replay().plot(axes)

    assert f"time [{unit}]" == axes.get_xlabel()
    assert end == axes.xaxis.get_major_formatter()(24 * pass_s)


def test_the_u_curve_points_out_its_least(axes: Any) -> None:
    tape = Tape.chain(64, activation_bytes=2, output_bytes=1)
    held = {count: segmented(tape, count).replay().peak_bytes for count in (1, 4, 8, 16, 32)}
    memory_pictures.u_curve(axes, held, layers=64)

    assert "128 | 35 | 23 | 23 | 35" == texts(axes)
    assert "least: 23" in style.alt_text(axes.figure)
