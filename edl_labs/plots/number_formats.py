"""Pictures of few bits: a format's steps and range, gradients against the range, and bytes per parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from edl_labs.numerics._float_format import FloatFormat, float_format
from edl_labs.plots.style import BLUE, GREEN, GREY, HATCHING, ON_COLOUR, ORANGE, PURPLE, RED, TEXT, dress
from edl_labs.units import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from edl_labs.numerics._bytes_per_parameter import ParameterBytes
    from edl_labs.numerics._underflow_report import UnderflowReport

FATES = {"flushed": (RED, "xx"), "subnormal": (ORANGE, "//"), "normal": (BLUE, ""), "overflowed": (PURPLE, "..")}
"""A colour and a hatch each, so that colour alone carries nothing."""


def draw_underflow(axes: Axes, report: UnderflowReport) -> Axes:
    """The histogram of deck [002]: log2 of the scaled magnitudes, coloured by what the format makes of them.

    A bar that lies across a border is cut there, so that areas are counts; the scale moves the bars, not the format.
    """
    fmt, shift = report.fmt, np.log2(report.scale)
    borders = _borders(fmt)
    # What the report has counted is one bar an exponent; spread evenly within it, a border may cut it.
    for exponent, count in zip(report.exponents, report.counts, strict=True):
        left = exponent + shift
        for (low, high), (colour, hatch) in zip(borders, FATES.values(), strict=True):
            start, end = max(left, low), min(left + 1, high)
            if end > start:
                look: dict[str, Any] = {"color": colour, "hatch": hatch, "edgecolor": ON_COLOUR, "linewidth": 0}
                axes.bar(start, count, width=end - start, align="edge", **look)
    for fate, (colour, hatch) in FATES.items():
        axes.bar(
            0,
            0,
            color=colour,
            hatch=hatch,
            edgecolor=ON_COLOUR,
            linewidth=0,
            label=f"{fate} {percent(getattr(report, fate))}",
        )
    places = [exponent + shift for exponent in report.exponents] or [0.0]
    axes.set_xlim(min(*places, borders[1][0] - 2), max(max(places) + 1, borders[2][1] + 2))
    scale = f"times 2^{shift:g}" if float(shift).is_integer() else f"times {report.scale:g}"
    axes.set(xlabel="log2 |value|", ylabel="how many", title=f"{scale}, in {fmt.name}")
    axes.legend(labelcolor=TEXT, fontsize="small", loc="upper left")
    return dress(axes)


def draw_spacing(axes: Axes, formats: Any, *, value: float | None = None) -> Axes:
    """The step between neighbours over the magnitude, both as powers of two: a staircase that ends flat at the bottom.

    `formats` is one or several; `value` is pointed out on the first one.
    """
    several = [formats] if isinstance(formats, (str, FloatFormat)) else list(formats)
    for fmt, colour in zip(map(float_format, several), (BLUE, ORANGE, GREEN, PURPLE, RED, GREY), strict=False):
        low = int(np.log2(fmt.smallest_subnormal))
        exponents = np.arange(low, fmt.max_exponent + 1)
        steps = np.maximum(exponents, fmt.min_exponent) - fmt.mantissa_bits
        axes.stairs(steps, [*exponents, exponents[-1] + 1], baseline=None, color=colour, label=fmt.name, linewidth=1.6)
        axes.axvline(fmt.min_exponent, color=colour, linewidth=0.8, linestyle=":")
    fmt = float_format(several[0])
    if value is not None and np.isfinite(value) and 0 < abs(value) <= fmt.largest:
        axes.plot(np.log2(abs(value)), np.log2(fmt.ulp(abs(value))), "o", color=ORANGE, markersize=7)
    axes.set(
        xlabel="log2 |value|", ylabel="log2 of the step", title="step between neighbours (dotted: smallest normal)"
    )
    if len(several) > 1:
        axes.legend(labelcolor=TEXT, fontsize="small")
    return dress(axes)


def draw_ranges(axes: Axes, formats: Sequence[Any]) -> Axes:
    """Each format's range as a bar of powers of two: subnormal, then normal; with its mantissa bits."""
    chosen = [float_format(fmt) for fmt in formats]
    for row, fmt in enumerate(chosen):
        low, normal, high = (np.log2(v) for v in (fmt.smallest_subnormal, fmt.smallest_normal, fmt.largest))
        subnormal: dict[str, Any] = {"color": ORANGE, "hatch": "//", "edgecolor": HATCHING, "linewidth": 0}
        axes.barh(row, normal - low, left=low, height=0.5, **subnormal)
        axes.barh(row, high - normal, left=normal, height=0.5, color=BLUE)
        bits = "1 mantissa bit" if fmt.mantissa_bits == 1 else f"{fmt.mantissa_bits} mantissa bits"
        axes.annotate(
            bits, (high, row), xytext=(4, 0), textcoords="offset points", va="center", fontsize="small", color=TEXT
        )
    axes.set_yticks(range(len(chosen)), [fmt.name for fmt in chosen])
    axes.set(xlabel="log2 |value|", title="range: subnormal (hatched) and normal values")
    axes.margins(x=0.2)
    axes.invert_yaxis()
    return dress(axes)


def draw_bits(axes: Axes, fmt: Any, bits: int) -> Axes:
    """One bit pattern as a row of cells: sign, exponent, mantissa; highest bit first."""
    fmt = float_format(fmt)
    colours = [GREY] * fmt.signed + [ORANGE] * fmt.exponent_bits + [BLUE] * fmt.mantissa_bits
    for place, colour in enumerate(colours):
        one = bits >> (fmt.bits - 1 - place) & 1
        axes.bar(place, 1, width=0.92, color=colour, alpha=1.0 if one else 0.35, linewidth=0)
        axes.text(place, 0.5, str(one), ha="center", va="center", color=ON_COLOUR if one else TEXT, fontsize="large")
    axes.set(xlim=(-0.6, fmt.bits - 0.4), ylim=(0, 1), yticks=[], title=_pattern_title(fmt, bits))
    axes.set_xticks(*_field_names(fmt))
    axes.tick_params(length=0)
    dress(axes)
    for spine in axes.spines.values():
        spine.set_visible(False)
    return axes


def draw_memory(axes: Axes, recipes: Mapping[str, ParameterBytes]) -> Axes:
    """Bytes per parameter of several recipes as stacked bars, a colour and a hatch for each part."""
    parts = (
        *(("weights", BLUE, ""), ("master", GREEN, "\\\\"), ("gradients", ORANGE, "..")),
        *(("optimizer", PURPLE, "xx"), ("transient", GREY, "//")),
    )
    for row, found in enumerate(recipes.values()):
        left = 0.0
        for part, colour, hatch in parts:
            width = getattr(found, part)
            look: dict[str, Any] = {"color": colour, "hatch": hatch, "edgecolor": HATCHING, "linewidth": 0.6}
            axes.barh(row, width, left=left, height=0.6, **look)
            if width >= 1:
                axes.text(
                    left + width / 2, row, f"{width:g}", ha="center", va="center", color=ON_COLOUR, fontsize="small"
                )
            left += width
    for part, colour, hatch in parts:
        axes.barh(0, 0, color=colour, hatch=hatch, edgecolor=HATCHING, label=part)
    axes.set_yticks(range(len(recipes)), list(recipes))
    axes.set(xlabel="bytes per parameter", title="memory per parameter on each GPU")
    axes.legend(labelcolor=TEXT, fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes.invert_yaxis()
    return dress(axes)


def _field_names(fmt: FloatFormat) -> tuple[list[float], list[str]]:
    """The middle of each field of a pattern, and its name."""
    places, names, begin = [], [], 0
    for name, bits in (("sign", int(fmt.signed)), ("exponent", fmt.exponent_bits), ("fraction", fmt.mantissa_bits)):
        if bits:
            places.append(begin + (bits - 1) / 2)
            names.append(name)
        begin += bits
    return places, names


def _pattern_title(fmt: FloatFormat, bits: int) -> str:
    sign, exponent, mantissa = fmt.fields(bits)
    return f"{fmt.name}: sign {sign}, exponent field {exponent}, mantissa field {mantissa}"


def _borders(fmt: FloatFormat) -> list[tuple[float, float]]:
    """Where each fate begins and ends, in powers of two: half the smallest value, the smallest normal, the largest."""
    half_lowest = np.log2(fmt.smallest_subnormal) - 1
    normal, end = fmt.min_exponent, np.log2(fmt.largest)
    return [(-np.inf, half_lowest), (half_lowest, normal), (normal, end), (end, np.inf)]
