"""Pictures of benchmarks: every block of a measurement, ratios with their band, a sweep over sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from edl_labs.plots.style import BLUE, GREEN, GREY, MARKS, ORANGE, RED, TEXT
from edl_labs.units import percent, ratio_text, seconds, time_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from edl_labs.bench._sweep import Sweep
    from edl_labs.bench.results import Comparison, Measurement

VERDICT_LOOK = {"faster": (GREEN, "<"), "same": (BLUE, "s"), "slower": (RED, ">"), "inconclusive": (GREY, "D")}
_ROW = 0.34  # dots of neighbouring rows stay apart
_TICKS = 12  # labels that fit beside each other on one axis


def strip(axes: Axes, measurements: Measurement | Sequence[Measurement]) -> Axes:
    """Every block of each measurement as a dot, one row each, with the median and its interval as a bar."""
    rows = list(measurements) if isinstance(measurements, Sequence) else [measurements]
    for place, m in enumerate(rows):
        axes.plot(
            m.times_s, [place + offset for offset in _spread(m.times_s)], "o", color=BLUE, alpha=0.35, markersize=3
        )
        axes.plot([m.median_s] * 2, [place - _ROW, place + _ROW], color=ORANGE, linewidth=2)
        if math.isfinite(m.high_s):
            axes.fill_betweenx([place - _ROW, place + _ROW], m.low_s, m.high_s, color=ORANGE, alpha=0.25, linewidth=0)
    labels = [f"{m.name}\n{time_text(m.median_s, m.half_width)}" for m in rows]
    axes.set_yticks(range(len(rows)), labels)
    axes.set(ylim=(len(rows) - 0.5, -0.5), xlabel="time per call, one dot per block")
    axes.xaxis.set_major_formatter(_time_tick)
    axes.grid(axis="x", alpha=0.3)
    return axes


def forest(axes: Axes, comparison: Comparison) -> Axes:
    """The interval of each ratio as a line, the band shaded; verdicts by colour, mark and word."""
    band = comparison.band
    axes.axvspan(1 / (1 + band), 1 + band, color=GREY, alpha=0.25, linewidth=0)
    axes.axvline(1.0, color=TEXT, linewidth=1)
    ends = [1 - 2 * band, 1 + 2 * band]
    for place, row in enumerate(comparison.rows):
        colour, mark = VERDICT_LOOK[row.verdict]
        if math.isfinite(row.low) and math.isfinite(row.high):
            axes.plot([row.low, row.high], [place, place], color=colour, linewidth=2)
            ends += [row.low, row.high]
        axes.plot([row.ratio], [place], marker=mark, color=colour, markersize=7)
        text = f"{row.verdict}: {ratio_text(row.ratio, row.low, row.high)}"
        axes.annotate(
            text,
            (row.ratio, place),
            xytext=(0, 9),
            textcoords="offset points",
            ha="center",
            fontsize="small",
            color=TEXT,
        )
        ends.append(row.ratio)
    reach = max(ends) - min(ends)
    axes.set_yticks(range(len(comparison.rows)), [row.name for row in comparison.rows])
    axes.set(
        ylim=(len(comparison.rows) - 0.5, -0.7),
        xlim=(min(ends) - 0.35 * reach, max(ends) + 0.35 * reach),
        xlabel=f"time over {comparison.rows[0].against}'s time (shaded: within {percent(band)})",
    )
    return axes


def sweep(axes: Axes, result: Sweep, *, x: str, logarithmic: bool = True) -> Axes:
    """Time over the parameter `x` with intervals, a line for each setting of the others; failed points are left out."""
    for number, (label, points) in enumerate(_lines(result, x).items()):
        places = [place for place, _ in points]
        taken = [m for _, m in points]
        low = [_finite(m.median_s - m.low_s) for m in taken]
        high = [_finite(m.high_s - m.median_s) for m in taken]
        mark = MARKS[number % len(MARKS)]
        axes.errorbar(
            places, [m.median_s for m in taken], yerr=[low, high], marker=mark, capsize=3, label=label or None
        )
    if len(_lines(result, x)) > 1:
        axes.legend(fontsize="small", labelcolor=TEXT)
    axes.set(xlabel=x, ylabel="time per call", title=result.name)
    if logarithmic:
        axes.set(xscale="log", yscale="log")
    sizes = sorted({point.parameters[x] for point in result.points if x in point.parameters})
    if len(sizes) <= _TICKS:
        axes.set_xticks(sizes, [f"{size:g}" for size in sizes])
        axes.minorticks_off()
    axes.yaxis.set_major_formatter(_time_tick)
    axes.grid(alpha=0.3)
    return axes


def _lines(result: Sweep, x: str) -> dict[str, list[tuple[Any, Measurement]]]:
    lines: dict[str, list[tuple[Any, Measurement]]] = {}
    for point in result.points:
        if point.measurement is None or x not in point.parameters:
            continue
        rest = ", ".join(f"{name}={value}" for name, value in point.parameters.items() if name != x)
        lines.setdefault(rest, []).append((point.parameters[x], point.measurement))
    return lines


def _spread(times: Sequence[float]) -> list[float]:
    # Dots at the same time lie apart by their order, from bottom to top: drift shows as a slant.
    last = max(1, len(times) - 1)
    return [_ROW * (1 - 2 * index / last) for index in range(len(times))]


def _finite(value: float) -> float:
    return max(0.0, value) if math.isfinite(value) else 0.0


def _time_tick(value: float, _: object = None) -> str:
    return seconds(value)


__all__ = ["forest", "strip", "sweep"]
