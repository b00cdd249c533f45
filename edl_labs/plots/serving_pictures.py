"""Pictures of a service: latency against throughput with its knee, the block pool over time, and who ran when."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from edl_labs.plots.style import BLUE, GREY, HATCHING, ORANGE, PURPLE, RED, TEXT, dress
from edl_labs.units import percent, seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PS = 1e-12  # seconds: moments of a server are whole picoseconds
_PHASES = {
    "wait": (GREY, "////", "waits"),
    "queue": (GREY, "////", "waits"),
    "prefill": (ORANGE, "", "prompt"),
    "decode": (BLUE, "", "answer"),
}
_EDGES = {"prefill": 2.0}  # points: some 50 ms in a picture of a minute would not be seen
_MOST_ROWS = 80  # requests of a picture: more are thinner than a pixel or two
_STEPS = 600  # moments of a picture: more than its pixels are wide


def draw_load_curve(axes: Axes, curve: Any, *, title: str = "", limit_s: float | None = None) -> Axes:
    """p50 and p99 of a `LoadCurve`'s latency over its throughput, the knee named; with a limit as a line."""
    from matplotlib.ticker import LogLocator

    points = [one for one in curve.points if math.isfinite(one.latency_p99_s)]
    across = [one.request_per_s for one in points]
    for name, mark, colour in (("p50", "o", BLUE), ("p99", "s", ORANGE)):
        values = [getattr(one, f"latency_{name}_s") for one in points]
        axes.plot(across, values, marker=mark, color=colour, label=name)
    knee = curve.knee
    axes.plot([knee.request_per_s], [knee.latency_p99_s], marker="D", markersize=9, color=RED, linestyle="none")
    told = f"knee: {knee.offered_per_s:g}/s, busy {percent(knee.utilisation, digits=2)}"
    axes.annotate(
        told, (knee.request_per_s, knee.latency_p99_s), xytext=(-8, 14), textcoords="offset points", ha="right",
        fontsize="small", color=TEXT,
    )  # fmt: skip
    if limit_s is not None:
        axes.axhline(limit_s, color=RED, linestyle="--", linewidth=1, label=f"limit {seconds(limit_s)}")
    axes.set(xlabel="answers per second", ylabel="latency", yscale="log", title=title or "Latency against throughput")
    axes.set(xlim=(0, None))
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(lambda value, _: seconds(value))
    axes.yaxis.set_minor_formatter("")
    axes.legend(frameon=False, labelcolor=TEXT, loc="upper left")
    return dress(axes)


def draw_pool(axes: Axes, run: Any, *, title: str = "") -> Axes:
    """The block pool of a `ServerReplay` over time: blocks with tokens, and blocks held and empty."""
    moments = run.moments[:: max(1, len(run.moments) // _STEPS)]
    times = [one.time_ps * _PS for one in moments]
    filled = [one.tokens / run.machine.block_tokens for one in moments]
    empty = [max(0.0, one.held - full) for one, full in zip(moments, filled, strict=True)]
    look: dict[str, Any] = {"edgecolor": HATCHING, "linewidth": 0, "step": "post"}
    axes.fill_between(times, filled, color=BLUE, label="hold tokens", linewidth=0, step="post")
    top = [a + b for a, b in zip(filled, empty, strict=True)]
    axes.fill_between(times, filled, top, facecolor=ORANGE, hatch="//", label="held, empty", **look)
    axes.axhline(run.machine.blocks, color=TEXT, linewidth=1, linestyle=":", label="pool")
    axes.set(ylim=(0, 1.3 * run.machine.blocks), ylabel="blocks", xlabel="time")
    axes.set_title(
        f"{title + ': ' if title else ''}{percent(run.filled_share, digits=2)} of the allocated cache is filled"
    )
    axes.xaxis.set_major_formatter(lambda value, _: seconds(value))
    axes.legend(frameon=False, labelcolor=TEXT, ncols=4, loc="upper left", fontsize="small")
    return dress(axes)


def draw_requests(axes: Axes, run: Any, *, title: str = "") -> Axes:
    """A line a request of a `ServerReplay`: it waits, its prompt runs, its answer comes; crosses are preemptions."""
    from matplotlib.patches import Patch

    shown = range(min(len(run.phases), _MOST_ROWS))
    for kinds in (("wait", "queue"), ("decode",), ("prefill",)):  # a prompt is thin: in front of its answer
        colour, hatch, _ = _PHASES[kinds[0]]
        for row in shown:
            bars = [(a * _PS, (b - a) * _PS) for kind, a, b in run.phases[row] if kind in kinds]
            if bars:
                axes.broken_barh(
                    bars, (row - 0.4, 0.8), facecolor=colour, hatch=hatch, edgecolor=HATCHING if hatch else colour,
                    linewidth=0.0 if hatch else _EDGES.get(kinds[0], 0.6),
                )  # fmt: skip
    taken_out = [
        (phase[1] * _PS, row)
        for row in shown
        for before, phase in zip(run.phases[row], run.phases[row][1:], strict=False)
        if before[0] == "decode"
    ]
    if taken_out:
        axes.plot(*zip(*taken_out, strict=True), "x", color=PURPLE, markersize=6, label="preempted")
    handles = [
        Patch(facecolor=colour, hatch=hatch, edgecolor=HATCHING, label=label)
        for kind, (colour, hatch, label) in _PHASES.items()
        if kind != "queue"
    ]
    marks = axes.get_legend_handles_labels()[0]
    axes.legend(
        handles=[*handles, *marks], frameon=False, labelcolor=TEXT, ncols=4, loc="upper right", fontsize="small"
    )
    told = (
        f"p99 of the time to the first word: {seconds(run.time_to_first_token_s(0.99))}"
        if not run.unfinished
        else "not all requests finish"
    )
    axes.set(ylim=(len(shown) - 0.4, -0.6), ylabel="request", xlabel="time", xlim=(0, None))
    axes.set_title(f"{title + ': ' if title else ''}{told}")
    axes.xaxis.set_major_formatter(lambda value, _: seconds(value))
    return dress(axes)
