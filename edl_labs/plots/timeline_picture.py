"""The picture of a timeline: the host on top, then streams, then copy engines, over time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from edl_labs.plots.style import BLUE, GREEN, GREY, HATCHING, ON_COLOUR, ORANGE, PURPLE, RED, TEXT, dress
from edl_labs.units import seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from edl_labs.virtual.timeline import Span, Timeline

# Colour is never the only sign: what shares a row has another hatch.
KINDS = {
    "call": (ORANGE, "", "host calls"),
    "work": (GREEN, "\\\\", "host works"),
    "load": (RED, "xx", "host loads"),
    "wait": (GREY, "////", "host waits"),
    "kernel": (BLUE, "", "kernels"),
    "backward": (PURPLE, "||", "backward passes"),
    "copy": (PURPLE, "..", "copies"),
    "comm": (ORANGE, "//", "communication"),
}
_HEIGHT = 0.7  # of a row: the rest is the gap to the next one
# A picture is about 700 pixels wide; what is thinner than one is drawn as wide as one.
_PIXELS = 700
_HATCHED = 6  # pixels: a hatch is not seen in what is narrower, and is most of the time that a picture takes
_RESOLUTION = 1500  # two steps a pixel: what is joined below that cannot be told apart
_NAMED = 60  # more names a row than anybody reads, and text is slow to draw
_CHARACTERS = 90  # small ones that a picture holds side by side


def draw_timeline(
    axes: Axes,
    timeline: Timeline,
    *,
    start_s: float = 0.0,
    end_s: float | None = None,
    title: str = "",
    rows: Sequence[str] = (),
    has_legend: bool = True,
) -> Axes:
    """Draw the spans between `start_s` and `end_s` (the end, unless given), one line a row, with names where they fit.

    `rows` are all shown in that order; without them, those that have a span there.

    Spans too short for the picture are drawn together, so that a timeline of any length takes bounded time and memory.
    No bar is thinner than about a pixel, and thin bars lie on top of others.
    """
    stop_s = max(timeline.makespan_s if end_s is None else end_s, start_s + 1e-12)
    shown = [span for span in timeline.spans if span.end_s > start_s and span.start_s < stop_s]
    rows = rows or [row for row in timeline.rows if any(span.row == row for span in shown)]
    for place, row in enumerate(rows):
        mine = [span for span in shown if span.row == row]
        _draw_row(axes, place, mine, start_s=start_s, stop_s=stop_s)
    axes.set(
        xlim=(start_s, stop_s),
        ylim=(max(len(rows), 1) - 0.5, -0.5),
        yticks=range(len(rows)),
        yticklabels=rows,
        title=title,
    )
    axes.xaxis.set_major_formatter(lambda value, _: seconds(value))
    dress(axes)
    if has_legend:
        draw_legend(axes, {span.kind for span in shown})
    return axes


def _draw_row(axes: Axes, place: int, spans: list[Span], *, start_s: float, stop_s: float) -> None:
    finest_s = (stop_s - start_s) / _RESOLUTION
    for kind, (colour, hatch, _) in KINDS.items():
        bars = list(_merged([span for span in spans if span.kind == kind], finest_s))
        pixel_s = (stop_s - start_s) / _PIXELS
        wide = [(start, width) for start, width in bars if width >= pixel_s]
        # What begins at the right edge is moved to its left, or it would be cut off.
        thin = [(min(start, stop_s - pixel_s), pixel_s) for start, width in bars if width < pixel_s]
        hatched = [(start, width) for start, width in wide if hatch and width >= _HATCHED * pixel_s]
        # An edge tells neighbours apart; a bar of a few pixels would be all edge, and edges take time to draw.
        edged = [(start, width) for start, width in wide if not hatch and width >= _HATCHED * pixel_s]
        plain = [(start, width) for start, width in wide if width < _HATCHED * pixel_s]
        across = (place - _HEIGHT / 2, _HEIGHT)
        if hatched:
            axes.broken_barh(hatched, across, facecolor=colour, edgecolor=HATCHING, hatch=hatch, linewidth=0.0)
        if edged:
            axes.broken_barh(edged, across, facecolor=colour, edgecolor=HATCHING, linewidth=0.4)
        if plain:
            axes.broken_barh(plain, across, facecolor=colour, linewidth=0.0)
        if thin:
            axes.broken_barh(thin, across, facecolor=colour, linewidth=0.0, zorder=1.5)
    for span in _fitting(spans, stop_s - start_s):
        axes.text(
            (max(span.start_s, start_s) + min(span.end_s, stop_s)) / 2,
            place,
            span.name,
            color=ON_COLOUR,
            ha="center",
            va="center",
            fontsize="x-small",
            clip_on=True,
        )


def _merged(spans: list[Span], finest_s: float) -> Iterable[tuple[float, float]]:
    """(start, width) of bars: spans, those closer together than a pixel joined where both are that short."""
    start = stop = None
    for span in spans:
        if start is not None and stop is not None:
            tiny = span.end_s - span.start_s < finest_s or stop - start < finest_s
            if tiny and span.start_s - stop < finest_s:
                stop = max(stop, span.end_s)
                continue
            yield start, stop - start
        start, stop = span.start_s, span.end_s
    if start is not None and stop is not None:
        yield start, stop - start


def _fitting(spans: list[Span], width_s: float) -> list[Span]:
    """Spans with room for their name; of spans that lie in one another the outer one, which comes first."""
    named: list[Span] = []
    for span in spans:
        if span.kind == "wait" or (span.end_s - span.start_s) / width_s * _CHARACTERS <= len(span.name) + 1:
            continue
        if not named or span.start_s >= named[-1].end_s:
            named.append(span)
    return named[:_NAMED]


def draw_legend(axes: Axes, kinds: Collection[str]) -> None:
    """Say below the axes what the colours and hatches of `kinds` are."""
    from matplotlib.patches import Patch

    handles = [
        Patch(facecolor=colour, hatch=hatch, edgecolor=HATCHING if hatch else colour, label=label)
        for kind, (colour, hatch, label) in KINDS.items()
        if kind in kinds
    ]
    if handles:
        axes.legend(
            handles=handles,
            loc="upper left",
            bbox_to_anchor=(0, -0.12),
            ncols=len(handles),
            frameon=False,
            labelcolor=TEXT,
        )
