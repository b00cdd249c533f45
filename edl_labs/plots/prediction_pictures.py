"""Pictures of predictions: where a step's time goes, and several machines with throughput, memory and cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from edl_labs.plots.style import BLUE, GREEN, GREY, HATCHING, ON_COLOUR, ORANGE, PURPLE, RED, TEXT, dress, subplots
from edl_labs.units import byte_count, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LIMITS = {"compute": (BLUE, ""), "memory": (ORANGE, "//"), "launch": (PURPLE, ".."), "communication": (GREEN, "xx")}
_SHOWN_FROM = 0.01  # of the step: less waiting is no bar
_FITS = {"yes": (GREY, ""), "unsure": (ORANGE, "//"), "no": (RED, "xx")}


def draw_prediction(axes: Axes, prediction: Any, *, title: str | None = None) -> Axes:
    """A `Prediction`: the most expensive operators as bars, in the colour of what limits them, and its waits."""
    bars = [(f"{row.name[:34]}, {row.phase}", row.share, row.limiter) for row in prediction.most_expensive]
    for limit, name in (("launch", "waiting for the host"), ("communication", "waiting for other GPUs")):
        share = prediction.works.get(limit, 0.0) / prediction.step_s
        bars += [(name, share, limit)] if share > _SHOWN_FROM else []
    bars.sort(key=lambda bar: bar[1])
    seen: set[str] = set()
    for place, (_, share, limit) in enumerate(bars):
        colour, hatch = _LIMITS[limit]
        label = None if limit in seen else limit
        seen.add(limit)
        axes.barh(place, share * 100, color=colour, hatch=hatch, edgecolor=HATCHING, linewidth=0, label=label)
    axes.set(yticks=range(len(bars)), yticklabels=[name for name, *_ in bars], xlabel="share of the step [%]")
    limit = f"limited by {prediction.limiter}, {percent(prediction.limits[prediction.limiter] / prediction.step_s)}"
    many = f"{prediction.gpus} × " if prediction.gpus > 1 else ""
    axes.set_title(title or f"{prediction.model} on {many}{prediction.machine}: {prediction.time_text}; {limit}")
    if bars:
        axes.legend(title="limited by", loc="lower right")
    return dress(axes)


def draw_machines(comparison: Any, *, title: str | None = None) -> Figure:
    """A `MachineComparison`: samples per second with intervals, memory against the card's, and cost if known."""
    found = comparison.predictions
    has_prices = any(one.cost_per_million for one in found)
    figure, panels = subplots(1, 3 if has_prices else 2, figsize=(11 if has_prices else 8.5, 0.5 * len(found) + 1.8))
    places = range(len(found))
    speed, memory = panels[0], panels[1]
    for place, one in zip(places, found, strict=True):
        colour, hatch = _LIMITS[one.limiter]
        rate = one.samples_per_s or 1 / one.step_s
        low, high = rate * one.step_s / one.high_s, rate * one.step_s / one.low_s
        speed.barh(place, rate, color=colour, hatch=hatch, edgecolor=HATCHING, linewidth=0)
        speed.errorbar(rate, place, xerr=[[rate - low], [high - rate]], color=TEXT, capsize=3, linewidth=1.2)
        shade, hatch = _FITS[one.fits]
        memory.barh(place, one.memory_bytes / 1e9, color="none", edgecolor=TEXT, linewidth=1)
        memory.barh(place, one.peak_bytes / 1e9, color=shade, hatch=hatch, edgecolor=ON_COLOUR, linewidth=0)
        memory.annotate(f" {byte_count(one.peak_bytes)}", (one.peak_bytes / 1e9, place), va="center", fontsize=8)
    unit = "samples per second" if found[0].batch else "steps per second"
    speed.set(yticks=places, yticklabels=[one.machine for one in found], xlabel=f"{unit}, 80 % interval")
    memory.set(yticks=places, yticklabels=[], xlabel="peak memory in GB (outline: memory of the GPU)")
    for name in dict.fromkeys(one.limiter for one in found):
        colour, hatch = _LIMITS[name]
        speed.barh(-1, 0, color=colour, hatch=hatch, edgecolor=HATCHING, label=name)
    speed.legend(title="limited by")
    if has_prices:
        panels[2].barh(places, [one.cost_per_million for one in found], color=GREEN, edgecolor=HATCHING)
        panels[2].set(yticks=places, yticklabels=[], xlabel="cost of a million samples")
    for axes in panels:
        axes.set_ylim(len(found) - 0.4, -0.6)
        dress(axes)
    figure.suptitle(title or f"{found[0].model}: {comparison.verdict}", fontsize=10)
    return figure
