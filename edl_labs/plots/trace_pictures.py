"""Pictures of traces: a timeline, shares of wall time, the depth of the launch queue, and all of a diagnosis."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from edl_labs.plots.style import BLUE, GREEN, HATCHING, ON_COLOUR, ORANGE, PURPLE, TEXT, dress, subplots
from edl_labs.plots.timeline_picture import draw_timeline
from edl_labs.trace.analysed_trace import AnalysedTrace
from edl_labs.trace.causes import BY_NAME, named_cause
from edl_labs.trace.trace_table import DEVICE_KINDS, HOST_KINDS, NUMBER, Trace
from edl_labs.units import percent, seconds
from edl_labs.virtual import Span, Timeline

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from edl_labs.trace import Attribution, Diagnosis

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
            # What is around the steps or between them is not the loop.
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


_PASSES = {"forward": (GREEN, ""), "backward": (BLUE, "\\\\"), None: (ORANGE, "")}
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
    colour, hatch = _PASSES.get(event.get("cat"), _PASSES[None])
    look: dict[str, Any] = {"color": colour, "hatch": hatch, "edgecolor": HATCHING, "linewidth": 0.6}
    axes.barh(depth, spent_s, left=begin_s, height=0.9, **look)
    if whole_s and spent_s / whole_s * _CHARACTERS > len(event["name"]) + 1:
        place = begin_s + spent_s / 2, depth
        axes.text(*place, event["name"], color=ON_COLOUR, ha="center", va="center", fontsize="x-small", clip_on=True)


def _passes_legend(axes: Axes, cats: set[Any]) -> None:
    from matplotlib.patches import Patch

    handles = [
        Patch(facecolor=colour, hatch=hatch, edgecolor=HATCHING, label=cat)
        for cat, (colour, hatch) in _PASSES.items()
        if cat is not None and cat in cats
    ]
    if handles:
        axes.legend(
            handles=handles, loc="upper left", bbox_to_anchor=(0, -0.12), ncols=2, frameon=False, labelcolor=TEXT
        )


_SPAN_KINDS = {
    "launch": "call",
    "copy call": "call",
    "sync": "wait",
    "queue full": "wait",
    "kernel": "kernel",
    "copy": "copy",
}
# A share below this is a bar that is not visible.
_LEAST = 0.004
# A picture of a step that takes no time is as wide as the profilers' unit.
_LEAST_WIDTH_S = 1e-9


def draw_shares(axes: Axes, attribution: Attribution, *, title: str = "") -> Axes:
    """One bar a cause: its share of wall time with the interval over steps, the largest on top."""
    shares = attribution.shares
    causes = sorted((cause for cause in shares if shares[cause] >= _LEAST), key=lambda cause: shares[cause])
    for place, cause in enumerate(causes):
        _bar(axes, place, shares[cause], cause)
        low, high = attribution.intervals[cause]
        if not math.isnan(low) and high > low:
            axes.plot([low, high], [place, place], color=TEXT, linewidth=1.5)
        end = shares[cause] if math.isnan(high) else max(shares[cause], high)
        axes.text(end + 0.015, place, percent(shares[cause], digits=2), va="center", color=TEXT, fontsize="small")
    axes.set(yticks=range(len(causes)), yticklabels=causes, xlim=(0, 1.12), title=title or "share of wall time")
    axes.xaxis.set_major_formatter(lambda value, _: percent(value) if value <= 1 else "")
    return dress(axes)


def _bar(axes: Axes, place: int, width: float, cause: str) -> None:
    look = BY_NAME[cause]
    axes.barh(place, width, color=look.colour, hatch=look.hatch, edgecolor=ON_COLOUR, linewidth=0)


def draw_trace(
    axes: Axes,
    trace: Trace | AnalysedTrace,
    *,
    start_s: float | None = None,
    end_s: float | None = None,
    title: str = "",
) -> Axes:
    """The host and each row of the device between two moments; a middle step unless they are given."""
    analysed = AnalysedTrace.of(trace)
    low, high = _middle_step(analysed)
    start_s, end_s = low if start_s is None else start_s, high if end_s is None else end_s
    return draw_timeline(axes, _timeline(analysed.trace, start_s, end_s), end_s=end_s - start_s, title=title)


def draw_queue_depth(
    axes: Axes,
    trace: Trace | AnalysedTrace,
    *,
    start_s: float | None = None,
    end_s: float | None = None,
    title: str = "",
) -> Axes:
    """How many operations are issued and not yet begun; at nought the device waits for the host."""
    analysed = AnalysedTrace.of(trace)
    low, high = _middle_step(analysed)
    start_s, end_s = low if start_s is None else start_s, high if end_s is None else end_s
    times, depths = queue_depth(analysed)
    inside = [(t - start_s, d) for t, d in zip(times, depths, strict=True) if start_s <= t <= end_s]
    before = [d for t, d in zip(times, depths, strict=True) if t < start_s]
    points = [(0.0, before[-1] if before else 0), *inside]
    points.append((end_s - start_s, points[-1][1]))
    axes.step([t for t, _ in points], [d for _, d in points], where="post", color=ORANGE)
    axes.set(xlim=(0, end_s - start_s), ylabel="in the queue", title=title or "launch queue")
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_formatter(lambda value, _: seconds(value))
    return dress(axes)


def queue_depth(trace: Trace | AnalysedTrace) -> tuple[list[float], list[int]]:
    """(moments in seconds, depth from then on): operations whose call is over and that have not begun."""
    analysed = AnalysedTrace.of(trace)
    changes: list[tuple[float, int]] = []
    for operation in analysed.device.operations:
        if operation.call >= 0:
            issued = min(float(analysed.trace.end_s[operation.call]), operation.start_s)
            changes += [(issued, 1), (operation.start_s, -1)]
    times: list[float] = []
    depths: list[int] = []
    depth = 0
    for moment, change in sorted(changes, key=lambda item: (item[0], -item[1])):
        depth += change
        if times and times[-1] == moment:
            depths[-1] = depth
        else:
            times.append(moment)
            depths.append(depth)
    return times, depths


def draw_diagnosis(diagnosis: Diagnosis) -> Figure:
    """The four pictures of a diagnosis in one figure; without a device gains replace the queue."""
    trace, analysed = diagnosis.trace, diagnosis.analysis()
    figure, grid = subplots(2, 2, figsize=(12, 7), gridspec_kw={"width_ratios": [3, 2]})
    start_s, end_s = _middle_step(analysed)
    draw_trace(grid[0][0], analysed, title=_titled(trace, f"one step of {diagnosis.name}: {seconds(end_s - start_s)}"))
    draw_shares(grid[0][1], diagnosis.attribution, title=f"{diagnosis.verdict}: shares of wall time")
    if diagnosis.attribution.on_device:
        draw_queue_depth(
            grid[1][0], analysed, title="launch queue in the same step (at 0, the device waits for the host)"
        )
    else:
        draw_gains(grid[1][0], diagnosis)
    draw_flame(grid[1][1], trace, title="host, all steps: time by caller")
    return figure


def draw_gains(axes: Axes, diagnosis: Diagnosis, *, title: str = "") -> Axes:
    """By cause the time of a step without it, as predicted, and as tried where it was."""
    gains = diagnosis.shown_gains()[::-1]
    for place, gain in enumerate(gains):
        _bar(axes, place, gain.after_s, gain.cause)
    for ablation in diagnosis.ablations:
        places = [place for place, gain in enumerate(gains) if gain.cause == ablation.cause]
        axes.plot([ablation.after_s] * len(places), places, "D", color=TEXT, label="tried")
    axes.axvline(diagnosis.attribution.wall_s, color=TEXT, linestyle=":")
    axes.set(yticks=range(len(gains)), yticklabels=[f"no {gain.cause}" for gain in gains])
    axes.set_title(title or "time of a step without each cause (dotted: as traced)")
    axes.xaxis.set_major_formatter(lambda value, _: seconds(value))
    return dress(axes)


def _titled(trace: Trace, text: str) -> str:
    return f"modelled; {text}" if trace.origin == "VirtualGPU" else text


def _middle_step(analysed: AnalysedTrace) -> tuple[float, float]:
    """From the start to the end of a step in the middle, as the device sees it."""
    bounds = analysed.step_bounds()
    middle = (len(bounds) - 1) // 2
    return bounds[middle], max(bounds[middle + 1], bounds[middle] + _LEAST_WIDTH_S)


def _timeline(trace: Trace, start_s: float, end_s: float) -> Timeline:
    rows = list(dict.fromkeys(trace.rows[trace.row[i]] for i in trace.select(*HOST_KINDS)))
    shown = (trace.end_s > start_s) & (trace.start_s < end_s)
    spans = []
    for i in shown.nonzero()[0]:
        event = trace.event(int(i))
        unseen = event.kind in ("step", "python") or (event.kind == "annotation" and not _only_annotated(event.name))
        if unseen or event.end_s <= event.start_s:
            continue
        if event.kind == "operator" and trace.parent[i] >= 0 and trace.event(int(trace.parent[i])).kind == "operator":
            continue
        kind = _SPAN_KINDS.get(event.kind, "work")
        row = event.row if event.kind in DEVICE_KINDS else _host_row(rows, event.row)
        spans.append(Span(row, kind, event.name, event.start_s - start_s, event.end_s - start_s))
    order = {row: place for place, row in enumerate(dict.fromkeys(s.row for s in sorted(spans, key=_first)))}
    return Timeline(tuple(sorted(spans, key=lambda span: (order[span.row], span.start_s))))


def _only_annotated(name: str) -> bool:
    """Whether an annotation tells of a cause, such as waiting for data, that no event of another kind shows."""
    cause = named_cause(name)
    return cause is not None and not BY_NAME[cause].kinds


def _first(span: Span) -> tuple[bool, str]:
    return span.kind in ("kernel", "copy"), span.row


def _host_row(rows: list[str], row: str) -> str:
    """The threads of the host by number: their names are too long for the margin."""
    return "host" if len(rows) == 1 or row == "host" else f"thread {rows.index(row) + 1}"
