"""Pictures of data pipelines: what workers do when, the ladder, predictions, decoders, the frontier, the story."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from edl_labs.plots.style import BLUE, COLOURS, GREEN, GREY, HATCHING, MARKS, ON_COLOUR, ORANGE, PURPLE, TEXT, dress
from edl_labs.units import percent, seconds, si

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from edl_labs.pipeline._frontier import Frontier
    from edl_labs.pipeline._measure_ladder import Ladder
    from edl_labs.pipeline._rank_decoders import DecoderRanks
    from edl_labs.pipeline.loader_model import LoaderModel
    from edl_labs.virtual import Timeline

# Colour is never the only sign: what shares a row has another hatch.
KINDS = {
    "cpu": (GREEN, "\\\\", "works on a core"),
    "wait": (GREY, "////", "waits"),
    "read": (PURPLE, "..", "disk reads"),
    "step": (BLUE, "", "step"),
}
_DASHES = ("--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))


def draw_workers(axes: Axes, line: Timeline, *, end_s: float | None = None, title: str = "") -> Axes:
    """What the main process, the device, each worker and each disk do until `end_s`, one row each."""
    from matplotlib.patches import Patch

    stop_s = max(line.makespan_s if end_s is None else end_s, 1e-12)
    shown = [span for span in line.spans if span.start_s < stop_s]
    rows = [row for row in line.rows if any(span.row == row for span in shown)]
    for kind, (colour, hatch, _) in KINDS.items():
        for place, row in enumerate(rows):
            bars = [(s.start_s, s.end_s - s.start_s) for s in shown if s.row == row and s.kind == kind]
            edge = HATCHING if hatch else ON_COLOUR if len(bars) < 200 else colour
            axes.broken_barh(bars, (place - 0.35, 0.7), facecolor=colour, edgecolor=edge, hatch=hatch, linewidth=0.3)
    axes.set(xlim=(0, stop_s), ylim=(max(len(rows), 1) - 0.5, -0.5))
    axes.set_title(title, fontsize="small")
    axes.set_yticks(range(len(rows)), rows)
    axes.xaxis.set_major_formatter(lambda value, _: seconds(value))
    dress(axes)
    there = {span.kind for span in shown}
    handles = [
        Patch(facecolor=c, hatch=h, edgecolor=ON_COLOUR, label=text) for k, (c, h, text) in KINDS.items() if k in there
    ]
    axes.legend(handles=handles, loc="upper left", bbox_to_anchor=(0, -0.12), ncols=4, frameon=False, labelcolor=TEXT)
    return axes


def draw_ladder(axes: Axes, ladder: Ladder) -> Axes:
    """Each stage alone as a bar with its interval, and all up to it as a line."""
    names = [rung.name for rung in ladder.rungs]
    places = range(len(names))
    for place, rung in zip(places, ladder.rungs, strict=True):
        axes.barh([place], [rung.alone_s], height=0.6, **_rung_look(rung.where))
        axes.plot([rung.low_s, rung.high_s], [place, place], color=TEXT, linewidth=1.2)
        axes.annotate(
            seconds(rung.alone_s),
            (rung.high_s, place),
            xytext=(4, 3),
            textcoords="offset points",
            fontsize="small",
            color=TEXT,
        )
    axes.plot([rung.cumulative_s for rung in ladder.rungs], places, "o-", color=GREEN, label="all up to here")
    axes.set_yticks(places, names)
    axes.set(ylim=(len(names) - 0.5, -0.5), xlabel=f"time per sample (page cache {ladder.cache})")
    axes.xaxis.set_major_formatter(lambda value, _: seconds(value))
    axes.barh([0], [0], label="in a worker, alone", **_rung_look("worker"))
    if any(rung.where == "main" for rung in ladder.rungs):
        axes.barh([0], [0], label="in the main process, alone", **_rung_look("main"))
    axes.legend(fontsize="small", labelcolor=TEXT)
    return axes


def _rung_look(where: str) -> dict[str, Any]:
    colour, hatch = (BLUE, "") if where == "worker" else (ORANGE, "//")
    return {"color": colour, "hatch": hatch, "edgecolor": HATCHING, "linewidth": 0}


def draw_prediction(
    axes: Axes,
    predicted: Mapping[int, float],
    measured: Mapping[int, float] | None = None,
    *,
    bounds: Mapping[str, Mapping[int, float]] | None = None,
) -> Axes:
    """Samples a second against workers: predicted as a line, measured as dots, each bound as a thin dashed line."""
    workers = sorted(predicted)
    if bounds:
        for number, (name, values) in enumerate(bounds.items(), start=2):
            points = [n for n in sorted(values) if n in predicted]
            axes.plot(
                points,
                [values[n] for n in points],
                linestyle=_DASHES[number % len(_DASHES)],
                color=COLOURS[number % len(COLOURS)],
                linewidth=1.2,
                label=f"{name} allows",
            )
    axes.plot(workers, [predicted[n] for n in workers], "-", color=BLUE, label="predicted")
    if measured:
        there = sorted(measured)
        axes.plot(there, [measured[n] for n in there], "o", color=ORANGE, label="measured")
    top = max([*predicted.values(), *(measured or {}).values()])
    axes.set(xlabel="workers", ylabel="samples/s", ylim=(0, 1.3 * top))
    axes.set_xticks(workers)
    axes.yaxis.set_major_formatter(_rate)
    axes.legend(fontsize="small", labelcolor=TEXT)
    axes.grid(alpha=0.3)
    return axes


def draw_model(axes: Axes, model: LoaderModel, *, most: int = 8) -> Axes:
    """`draw_prediction` of a loader's model for 1 to `most` workers, with what each part allows."""
    each = {workers: model.bounds(workers) for workers in range(1, most + 1)}
    bounds = {part: {workers: found[part] for workers, found in each.items()} for part in each[1]}
    return draw_prediction(axes, {workers: model.sample_per_s(workers) for workers in each}, bounds=bounds)


def draw_decoders(axes: Axes, ranks: DecoderRanks) -> Axes:
    """Two columns of images a second, alone and in the loader; a line for each decoder, those that cross stand out."""
    moved = set(ranks.moved)
    highest_alone = max(row.alone_per_s for row in ranks.rows)
    highest_loader = max(row.loader_per_s for row in ranks.rows)
    for number, row in enumerate(ranks.rows):
        ends = [row.alone_per_s / highest_alone, row.loader_per_s / highest_loader]
        colour = COLOURS[number % len(COLOURS)]
        style = "-" if row.name in moved else ":"
        axes.plot([0, 1], ends, style, marker=MARKS[number % len(MARKS)], color=colour)
    for side, rank, rate in ((0, "alone_rank", "alone_per_s"), (1, "loader_rank", "loader_per_s")):
        _column_labels(axes, ranks, side=side, rank=rank, rate=rate)
    axes.set_xticks([0, 1], ["a single thread", f"DataLoader, {ranks.workers} workers"])
    axes.set(xlim=(-0.75, 1.75), ylabel="share of the fastest in its column")
    axes.yaxis.set_major_formatter(lambda value, _: percent(value))
    return axes


def _column_labels(axes: Axes, ranks: DecoderRanks, *, side: int, rank: str, rate: str) -> None:
    """Names beside a column, kept apart where rates are close."""
    low, high = axes.get_ylim()
    top = max(getattr(row, rate) for row in ranks.rows)
    last = high + 1.0
    for row in sorted(ranks.rows, key=lambda row: getattr(row, rank)):
        share = getattr(row, rate) / top
        place = min(share, last - 0.06 * (high - low))
        last = place
        text = f"{getattr(row, rank)}. {row.name}  {getattr(row, rate):.0f}/s"
        align = "right" if side == 0 else "left"
        axes.text(
            side - 0.06 if side == 0 else side + 0.06, place, text, ha=align, va="center", fontsize="small", color=TEXT
        )


def draw_frontier(axes: Axes, frontier: Frontier) -> Axes:
    """Waste against randomness, a line for each method over its windows; larger marks are more samples a second."""
    highest = max(point.sample_per_s for point in frontier.points)
    for number, method in enumerate(dict.fromkeys(point.method for point in frontier.points)):
        points = [point for point in frontier.points if point.method == method]
        x, y = [p.randomness for p in points], [p.waste.fraction for p in points]
        colour, mark = COLOURS[number % len(COLOURS)], MARKS[number % len(MARKS)]
        axes.plot(x, y, "-", color=colour, linewidth=1)
        sizes = [140 * (p.sample_per_s / highest) ** 2 for p in points]
        axes.scatter(x, y, s=sizes, color=colour, marker=mark, label=method)
        for point in (points[0], points[-1]):
            axes.annotate(
                f"window {point.window}\n{si(point.sample_per_s, 'samples/s', digits=2)}",
                (point.randomness, point.waste.fraction),
                xytext=(6, 8),
                textcoords="offset points",
                fontsize="x-small",
                color=TEXT,
            )
    axes.set(
        xlabel="randomness within batches (1: same as random batches)",
        ylabel="padding as a share of the computed tokens",
    )
    axes.set_xlim(-0.05, 1.2)
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]), top=1.2 * max(p.waste.fraction for p in frontier.points) + 0.01)
    axes.yaxis.set_major_formatter(lambda value, _: percent(value))
    axes.legend(fontsize="small", labelcolor=TEXT)
    axes.grid(alpha=0.3)
    return axes


def draw_story(axes: Axes, steps: Sequence[tuple[str, float, float | None]]) -> Axes:
    """Samples a second after each step of tuning: (what was done, measured, predicted or None)."""
    for place, (_, measured, predicted) in enumerate(steps):
        axes.barh([place], [measured], color=BLUE, height=0.6)
        axes.annotate(
            f"{measured:.0f}/s",
            (measured, place),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize="small",
            color=TEXT,
        )
        if predicted is not None:
            axes.plot([predicted] * 2, [place - 0.4, place + 0.4], color=ORANGE, linewidth=2.5)
    axes.barh([0], [0], color=BLUE, label="measured")
    axes.plot([], [], color=ORANGE, linewidth=2.5, label="predicted")
    axes.set_yticks(range(len(steps)), [name for name, _, _ in steps])
    highest = max([max(m, p or 0.0) for _, m, p in steps], default=1.0)
    axes.set(ylim=(len(steps) - 0.5, -0.5), xlim=(0, 1.2 * highest), xlabel="samples/s")
    axes.xaxis.set_major_formatter(_rate)
    axes.legend(fontsize="small", labelcolor=TEXT)
    return axes


def _rate(value: float, _: object = None) -> str:
    return si(value, "").strip() if value else "0"


__all__ = ["draw_decoders", "draw_frontier", "draw_ladder", "draw_prediction", "draw_story", "draw_workers"]
