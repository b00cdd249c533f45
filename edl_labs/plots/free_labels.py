"""Labels of a picture that lie neither on one another nor outside their axes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Annotation

Corners = tuple[tuple[float, float], ...]
_GAP_PT = 1.0  # between two labels, and between a label and the frame
_EPS = 1e-6  # pixels: what touches does not overlap


@dataclass(frozen=True)
class Spot:
    """A place for a label: a point in data coordinates, an offset in points, which side of the text lies there."""

    x: float
    y: float
    dx_pt: float = 0.0
    dy_pt: float = 0.0
    ha: str = "left"
    va: str = "bottom"
    angle: float = 0.0


@dataclass(frozen=True)
class Label:
    """A text with the places that it may have, the best first; one that must be seen takes the least crowded."""

    text: str
    spots: Sequence[Spot]
    colour: str
    fontsize: float = 7.0
    must_be_seen: bool = True


def write_labels(axes: Axes, labels: Iterable[Label], *, around: Iterable[Corners] = ()) -> list[Annotation]:
    """Writes each label at its first free place, in the order given; gives those written.

    `around` are areas in pixels to keep free. The layout of the figure and the limits of the axes must stand already.
    A label that has no free place is left out, unless it must be seen.
    """
    renderer = axes.figure.canvas.get_renderer()  # type: ignore[attr-defined]  # every canvas that we draw on has one
    taken, written = list(around), []
    for label in labels:
        best = _best(axes, label, taken, renderer)
        if best is None:
            continue
        spot, corners = best
        taken.append(corners)
        written.append(_written(axes, label, spot))
    return written


def corners_of(annotation: Annotation, axes: Axes) -> Corners:
    """The corners, in pixels, of a text that `write_labels` wrote."""
    x, y = annotation.xy
    dx_pt, dy_pt = annotation.get_position()
    spot = Spot(
        x,
        y,
        dx_pt,
        dy_pt,
        annotation.get_horizontalalignment(),
        annotation.get_verticalalignment(),
        annotation.get_rotation(),
    )
    return _corners(axes, spot, _size(annotation, axes.figure.canvas.get_renderer()))  # type: ignore[attr-defined]


def box(low_x: float, low_y: float, high_x: float, high_y: float) -> Corners:
    """An upright rectangle as corners."""
    return (low_x, low_y), (high_x, low_y), (high_x, high_y), (low_x, high_y)


def overlap(first: Corners, second: Corners) -> bool:
    """Whether two convex areas share more than an edge: no line along a side of either parts them."""
    for corners in (first, second):
        for (x0, y0), (x1, y1) in zip(corners, corners[1:] + corners[:1], strict=True):
            normal = (y1 - y0, x0 - x1)
            one, two = _shadow(first, normal), _shadow(second, normal)
            length = math.hypot(*normal) or 1.0
            if min(one[1], two[1]) - max(one[0], two[0]) <= _EPS * length:
                return False
    return True


def inside(corners: Corners, area: Any) -> bool:
    """Whether all corners lie in a matplotlib Bbox."""
    return all(area.x0 - _EPS <= x <= area.x1 + _EPS and area.y0 - _EPS <= y <= area.y1 + _EPS for x, y in corners)


def _best(axes: Axes, label: Label, taken: Sequence[Corners], renderer: Any) -> tuple[Spot, Corners] | None:
    probe = _written(axes, label, label.spots[0])
    size = _size(probe, renderer)
    probe.remove()
    found = [(spot, _corners(axes, spot, size)) for spot in label.spots]
    within = [(spot, corners) for spot, corners in found if inside(corners, axes.bbox)]
    for spot, corners in within:
        if not any(overlap(corners, other) for other in taken):
            return spot, corners
    if not label.must_be_seen:
        return None
    return min(within or found, key=lambda one: sum(overlap(one[1], other) for other in taken))


def _written(axes: Axes, label: Label, spot: Spot) -> Annotation:
    annotation = axes.annotate(
        label.text,
        (spot.x, spot.y),
        (spot.dx_pt, spot.dy_pt),
        textcoords="offset points",
        color=label.colour,
        fontsize=label.fontsize,
        ha=spot.ha,
        va=spot.va,
        rotation=spot.angle,
        rotation_mode="anchor",
    )
    annotation.set_in_layout(False)  # it fits the axes as they are
    return annotation


def _size(annotation: Annotation, renderer: Any) -> tuple[float, float]:
    angle = annotation.get_rotation()
    annotation.set_rotation(0.0)
    extent = annotation.get_window_extent(renderer)
    annotation.set_rotation(angle)
    gap = _GAP_PT * annotation.figure.dpi / 72
    return extent.width + 2 * gap, extent.height + 2 * gap


def _corners(axes: Axes, spot: Spot, size: tuple[float, float]) -> Corners:
    dots = axes.figure.dpi / 72
    at_x, at_y = axes.transData.transform((spot.x, spot.y))
    width, height = size
    left = {"left": 0.0, "center": -width / 2, "right": -width}[spot.ha]
    low = {"bottom": 0.0, "center": -height / 2, "top": -height}[spot.va]
    cos, sin = math.cos(math.radians(spot.angle)), math.sin(math.radians(spot.angle))
    origin = at_x + spot.dx_pt * dots, at_y + spot.dy_pt * dots
    return tuple(
        (origin[0] + x * cos - y * sin, origin[1] + x * sin + y * cos)
        for x, y in box(left, low, left + width, low + height)
    )


def _shadow(corners: Corners, normal: tuple[float, float]) -> tuple[float, float]:
    along = [x * normal[0] + y * normal[1] for x, y in corners]
    return min(along), max(along)
