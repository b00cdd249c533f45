"""Pictures of memory: a step by category, the allocator's segments with their holes, and the U-curve of segments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from edl_labs.plots.style import BLUE, GREEN, GREY, HATCHING, ON_COLOUR, ORANGE, PURPLE, RED, TEXT, dress
from edl_labs.units import byte_count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = {
    "parameters": GREY, "inputs": TEXT, "gradients": ORANGE, "optimizer": PURPLE, "activations": BLUE,
    "cast cache": GREEN, "temporaries": RED,
}  # fmt: skip
_HATCHES = dict(zip(_COLOURS, ("", "..", "//", "xx", "\\\\", "oo", "++"), strict=True))
_IN_USE, _HOLE, _WAITING = BLUE, ORANGE, PURPLE
_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_ROW_BYTES = 32 << 20  # a row of the map holds the largest segment of common steps' small tensors


def draw_memory_plan(axes: Axes, plan: Any, *, title: str | None = None) -> Axes:
    """The bytes of a `MemoryPlan` through its step, stacked by category; the peak and its largest owner are named."""
    moments = plan.moments
    places = range(len(moments))
    shown = [name for name in _COLOURS if any(moment.held_bytes.get(name) for moment in moments)]
    stacks = [[moment.held_bytes.get(name, 0) for moment in moments] for name in shown]
    colours, hatches = [_COLOURS[name] for name in shown], [_HATCHES[name] for name in shown]
    look: dict[str, Any] = {"colors": colours, "hatch": hatches, "edgecolor": HATCHING, "linewidth": 0}
    axes.stackplot(places, stacks, labels=shown, step="post", **look)
    at = max(places, key=lambda place: moments[place].total_bytes)
    category = max(plan.peak.held_bytes, key=lambda name: plan.peak.held_bytes[name])
    owner = f", most in {plan.owners[0][0]}" if plan.owners and plan.owners[0][0] and category == "activations" else ""
    _point_out(axes, at, plan.peak_bytes, f"{byte_count(plan.peak_bytes)} in {plan.peak.phase}: {category}{owner}")
    _phases(axes, moments)
    axes.set(xlim=(0, len(moments) - 1), ylim=(0, plan.peak_bytes * 1.25), ylabel="bytes on the device")
    axes.set(xlabel="operations of the step", xticks=[], title=title or f"Memory of a step of {plan.model}")
    return _finished(axes)


def draw_tape(axes: Axes, replay: Any, *, title: str = "Memory of a step") -> Axes:
    """The bytes of a `TapeReplay` over time, with the peak, its operation and its largest owner named."""
    # Of several changes at one instant the last one stays.
    last = {moment.time_s: moment.live_bytes for moment in replay.moments}
    axes.step(list(last), list(last.values()), where="post", color=BLUE, label="bytes on the device")
    text = f"{byte_count(replay.peak_bytes)} at {replay.peak.operation}: {replay.peak_owner}"
    _point_out(axes, replay.peak.time_s, replay.peak_bytes, text)
    axes.set(ylabel="bytes on the device", title=title, ylim=(0, max(1, replay.peak_bytes) * 1.25))
    end_s = max(replay.makespan_s, *last) if replay.makespan_s else 1.0
    scale, unit = next(((size, name) for size, name in _TIMES if end_s >= size), _TIMES[-1])
    axes.set(xlim=(0, end_s), xlabel=f"time [{unit}]")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value / scale:.6g}")
    return _finished(axes, legend=False)


def draw_segments(axes: Axes, replay: Any, *, title: str | None = None) -> Axes:
    """The segments of an `AllocatorReplay` as rows from address 0 on: blocks in use, holes, blocks that wait."""
    rows = list(replay.segments)
    for row, segment in enumerate(rows):
        for block in segment.blocks:
            colour = {"in use": _IN_USE, "free": _HOLE}.get(block.state, _WAITING)
            hatch = {"in use": None, "free": "//"}.get(block.state, "..")
            left, size = (block.address - segment.blocks[0].address) / 2**20, block.size_bytes / 2**20
            axes.barh(row, size, left=left, height=0.7, color=colour, hatch=hatch, edgecolor=ON_COLOUR, linewidth=0.8)
    widest = max((segment.size_bytes for segment in rows), default=_ROW_BYTES) / 2**20
    names = [f"{segment.pool}, stream {segment.stream}" for segment in rows]
    axes.set(yticks=range(len(rows)), yticklabels=names, ylim=(max(len(rows), 1) - 0.4, -0.6), xlim=(0, widest * 1.02))
    holes = replay.reserved_bytes - replay.allocated_bytes
    found = f"{byte_count(replay.allocated_bytes)} in use, {byte_count(holes)} in holes"
    axes.set(xlabel="place in the segment [MiB]", title=title or found)
    for name, colour in (("in use", _IN_USE), ("hole", _HOLE), ("awaits a stream", _WAITING)):
        if name != "awaits a stream" or any(b.state.startswith("await") for s in rows for b in s.blocks):
            hatch = {"in use": None, "hole": "//"}.get(name, "..")
            axes.barh([0], [0], color=colour, label=name, hatch=hatch, edgecolor=ON_COLOUR)
    return _finished(axes)


def u_curve(axes: Axes, held: dict[int, float], *, layers: int, unit: str = "tensors") -> Axes:
    """What is held at the peak over the number of segments, from {segments: held}; the least is pointed out."""
    counts = sorted(held)
    axes.plot(counts, [held[count] for count in counts], "o-", color=BLUE, label=f"{unit} at the peak")
    least = min(held.values())
    best = [count for count in counts if held[count] == least]
    axes.plot(best, [least] * len(best), "o", color=ORANGE, markersize=9, label=f"least: {least:g}")
    for count in counts:
        axes.annotate(
            f"{held[count]:g}", (count, held[count]), xytext=(0, 8), textcoords="offset points", ha="center", color=TEXT
        )
    axes.set_xscale("log", base=2)
    axes.set(xticks=counts, xticklabels=[str(count) for count in counts], ylim=(0, max(held.values()) * 1.2))
    axes.set(xlabel="segments", ylabel=f"{unit} held", title=f"Checkpoints in {layers} layers")
    axes.minorticks_off()
    return _finished(axes)


def _point_out(axes: Axes, x: float, y: float, text: str) -> None:
    axes.plot([x], [y], "o", color=RED, markersize=5)
    left, right = axes.get_xlim()
    middle = (left + right) / 2
    side = "left" if x < middle else "right"
    axes.annotate(text, (x, y), xytext=(0, 9), textcoords="offset points", ha=side, color=TEXT)


def _phases(axes: Axes, moments: Any) -> None:
    begun = 0
    for place in range(1, len(moments) + 1):
        if place == len(moments) or moments[place].phase != moments[begun].phase:
            if begun:
                axes.axvline(begun, color=TEXT, linewidth=0.8, linestyle=":")
            if place - begun > len(moments) / 20:
                where = ((begun + place) / 2, 0)
                text = axes.annotate(moments[begun].phase, where, xytext=(0, -14), textcoords="offset points")
                text.set(ha="center", color=TEXT)
            begun = place
    axes.xaxis.labelpad = 16


def _finished(axes: Axes, *, legend: bool = True) -> Axes:
    if axes.get_ylabel().startswith("bytes"):
        axes.yaxis.set_major_formatter(lambda value, _: byte_count(value))
    if legend and axes.get_legend_handles_labels()[0]:
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), labelcolor=TEXT, frameon=False)
    return dress(axes)
