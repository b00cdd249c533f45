"""Pictures of training runs step by step: one run above the other, over the same time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from edl_labs.plots.style import TEXT, subplots
from edl_labs.plots.timeline_picture import draw_timeline
from edl_labs.units import seconds
from edl_labs.virtual import Span, Timeline

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from edl_labs.virtual.budget import TrainingSteps

_WIDE, _ROW, _AROUND = 9.6, 0.27, 0.65  # inches: a page's column, a row of a timeline, its title
_TITLE, _LEGEND = 0.47, 0.65  # inches above: a title and the steps' names; inches below: the axis and the legend
_ABOVE = 16.0  # points of the title above the axes: the steps' names stand between
_NAMED, _NUMBERED = 0.07, 0.02  # of the width: what "step 0" and a number take in small print
_BESIDE = 1.02  # of the longest run or step: its end is seen


def draw_steps(runs: Mapping[str, TrainingSteps], *, step: int | None = None) -> Figure:
    """Runs by name, one below the other, over one time: whole, or one `step` of each from where it begins.

    Dashed lines are where steps end. A step's number counts from 0, as a trainer's does.
    """
    rows = _rows(runs.values())
    each = len(rows) * _ROW + _AROUND
    height = len(runs) * each + _LEGEND
    # A layout by hand: looking for one is half of a picture's time.
    figure, grid = subplots(len(runs), 1, figsize=(_WIDE, height), squeeze=False, sharex=True, layout="none")
    top = 1 - _TITLE / height
    figure.subplots_adjust(0.09, _LEGEND / height, 0.985, top, hspace=_AROUND / (len(rows) * _ROW))
    spans = [(0.0, run.makespan_s) if step is None else _of_step(run, step) for run in runs.values()]
    longest_s = _BESIDE * max(end - start for start, end in spans)
    for axes, (name, run), (start_s, end_s) in zip(grid[:, 0], runs.items(), spans, strict=True):
        what = "" if step is None else f", step {step}"
        title = f"{name}{what}: {seconds(end_s - start_s)}, {run.gpus} GPU{'s' if run.gpus > 1 else ''}"
        draw_timeline(axes, _cut(run.timeline, start_s, end_s), end_s=longest_s, title=title, rows=rows)
        axes.set_title(title, pad=_ABOVE)
        _mark_ends(axes, run, start_s, end_s, longest_s)
    _one_legend(grid[:, 0])
    return figure


def _one_legend(axes: Sequence[Axes]) -> None:
    """One legend below all, of every kind that any of them has."""
    there: dict[str, Any] = {}
    for one in axes:
        legend = one.get_legend()
        if legend is not None:
            texts = [text.get_text() for text in legend.get_texts()]
            there |= dict(zip(texts, legend.legend_handles, strict=True))
            legend.remove()
    axes[-1].legend(
        *(list(there.values()), list(there)),
        loc="upper left",
        bbox_to_anchor=(0, -0.14),
        ncols=max(1, len(there)),
        frameon=False,
        labelcolor=TEXT,
    )


def _rows(runs: Iterable[TrainingSteps]) -> list[str]:
    """All rows that any of the runs has, in their order."""
    listed = list(runs)
    order = ("host", "kernels", "copies in", "copies out", "sums")
    there = {row for run in listed for row in run.timeline.rows}
    return [row for row in order if row in there]


def _of_step(run: TrainingSteps, step: int) -> tuple[float, float]:
    return run.steps[step].start_s, run.steps[step].end_s


def _cut(timeline: Timeline, start_s: float, end_s: float) -> Timeline:
    """What runs between two moments, from the first as zero, with passes back told from other kernels."""
    there = (span for span in timeline.spans if span.end_s > start_s and span.start_s < end_s)
    return Timeline(tuple(_told(span, start_s, end_s) for span in there))


def _told(span: Span, start_s: float, end_s: float) -> Span:
    kind = "backward" if span.kind == "kernel" and span.name.startswith("backward") else span.kind
    low, high = max(span.start_s, start_s), min(span.end_s, end_s)
    return replace(span, kind=kind, start_s=low - start_s, end_s=high - start_s)


def _mark_ends(axes: Axes, run: TrainingSteps, start_s: float, end_s: float, longest_s: float) -> None:
    """Dashed lines where steps end; above each step as much of its name as there is room for."""
    for number, one in enumerate(run.steps):
        if one.start_s < start_s or one.end_s > end_s:
            continue
        low, high = one.start_s - start_s, one.end_s - start_s
        axes.axvline(high, color=TEXT, linestyle="--", linewidth=1.0, zorder=3)
        room = (high - low) / longest_s
        name = f"step {number}" if room > _NAMED else str(number) if room > _NUMBERED else ""
        if name:
            at = (low + high) / 2, 1.0
            look: dict[str, Any] = {"ha": "center", "va": "bottom", "fontsize": "small", "color": TEXT}
            axes.annotate(name, at, (0, 1), axes.get_xaxis_transform(), "offset points", **look)
