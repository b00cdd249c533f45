"""Pictures of tiles: what a program of a matrix product touches, and bytes per tensor next to the least possible."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from edl_labs.errors import UsageError
from edl_labs.plots.style import BLUE, GREEN, GREY, ORANGE, TEXT
from edl_labs.units import byte_count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROW_HEIGHT = 0.38  # of two bars that share a row


def draw_tile(axes: Axes, *, m: int, n: int, k: int, bm: int, bn: int, program: int) -> Axes:
    """A (left), B (top) and C with the tile of one program, and what it reads; programs count along rows of tiles."""
    from matplotlib.patches import Rectangle

    across = -(-n // bn)
    top, left = program // across * bm, program % across * bn
    height, width = min(bm, m - top), min(bn, n - left)
    gap = 0.08 * max(m, n, k)
    corners = {"A": (-k - gap, 0, k, m), "B": (0, -k - gap, n, k), "C": (0, 0, n, m)}
    touched = {"A": (-k - gap, top, k, height), "B": (left, -k - gap, width, k), "C": (left, top, width, height)}
    for name, (x, y, wide, high) in corners.items():
        axes.add_patch(Rectangle((x, y), wide, high, fill=False, edgecolor=GREY))
        colour = GREEN if name == "C" else BLUE
        x_tile, y_tile, w_tile, h_tile = touched[name]
        axes.add_patch(Rectangle((x_tile, y_tile), w_tile, h_tile, facecolor=colour, edgecolor="none"))
        axes.annotate(name, (x, y), xytext=(0, 3), textcoords="offset points", color=TEXT)
    for edge in range(bn, n, bn):
        axes.plot([edge, edge], [0, m], color=GREY, linewidth=0.5)
    for edge in range(bm, m, bm):
        axes.plot([0, n], [edge, edge], color=GREY, linewidth=0.5)
    axes.set(xlim=(-k - 2 * gap, n + gap), ylim=(m + gap, -k - 2 * gap), aspect="equal")
    axes.set_axis_off()
    axes.set_title(f"program {program} reads {height} rows, {width} columns", color=TEXT)
    return axes


def draw_bytes(axes: Axes, moved: Mapping[str, float], least: Mapping[str, float], *, title: str = "") -> Axes:
    """For each tensor, the bytes that a kernel moves and the least possible; UsageError where one lacks the other.

    Tensors are rows, from top to bottom in the order of `moved`.
    """
    names = list(moved)
    if set(names) != set(least):
        raise UsageError(
            f"the bytes moved are given for {', '.join(names)}, but the minimum is given for {', '.join(least)}",
            why="each tensor is drawn with both numbers",
            next="use the same names in both mappings",
        )
    rows = range(len(names))
    axes.barh([row - _ROW_HEIGHT / 2 for row in rows], list(moved.values()), _ROW_HEIGHT, color=BLUE, label="moved")
    places = [row + _ROW_HEIGHT / 2 for row in rows]
    axes.barh(places, [least[name] for name in names], _ROW_HEIGHT, color=ORANGE, label="least possible", hatch="//")
    for row, name in zip(rows, names, strict=True):
        said = f" {moved[name] / least[name]:.3g} ×" if least[name] else ""
        axes.annotate(said, (moved[name], row - _ROW_HEIGHT / 2), va="center", color=TEXT)
    axes.set_yticks(list(rows), names)
    axes.invert_yaxis()
    axes.xaxis.set_major_formatter(lambda value, _: byte_count(value))
    axes.set_title(title, color=TEXT)
    axes.margins(x=0.15)
    axes.legend(loc="lower right")
    return axes
