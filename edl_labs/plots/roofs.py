"""The roofline picture: every ceiling of a machine, its ridges, and measured points with their doubt."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from edl_labs.errors import UsageError
from edl_labs.plots.free_labels import Corners, Label, Spot, box, write_labels
from edl_labs.plots.style import BLUE, COLOURS, GREY, ORANGE, TEXT, dress
from edl_labs.roofline._place import Placed, Point, place_all, you_are_here
from edl_labs.roofline.machine_ceilings import Machine
from edl_labs.units import byte_count, byte_rate, counted, flop_rate, si

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from edl_labs.roofline._count import Count

_MOST_NAMES = 8  # more would lie on one another
# Slopes are blue and flat roofs orange; what repeats a colour has another shape.
_SPARE = tuple(colour for colour in COLOURS if colour not in (BLUE, ORANGE, GREY))
_MARKERS = ("o", "s", "^", "D", "v")
_SMALLEST, _LARGEST = 30.0, 420.0  # in points²: a dot that is seen, a disc that hides no neighbour
_HEADROOM = 2.0  # above the highest roof: room for its label
_ALONG = tuple(0.02 + 0.06 * step for step in range(16))  # shares of a line at which its label may begin
_BELOW_PT = -34.0  # under the ticks and the name of the axis


def roofline(
    axes: Axes,
    machine: Machine,
    points: Iterable[Point] = (),
    *,
    dtypes: Sequence[str] | None = None,
    title: str | None = None,
) -> Axes:
    """Attainable FLOP/s over intensity: slopes of memory levels, flat roofs of dtypes, ridge points, points.

    A point's area grows with the time a step loses there, its bars are the interval of its time; the worst are named,
    as far as there is room. Below stands where you are, in words. AboveRoof where a point lies above its roof; points
    of no FLOPs have no place in a log-log picture and appear in words only. `dtypes` limits the flat roofs (those of
    the points, or all).
    """
    placed = place_all(machine, points)
    shown = drawn(placed)
    roofs = _roofs(machine, shown, dtypes)
    low, high = _span(machine, shown, roofs)
    _draw_slopes(axes, machine, max(roofs.values()), low)
    _draw_flats(axes, machine, roofs, high)
    colours = _module_colours(shown)
    worst = max((p.lost_s for p in shown), default=0.0)
    for index, one in enumerate(shown):
        _draw_point(axes, one, colours, index=index, worst=worst)
    axes.set(xscale="log", yscale="log", xlim=(low, high), xlabel="arithmetic intensity, FLOP/B")
    bottom, top = axes.get_ylim()
    axes.set(ylim=(bottom, top * _HEADROOM), ylabel="FLOP/s", title=title or f"{machine.name}, {machine.origin}")
    axes.yaxis.set_major_formatter(lambda value, _: si(value, "FLOP/s"))
    axes.grid(alpha=0.25, which="major")
    if placed:
        _say_where(axes, placed)
    _legend(axes, colours)
    dress(axes)
    axes.figure.draw_without_rendering()  # type: ignore[union-attr]  # labels are laid out on axes of their final size
    names = [*_flat_labels(machine, roofs, low, high), *_slope_labels(axes, machine, max(roofs.values()), low)]
    names += [*_ridge_labels(machine, roofs), *_point_labels(shown[:_MOST_NAMES], worst)]
    write_labels(axes, names, around=_kept_free(axes, shown, worst))
    return axes


def draw_count(axes: Axes, count: Count) -> Axes:
    """The bytes that each operator moves as bars, the most first, with its FLOPs and its share of all in words."""
    rows = count.by_operator()
    shown, rest = rows[:_MOST_NAMES], rows[_MOST_NAMES:]
    bars = [(f"{row.operator}, {row.dtype}", row.moved_bytes, row.contraction_flops + row.other_flops) for row in shown]
    if rest:
        flops = sum(row.contraction_flops + row.other_flops for row in rest)
        bars.append((f"{counted(len(rest), 'other')}", sum(row.moved_bytes for row in rest), flops))
    longest = max((moved for _, moved, _ in bars), default=1) or 1
    axes.barh(range(len(bars)), [moved for _, moved, _ in bars], color=BLUE, height=0.62)
    for place, (_, moved, flops) in enumerate(bars):
        text = f" {byte_count(moved)} · {si(flops, 'FLOP')}"
        axes.text(moved + 0.01 * longest, place, text, color=TEXT, va="center", fontsize="small")
    axes.set_yticks(range(len(bars)), [name for name, _, _ in bars])
    axes.set(xlim=(0, 1.45 * longest), ylim=(len(bars) - 0.5, -0.5), xlabel="bytes moved, operation by operation")
    axes.xaxis.set_major_formatter(lambda value, _: byte_count(value))
    axes.locator_params(axis="x", nbins=4)
    total = si(count.contraction_flops + count.other_flops, "FLOP")
    axes.set_title(f"{total}, {byte_count(count.moved_bytes)} moved, {byte_count(count.fused_bytes)} if all were fused")
    return dress(axes)


def drawn(placed: Iterable[Placed]) -> list[Placed]:
    """Those that have a place in the picture, in their order: with FLOPs and with bytes."""
    return [one for one in placed if one.point.work.total_flops and math.isfinite(_intensity(one))]


def _roofs(machine: Machine, shown: Sequence[Placed], dtypes: Sequence[str] | None) -> dict[str, float]:
    # Arithmetic of a dtype that no product is done in has no flat roof here.
    used = [one.point.work.dtype for one in shown if one.point.work.dtype in machine.matmul]
    wanted = list(dict.fromkeys(dtypes if dtypes is not None else used or machine.matmul))
    missing = [dtype for dtype in wanted if dtype not in machine.matmul]
    if missing or not wanted:
        raise UsageError(
            f"{machine.name} has no ceiling for {', '.join(missing)}" if missing else "there is no dtype to draw",
            why=f"{machine.name} has {', '.join(machine.matmul)}",
            next="omit dtypes, or name some of these",
        )
    return {dtype: machine.matmul[dtype].rate for dtype in wanted}


def _span(machine: Machine, shown: Sequence[Placed], roofs: dict[str, float]) -> tuple[float, float]:
    ridges = [rate / level.ceiling().rate for rate in roofs.values() for level in machine.levels]
    seen = [_intensity(one) for one in shown]
    return 0.3 * min([*ridges, *seen, 0.25]), 5 * max([*ridges, *seen])


def _draw_slopes(axes: Axes, machine: Machine, top: float, low: float) -> None:
    """One line for each memory level's fastest pattern; slower patterns of main memory dotted."""
    for level in machine.levels:
        slope = level.ceiling().rate
        axes.plot([low, top / slope], [low * slope, top], color=BLUE, linewidth=1.7 if level is machine.memory else 1.0)
    main = machine.memory
    for pattern, ceiling in main.bandwidth.items():
        if pattern != main.fastest:
            axes.plot([low, top / ceiling.rate], [low * ceiling.rate, top], color=BLUE, linewidth=0.8, linestyle=":")


def _draw_flats(axes: Axes, machine: Machine, roofs: dict[str, float], high: float) -> None:
    for rate in _same(roofs):
        ridge = rate / machine.memory.ceiling().rate
        nearest = rate / machine.levels[0].ceiling().rate
        axes.plot([nearest, high], [rate, rate], color=ORANGE, linewidth=1.7)
        axes.plot([ridge], [rate], "o", color=ORANGE, markersize=4, markerfacecolor="none")


def _slope_labels(axes: Axes, machine: Machine, top: float, low: float) -> list[Label]:
    """Along each slope, above it or below, from its foot upwards."""
    labels = []
    for level in machine.levels:
        slope = level.ceiling().rate
        ends = axes.transData.transform([(low, low * slope), (top / slope, top)])
        angle = math.degrees(math.atan2(ends[1][1] - ends[0][1], ends[1][0] - ends[0][0]))
        across = (-math.sin(math.radians(angle)), math.cos(math.radians(angle)))
        spots = []
        for share in _ALONG:
            at = low * (top / slope / low) ** share
            spots.append(Spot(at, at * slope, 2 * across[0], 2 * across[1], angle=angle))
            spots.append(Spot(at, at * slope, -2 * across[0], -2 * across[1], va="top", angle=angle))
        labels.append(Label(f"{level.name} {level.fastest}, {byte_rate(slope)}", spots, BLUE))
    return labels


def _flat_labels(machine: Machine, roofs: dict[str, float], low: float, high: float) -> list[Label]:
    """Above each roof or below it, from its right end leftwards."""
    labels = []
    for rate, names in _same(roofs).items():
        nearest = max(low, rate / machine.levels[0].ceiling().rate)
        spots = []
        for share in _ALONG:
            at = high * (nearest / high) ** share
            spots.append(Spot(at, rate, 0.0, 2.0, ha="right"))
            spots.append(Spot(at, rate, 0.0, -2.0, ha="right", va="top"))
        labels.append(Label(f"{names} {flop_rate(rate)}", spots, ORANGE))
    return labels


def _ridge_labels(machine: Machine, roofs: dict[str, float]) -> list[Label]:
    labels = []
    for rate in _same(roofs):
        ridge = rate / machine.memory.ceiling().rate
        spots = _around(ridge, rate, (3.0, 10.0, 20.0, 34.0, 48.0), _CORNERS + _BESIDE)  # beside it is the roof
        labels.append(Label(f"ridge {ridge:.3g}", spots, TEXT))
    return labels


def _point_labels(shown: Sequence[Placed], worst: float) -> list[Label]:
    labels = []
    for one in shown:
        name = f"{one.point.module}.{one.point.name}" if one.point.module else one.point.name
        clear_pt = _radius_pt(one, worst) + 3
        spots = _around(
            _intensity(one), one.point.flop_per_s, (clear_pt, clear_pt + 8, clear_pt + 18), _BESIDE + _CORNERS
        )
        labels.append(Label(name, spots, TEXT, must_be_seen=False))
    return labels


_BESIDE = (("left", 1, "center", 0), ("right", -1, "center", 0), ("center", 0, "bottom", 1), ("center", 0, "top", -1))
_CORNERS = (("right", -1, "bottom", 1), ("left", 1, "top", -1), ("left", 1, "bottom", 1), ("right", -1, "top", -1))


def _around(
    x: float, y: float, distances_pt: Sequence[float], sides: Sequence[tuple[str, int, str, int]]
) -> list[Spot]:
    """Places about a point, near ones first: on which side of it, and which side of the text lies there."""
    return [
        Spot(x, y, right * distance, up * distance, ha, va) for distance in distances_pt for ha, right, va, up in sides
    ]


def _kept_free(axes: Axes, shown: Sequence[Placed], worst: float) -> list[Corners]:
    """Where points and the legend are."""
    kept, dots = [], axes.figure.dpi / 72
    for one in shown:
        x, y = axes.transData.transform((_intensity(one), one.point.flop_per_s))
        reach = _radius_pt(one, worst) * dots
        kept.append(box(x - reach, y - reach, x + reach, y + reach))
    legend = axes.get_legend()
    if legend is not None:
        area = legend.get_window_extent()
        kept.append(box(area.x0, area.y0, area.x1, area.y1))
    return kept


def _draw_point(axes: Axes, one: Placed, colours: dict[str, str], *, index: int, worst: float) -> None:
    point, x = one.point, _intensity(one)
    area = _area(one, worst)
    colour = colours[point.module]
    # A measurement with too few blocks bounds its time on no side: there is no end to draw a bar to.
    bounded = point.low_s > 0 and math.isfinite(point.high_s)
    ends_s = (point.high_s, point.low_s) if bounded else (point.time_s, point.time_s)
    low, high = (point.work.total_flops / limit_s for limit_s in ends_s)
    down, up = max(0.0, point.flop_per_s - low), max(0.0, high - point.flop_per_s)
    axes.errorbar([x], [point.flop_per_s], yerr=[[down], [up]], color=colour, linewidth=1.2, capsize=2, fmt="none")
    marker = _MARKERS[list(colours).index(point.module) // len(_SPARE) % len(_MARKERS)]
    look: dict[str, Any] = {"color": colour, "alpha": 0.75, "linewidths": 0, "zorder": 3}
    drawn = axes.scatter([x], [point.flop_per_s], s=area, marker=marker, **look)
    drawn.set_gid(f"point-{index}")


def _area(one: Placed, worst: float) -> float:
    share = one.lost_s / worst if worst else 0.0
    return _SMALLEST + (_LARGEST - _SMALLEST) * share


def _radius_pt(one: Placed, worst: float) -> float:
    return math.sqrt(_area(one, worst)) / 2


def _say_where(axes: Axes, placed: Sequence[Placed]) -> None:
    below: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points", "annotation_clip": False}
    axes.annotate(you_are_here(placed), (0, 0), (0, _BELOW_PT), **below, fontsize=7.5, color=TEXT, va="top")


def _legend(axes: Axes, colours: dict[str, str]) -> None:
    if len(colours) < 2:
        return
    handles: list[Any] = [
        axes.scatter([], [], s=40, color=colour, marker=_MARKERS[place // len(_SPARE) % len(_MARKERS)], label=module)
        for place, (module, colour) in enumerate(colours.items())
        if module
    ]
    legend = axes.legend(handles=handles, fontsize=7, loc="lower right", frameon=False)
    for text in legend.get_texts():
        text.set_color(TEXT)


def _module_colours(shown: Sequence[Placed]) -> dict[str, str]:
    modules = sorted({one.point.module for one in shown})
    return {module: _SPARE[place % len(_SPARE)] for place, module in enumerate(modules)}


def _same(roofs: dict[str, float]) -> dict[float, str]:
    """Dtypes by rate: those of one rate share a roof and its label."""
    named: dict[float, str] = {}
    for dtype, rate in roofs.items():
        named[rate] = f"{named[rate]}, {dtype}" if rate in named else dtype
    return named


def _intensity(one: Placed) -> float:
    return one.point.work.intensity_flop_per_byte
