"""The roofline picture: every ceiling of a machine, its ridges, and measured points with their doubt."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from edl_labs.errors import UsageError
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


def roofline(
    axes: Axes,
    machine: Machine,
    points: Iterable[Point] = (),
    *,
    dtypes: Sequence[str] | None = None,
    title: str | None = None,
) -> Axes:
    """Attainable FLOP/s over intensity: slopes of memory levels, flat roofs of dtypes, ridge points, points.

    A point's area grows with the time a step loses there, its bars are the interval of its time; the worst are named.
    Below stands where you are, in words. AboveRoof where a point lies above its roof; points of no FLOPs have no place
    in a log-log picture and are told in words alone. `dtypes` limits the flat roofs (those of the points, or all).
    """
    placed = place_all(machine, points)
    shown = drawn(placed)
    roofs = _roofs(machine, shown, dtypes)
    low, high = _span(machine, shown, roofs)
    _draw_slopes(axes, machine, max(roofs.values()), low)
    _draw_flats(axes, machine, roofs, high)
    colours = _module_colours(shown)
    for index, one in enumerate(shown):
        _draw_point(axes, one, colours, index=index, worst=max(p.lost_s for p in shown))
    _name_points(axes, shown[:_MOST_NAMES])
    axes.set(xscale="log", yscale="log", xlim=(low, high), xlabel="arithmetic intensity, FLOP/B")
    axes.set(ylabel="FLOP/s", title=title or f"{machine.name}, {machine.origin}")
    axes.yaxis.set_major_formatter(lambda value, _: si(value, "FLOP/s"))
    axes.grid(alpha=0.25, which="major")
    if placed:
        _say_where(axes, placed)
    _legend(axes, colours)
    return dress(axes)


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
            next="leave dtypes out, or name some of these",
        )
    return {dtype: machine.matmul[dtype].rate for dtype in wanted}


def _span(machine: Machine, shown: Sequence[Placed], roofs: dict[str, float]) -> tuple[float, float]:
    ridges = [rate / level.ceiling().rate for rate in roofs.values() for level in machine.levels]
    seen = [_intensity(one) for one in shown]
    return 0.3 * min([*ridges, *seen, 0.25]), 5 * max([*ridges, *seen])


def _draw_slopes(axes: Axes, machine: Machine, top: float, low: float) -> None:
    """One line for each memory level's fastest pattern; slower patterns of main memory dotted."""
    for place, level in enumerate(machine.levels):
        slope = level.ceiling().rate
        axes.plot([low, top / slope], [low * slope, top], color=BLUE, linewidth=1.7 if level is machine.memory else 1.0)
        label = f"{level.name} {level.fastest}, {byte_rate(slope)}"
        at = low * 1.3 * 2.4 ** (len(machine.levels) - 1 - place)
        axes.text(at, at * slope * 1.12, label, color=BLUE, fontsize=7, rotation=_angle(axes), rotation_mode="anchor")
    main = machine.memory
    for pattern, ceiling in main.bandwidth.items():
        if pattern != main.fastest:
            axes.plot([low, top / ceiling.rate], [low * ceiling.rate, top], color=BLUE, linewidth=0.8, linestyle=":")


def _draw_flats(axes: Axes, machine: Machine, roofs: dict[str, float], high: float) -> None:
    for rate, names in _same(roofs).items():
        ridge = rate / machine.memory.ceiling().rate
        nearest = rate / machine.levels[0].ceiling().rate
        axes.plot([nearest, high], [rate, rate], color=ORANGE, linewidth=1.7)
        axes.text(high * 0.95, rate * 1.06, f"{names} {flop_rate(rate)}", color=ORANGE, fontsize=7, ha="right")
        axes.plot([ridge], [rate], "o", color=ORANGE, markersize=4, markerfacecolor="none")
        axes.annotate(
            f"ridge {ridge:.3g}", (ridge, rate), (0, 5), textcoords="offset points", fontsize=7, color=TEXT, ha="right"
        )


def _draw_point(axes: Axes, one: Placed, colours: dict[str, str], *, index: int, worst: float) -> None:
    point, x = one.point, _intensity(one)
    share = one.lost_s / worst if worst else 0.0
    area = _SMALLEST + (_LARGEST - _SMALLEST) * share
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


def _name_points(axes: Axes, shown: Sequence[Placed]) -> None:
    for place, one in enumerate(shown):
        name = f"{one.point.module}.{one.point.name}" if one.point.module else one.point.name
        is_left = place % 2 == 1
        offset, side = ((-9, -3), "right") if is_left else ((9, -3), "left")
        spot = (_intensity(one), one.point.flop_per_s)
        axes.annotate(name, spot, offset, textcoords="offset points", fontsize=7, color=TEXT, ha=side)


def _say_where(axes: Axes, placed: Sequence[Placed]) -> None:
    axes.text(0.0, -0.17, you_are_here(placed), transform=axes.transAxes, fontsize=7.5, color=TEXT, va="top")


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


def _angle(axes: Axes) -> float:
    # Slopes are parallel on log-log axes; the exact angle depends on the window, near enough is readable.
    return 38.0
