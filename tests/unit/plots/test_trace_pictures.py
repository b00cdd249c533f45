"""The pictures of traces show what the values say."""

from __future__ import annotations

import pytest

from edl_labs.plots.style import subplots
from edl_labs.plots.trace_pictures import draw_flame, draw_queue_depth, draw_shares, draw_trace, queue_depth
from edl_labs.trace import TracedGPU, attribute, diagnose
from edl_labs.ui.live_or_still import png


def gpu(kernel_s: float = 5e-5) -> TracedGPU:
    made = TracedGPU("A100-80GB", context_init_s=0.0, module_load_s=0.0)
    for _ in range(4):
        with made.step():
            made.data_wait(1e-3)
            for _ in range(10):
                made.launch("gemm", duration_s=kernel_s)
    return made


def axes() -> object:
    return subplots()[1]


def test_each_share_is_a_bar_with_its_number() -> None:
    drawn = draw_shares(axes(), attribute(gpu().trace()))  # type: ignore[arg-type]

    assert {"data", "compute", "launch"} >= {label.get_text() for label in drawn.get_yticklabels()}
    assert any("%" in text.get_text() for text in drawn.texts)


def test_a_step_starts_at_nought() -> None:
    drawn = draw_trace(axes(), gpu().trace())  # type: ignore[arg-type]

    assert 0.0 == drawn.get_xlim()[0]
    assert ["host", "stream 0"] == [label.get_text() for label in drawn.get_yticklabels()]


def test_the_flame_graph_has_a_box_for_the_loader() -> None:
    drawn = draw_flame(axes(), gpu().trace())  # type: ignore[arg-type]

    assert "dataloader" in {text.get_text() for text in drawn.texts}


@pytest.mark.parametrize(("kernel_s", "deepest"), [(1e-6, 0), (5e-5, 8)])
def test_the_queue_fills_when_kernels_are_long(kernel_s: float, deepest: int) -> None:
    _, depths = queue_depth(gpu(kernel_s).trace())
    drawn = draw_queue_depth(axes(), gpu(kernel_s).trace())  # type: ignore[arg-type]

    assert deepest <= max(depths) <= deepest + 1
    assert 0 == depths[-1]
    assert drawn.lines


def test_a_diagnosis_is_four_pictures() -> None:
    figure = diagnose(gpu().trace()).figure()

    assert 4 == len(figure.axes)
    assert "modelled" in figure.axes[0].get_title()
    assert png(figure).startswith(b"\x89PNG")
