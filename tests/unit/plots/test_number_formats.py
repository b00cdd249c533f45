"""Pictures of few bits hold what the values say."""

from __future__ import annotations

import numpy as np
import pytest

from edl_labs.numerics import FORMATS, bytes_per_parameter, underflow_report
from edl_labs.plots import style
from edl_labs.plots.number_formats import FATES, draw_bits, draw_memory, draw_ranges, draw_spacing, draw_underflow


@pytest.fixture(autouse=True)
def off_screen():
    import matplotlib

    matplotlib.use("Agg")


@pytest.fixture
def axes():
    import matplotlib.pyplot as plt

    figure, axes = style.subplots()
    yield axes
    plt.close(figure)


def areas(axes) -> dict[str, float]:
    """The area of the bars of each colour, which is a number of values."""
    from matplotlib.colors import to_hex

    found = dict.fromkeys(FATES, 0.0)
    for bar in axes.patches:
        name = next(name for name, (colour, _) in FATES.items() if to_hex(bar.get_facecolor()) == colour)
        found[name] += bar.get_width() * bar.get_height()
    return found


@pytest.mark.parametrize("scale", [1.0, 2.0**12, 3.0])
def test_the_histograms_areas_are_the_reports_fractions(axes, scale: float) -> None:
    # Evenly spread in log2, so that a bar cut in two has the right share on both sides.
    values = 2.0 ** np.random.default_rng(2).uniform(-40, 20, 200_000)
    report = underflow_report(values, "fp16", scale=scale)
    draw_underflow(axes, report)
    drawn = areas(axes)

    assert values.size == pytest.approx(sum(drawn.values()))
    for fate in FATES:
        assert getattr(report, fate) == pytest.approx(drawn[fate] / values.size, abs=0.005)


def test_an_empty_report_draws_an_empty_histogram(axes) -> None:
    draw_underflow(axes, underflow_report([0.0], "fp16"))

    assert "times 2^0, in fp16" == axes.get_title()


def test_steps_climb_with_the_magnitude_and_are_flat_below_the_smallest_normal(axes) -> None:
    draw_spacing(axes, "fp16", value=1.0)
    (stairs,) = [patch for patch in axes.patches if hasattr(patch, "get_data")]
    values, edges, _ = stairs.get_data()
    fp16 = FORMATS["fp16"]

    assert [np.log2(fp16.ulp(2.0**low)) for low in edges[:-1]] == list(values)
    assert (0.0, -10.0) == tuple(float(axes.lines[-1].get_xydata()[0][i]) for i in (0, 1))


def test_ranges_run_from_the_smallest_value_to_the_largest(axes) -> None:
    draw_ranges(axes, ["e4m3fn"])
    left, right = axes.patches

    assert (-9, -6) == (left.get_x(), right.get_x())
    assert np.log2(448) == pytest.approx(right.get_x() + right.get_width())


def test_a_pattern_is_one_cell_a_bit(axes) -> None:
    draw_bits(axes, "e5m2", 0b1_00011_01)

    assert "10001101" == "".join(text.get_text() for text in axes.texts)
    assert "sign 1, exponent field 3, mantissa field 1" in axes.get_title()


def test_memory_bars_add_up_to_the_peak(axes) -> None:
    draw_memory(axes, {"amp": bytes_per_parameter("amp adam")})

    assert 18.0 == pytest.approx(max(bar.get_x() + bar.get_width() for bar in axes.patches))
