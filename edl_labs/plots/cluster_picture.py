"""The picture of a cluster: ranks over time, kernels above and communication below, joined where ranks meet."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from edl_labs.plots.style import BLUE, GREEN, GREY, HATCHING, ON_COLOUR, ORANGE, PURPLE, RED, TEXT, dress
from edl_labs.units import seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from edl_labs.virtual.cluster.cluster_timeline import ClusterSpan, ClusterTimeline

# Colour is never the only sign: what shares a half of a row has another hatch.
KINDS = {
    "kernel": (BLUE, "", "kernels"),
    "backward": (PURPLE, "||", "backward passes"),
    "copy": (PURPLE, "..", "copies"),
    "collective": (ORANGE, "//", "collectives"),
    "send": (GREEN, "\\\\", "sends"),
    "recv": (RED, "xx", "receives"),
}
_ABOVE = ("kernel", "backward", "copy")
_PLACES = {
    "send": (0.0, 0.5),
    "recv": (0.5, 0.5),
}  # from where in its half of a row, and how much of it: both may be on
_HALF = 0.38  # of a row for each half: the rest is the gap to the next rank
_PIXELS = 700  # a picture's width; nothing is drawn thinner than one
_MOST_JOINED = 300  # more lines than anybody can follow, and slow to draw
_MOST_RANKS = 64  # rows that can still be told apart
_CHARACTERS = 90  # small ones that a picture holds side by side


def draw_cluster(
    axes: Axes, timeline: ClusterTimeline, *, start_s: float = 0.0, end_s: float | None = None, title: str = ""
) -> Axes:
    """Draw what runs between `start_s` and `end_s` (the end, unless given): a row a rank, at most 64 of them.

    Each row has compute and copies above, communication below: sends over receives. Grey lines join the ranks of a
    collective and the two of a message, where it begins; a thin grey bar before it is the time that a rank waits there
    for the others.
    """
    stop_s = max(timeline.makespan_s if end_s is None else end_s, start_s + 1e-12)
    ranks = min(timeline.ranks, _MOST_RANKS)
    shown = [one for one in timeline.spans if one.end_s > start_s and one.start_s < stop_s and one.rank < ranks]
    _draw_bars(axes, shown, stop_s - start_s)
    _draw_waits(axes, shown, start_s)
    _join(axes, shown, start_s)
    _name(axes, shown, start_s, stop_s)
    axes.set(
        xlim=(start_s, stop_s),
        ylim=(ranks - 0.5, -0.5),
        yticks=range(ranks),
        yticklabels=[f"rank {rank}" for rank in range(ranks)],
        title=title,
    )
    axes.xaxis.set_major_formatter(lambda value, _: seconds(value))
    dress(axes)
    _legend(axes, {_kind(span) for span in shown}, joined=any(span.joined is not None for span in shown))
    return axes


def _kind(span: ClusterSpan) -> str:
    """Its kind in KINDS: a kernel that is called `backward …` is a pass back."""
    return "backward" if span.kind == "kernel" and span.name.startswith("backward") else span.kind


def _extent(kind: str, rank: int) -> tuple[float, float]:
    """The top and the height of a bar."""
    begin, share = _PLACES.get(kind, (0.0, 1.0))
    return (rank - _HALF if kind in _ABOVE else rank) + begin * _HALF, share * _HALF


def _draw_bars(axes: Axes, shown: list[ClusterSpan], width_s: float) -> None:
    rows: dict[tuple[str, int], list[tuple[float, float]]] = defaultdict(list)
    for span in shown:
        rows[_kind(span), span.rank].append((span.start_s, max(span.end_s - span.start_s, width_s / _PIXELS)))
    for (kind, rank), bars in rows.items():
        colour, hatch, _ = KINDS[kind]
        axes.broken_barh(bars, _extent(kind, rank), facecolor=colour, edgecolor=HATCHING, hatch=hatch, linewidth=0.6)


def _draw_waits(axes: Axes, shown: list[ClusterSpan], start_s: float) -> None:
    rows = defaultdict(list)
    for span in shown:
        since_s = max(span.start_s - span.waited_s, start_s)
        if span.joined is not None and since_s < span.start_s:
            rows[span.rank].append((since_s, span.start_s - since_s))
    for rank, bars in rows.items():
        axes.broken_barh(bars, (rank + 0.4 * _HALF, 0.2 * _HALF), facecolor=GREY, linewidth=0.0, zorder=1.5)


def _join(axes: Axes, shown: list[ClusterSpan], start_s: float) -> None:
    """One line for each collective or message, from its first rank to its last."""
    met: dict[int, list[ClusterSpan]] = defaultdict(list)
    for span in shown:
        if span.joined is not None and span.start_s >= start_s:
            met[span.joined].append(span)
    several = [spans for spans in met.values() if len(spans) > 1][:_MOST_JOINED]
    for spans in several:
        ranks = sorted(span.rank for span in spans)
        axes.vlines(spans[0].start_s, ranks[0] + _HALF / 2, ranks[-1] + _HALF / 2, color=TEXT, linewidth=0.8, alpha=0.7)
        axes.plot(
            [spans[0].start_s] * len(ranks), [rank + _HALF / 2 for rank in ranks], "o", color=TEXT, markersize=2.5
        )


def _name(axes: Axes, shown: list[ClusterSpan], start_s: float, stop_s: float) -> None:
    look: dict[str, Any] = {"color": ON_COLOUR, "ha": "center", "va": "center", "fontsize": "x-small", "clip_on": True}
    for span in shown:
        low_s, high_s = max(span.start_s, start_s), min(span.end_s, stop_s)
        room = (high_s - low_s) / (stop_s - start_s) * _CHARACTERS - 1
        # "all_reduce 3 (bucket 2)" is "bucket 2" where there is less room.
        short = span.name.rpartition("(")[2].rstrip(")") if span.joined is not None else span.name
        text = next((one for one in (span.name, short) if len(one) < room), "")
        if text:
            top, height = _extent(_kind(span), span.rank)
            axes.text((low_s + high_s) / 2, top + height / 2, text, **look)


def _legend(axes: Axes, kinds: set[str], *, joined: bool) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Patch | Line2D] = [
        Patch(facecolor=colour, hatch=hatch, edgecolor=HATCHING if hatch else colour, label=label)
        for kind, (colour, hatch, label) in KINDS.items()
        if kind in kinds
    ]
    if joined:
        handles.append(Patch(facecolor=GREY, label="waits for others"))
        handles.append(
            Line2D([], [], color=TEXT, marker="o", markersize=3, linewidth=0.8, label="one call of several ranks")
        )
    if handles:
        axes.legend(
            handles=handles, loc="upper left", bbox_to_anchor=(0, -0.12), ncols=3, frameon=False, labelcolor=TEXT
        )
