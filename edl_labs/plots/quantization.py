"""Pictures of rounding up: tiles over a matrix, and the sawtooth of efficiency over size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from edl_labs.plots.style import BLUE, ON_COLOUR, ORANGE, TEXT, dress
from edl_labs.units import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.patches import Rectangle


def tile_grid(axes: Axes, m: int, n: int, *, tile_m: int, tile_n: int) -> Axes:
    """An m × n output (rows downwards) under its grid of whole tiles, the wasted part of the tiles hatched."""
    rows, columns = -(-m // tile_m), -(-n // tile_n)
    height, width = rows * tile_m, columns * tile_n
    axes.add_patch(_rectangle(0, 0, width, height, facecolor=ORANGE, hatch="//", edgecolor=ON_COLOUR))
    axes.add_patch(_rectangle(0, 0, n, m, facecolor=BLUE))
    for column in range(columns):
        for row in range(rows):
            corner = (column * tile_n, row * tile_m)
            axes.add_patch(_rectangle(*corner, tile_n, tile_m, fill=False, edgecolor=ON_COLOUR, linewidth=2))
    axes.set(xlim=(0, width), ylim=(height, 0), aspect="equal", xticks=sorted({0, n, width}), yticks=[0, m])
    wasted = 1 - m * n / (width * height)
    axes.set_title(f"{m} × {n}: {rows * columns} tiles, {percent(wasted)} wasted")
    return dress(axes)


def sawtooth(
    axes: Axes,
    sizes: Sequence[float],
    efficiency: Sequence[float],
    *,
    xlabel: str,
    title: str,
    marks: Sequence[float] = (),
) -> Axes:
    """Efficiency (fractions) over size as a line, with the sizes in `marks` pointed out by their values."""
    axes.plot(sizes, efficiency, color=BLUE, linewidth=1.4)
    place = {size: index for index, size in enumerate(sizes)}
    for size in marks:
        if size in place:
            _mark(axes, size, efficiency[place[size]])
    axes.set(xlabel=xlabel, ylabel="efficiency", title=title, ylim=(0, 1.12), xlim=(min(sizes), max(sizes)))
    axes.yaxis.set_major_formatter(lambda value, _: percent(value))
    axes.grid(alpha=0.3)
    return dress(axes)


def _mark(axes: Axes, size: float, efficiency: float) -> None:
    is_peak = efficiency > 0.9
    axes.plot([size], [efficiency], "o", color=ORANGE, markersize=5)
    axes.annotate(
        f"{size:g}: {percent(efficiency)}",
        (size, efficiency),
        xytext=(0, 6) if is_peak else (8, -4),
        textcoords="offset points",
        ha="center" if is_peak else "left",
        fontsize="small",
        color=TEXT,
    )


def _rectangle(x: float, y: float, width: float, height: float, **look: Any) -> Rectangle:
    from matplotlib.patches import Rectangle

    return Rectangle((x, y), width, height, **look)
