"""The picture of nested trace events: each call lies below the one around it, forward and backward in two colours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from edl_labs.plots.style import BLUE, GREEN, ON_COLOUR, ORANGE, TEXT, dress
from edl_labs.units import seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = {"forward": GREEN, "backward": BLUE}
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
        _draw(axes, event, begin - start_s, end - begin, depth=len(around), whole_s=whole_s)
        around.append(end)
        deepest = max(deepest, len(around))
    axes.set(xlim=(0, whole_s or 1e-6), ylim=(max(deepest, 1) - 0.5, -0.5), yticks=[], title=title)
    axes.xaxis.set_major_formatter(lambda value, _: seconds(value))
    dress(axes)
    _legend(axes, {event.get("cat") for _, _, event in spans})
    return axes


def _draw(axes: Axes, event: Any, begin_s: float, spent_s: float, *, depth: int, whole_s: float) -> None:
    colour = _COLOURS.get(event.get("cat"), ORANGE)
    axes.barh(depth, spent_s, left=begin_s, height=0.9, color=colour, edgecolor=ON_COLOUR, linewidth=0.6)
    if whole_s and spent_s / whole_s * _CHARACTERS > len(event["name"]) + 1:
        place = begin_s + spent_s / 2, depth
        axes.text(*place, event["name"], color=ON_COLOUR, ha="center", va="center", fontsize="x-small", clip_on=True)


def _legend(axes: Axes, cats: set[Any]) -> None:
    from matplotlib.patches import Patch

    handles = [Patch(facecolor=colour, label=cat) for cat, colour in _COLOURS.items() if cat in cats]
    if handles:
        axes.legend(
            handles=handles, loc="upper left", bbox_to_anchor=(0, -0.12), ncols=2, frameon=False, labelcolor=TEXT
        )
