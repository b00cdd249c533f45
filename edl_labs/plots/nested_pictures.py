"""Pictures of what lies inside what: a flame graph of the host's time, and nested events of a timeline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from edl_labs.plots.style import BLUE, GREEN, ON_COLOUR, ORANGE, PURPLE, TEXT, dress
from edl_labs.trace.trace_table import HOST_KINDS, NUMBER, Trace
from edl_labs.units import seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Deeper calls have no room for their names in a quarter of a figure.
_FLAME_ROWS = 9


def draw_flame(axes: Axes, trace: Trace, *, title: str = "") -> Axes:
    """A flame graph of the host: width is time, each box lies on the one that called it, its bare part is self time."""
    from matplotlib.ticker import MaxNLocator

    total, boxes = _flames(trace)
    # Twelve small characters fit an inch.
    characters = 12 * axes.figure.bbox.width / axes.figure.dpi * axes.get_position().width
    for depth, start, width, name in boxes:
        colour = (BLUE, GREEN, ORANGE, PURPLE)[sum(map(ord, name)) % 4]
        axes.barh(depth, width, left=start, height=0.92, color=colour, edgecolor=ON_COLOUR, linewidth=0.5)
        room = int(width / max(total, 1e-12) * characters)
        if room > 3:
            text = name if len(name) <= room else name[: room - 1] + "…"
            axes.text(
                start + width / 2,
                depth,
                text,
                ha="center",
                va="center",
                color=ON_COLOUR,
                fontsize="x-small",
                clip_on=True,
            )
    top = max((depth for depth, *_ in boxes), default=0)
    axes.set(yticks=[], xlim=(0, max(total, 1e-12)), ylim=(-0.5, top + 0.5), title=title or "host: time by caller")
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(lambda value, _: seconds(value))
    return dress(axes)


def _flames(trace: Trace) -> tuple[float, list[tuple[int, float, float, str]]]:
    """(total seconds, boxes as depth, start, width, name), of equal paths one box."""
    parent = trace.parent.tolist()
    stepped = bool(len(trace.select("step")))
    paths: dict[int, tuple[str, ...]] = {}
    widths: dict[tuple[str, ...], float] = {}
    for i in trace.select(*HOST_KINDS).tolist():
        if trace.kind[i] == NUMBER["step"]:
            path: tuple[str, ...] = ("step",)
        elif parent[i] in paths or not stepped:
            path = (*paths.get(parent[i], ()), trace.names[trace.name[i]])
        else:
            # What is around the steps or beside them is not the loop.
            continue
        if len(path) > _FLAME_ROWS:
            continue
        paths[i] = path
        widths[path] = widths.get(path, 0.0) + float(trace.end_s[i] - trace.start_s[i])
    boxes: list[tuple[int, float, float, str]] = []
    total = _stacked(widths, (), 0.0, boxes)
    return total, boxes


def _stacked(
    widths: dict[tuple[str, ...], float],
    root: tuple[str, ...],
    start: float,
    boxes: list[tuple[int, float, float, str]],
) -> float:
    """Lay out the children of each path side by side, the widest first; give the whole width."""
    children: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for path in widths:
        children.setdefault(path[:-1], []).append(path)
    whole = sum(widths[path] for path in children.get(root, []))
    pending = [(root, start)]
    while pending:
        above, left = pending.pop()
        for path in sorted(children.get(above, []), key=lambda path: -widths[path]):
            if widths[path] > whole / 1000 and len(path) <= _FLAME_ROWS:
                boxes.append((len(path) - 1, left, widths[path], path[-1]))
                pending.append((path, left))
            left += widths[path]
    return whole


_PASSES = {"forward": GREEN, "backward": BLUE}
_CHARACTERS = 100  # small ones that a picture holds side by side


def draw_nested(axes: Axes, events: Iterable[Mapping[str, Any]], *, title: str = "") -> Axes:
    """Draw complete trace events (`ts` and `dur` in microseconds), one row a depth, with names where they fit."""
    spans = sorted(((e["ts"] * 1e-6, (e["ts"] + e["dur"]) * 1e-6, e) for e in events), key=lambda s: (s[0], -s[1]))
    start_s = spans[0][0] if spans else 0.0
    whole_s = max((end for _, end, _ in spans), default=1.0) - start_s
    around: list[float] = []
    deepest = 0
    for begin, end, event in spans:
        while around and around[-1] <= begin:
            around.pop()
        _draw_event(axes, event, begin - start_s, end - begin, depth=len(around), whole_s=whole_s)
        around.append(end)
        deepest = max(deepest, len(around))
    axes.set(xlim=(0, whole_s or 1e-6), ylim=(max(deepest, 1) - 0.5, -0.5), yticks=[], title=title)
    axes.xaxis.set_major_formatter(lambda value, _: seconds(value))
    dress(axes)
    _passes_legend(axes, {event.get("cat") for _, _, event in spans})
    return axes


def _draw_event(axes: Axes, event: Any, begin_s: float, spent_s: float, *, depth: int, whole_s: float) -> None:
    colour = _PASSES.get(event.get("cat"), ORANGE)
    axes.barh(depth, spent_s, left=begin_s, height=0.9, color=colour, edgecolor=ON_COLOUR, linewidth=0.6)
    if whole_s and spent_s / whole_s * _CHARACTERS > len(event["name"]) + 1:
        place = begin_s + spent_s / 2, depth
        axes.text(*place, event["name"], color=ON_COLOUR, ha="center", va="center", fontsize="x-small", clip_on=True)


def _passes_legend(axes: Axes, cats: set[Any]) -> None:
    from matplotlib.patches import Patch

    handles = [Patch(facecolor=colour, label=cat) for cat, colour in _PASSES.items() if cat in cats]
    if handles:
        axes.legend(
            handles=handles, loc="upper left", bbox_to_anchor=(0, -0.12), ncols=2, frameon=False, labelcolor=TEXT
        )
