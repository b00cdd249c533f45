"""All matplotlib of the library: each function takes values and axes, and returns the axes."""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Which function draws a value of which class. A result's `plot()` ends here, by `presenters.present("plot", self, …)`.
_DRAWN_BY: dict[str, str] = {
    "Comparison": "timings:plot_comparison",
    "Measurement": "timings:plot_measurement",
    "Sweep": "timings:plot_sweep",
    "Diagnosis": "trace_pictures:draw_diagnosis",
}


def draw(value: Any, *args: Any, **options: Any) -> Any:
    """The picture of a result: its axes, or its figure, as the function that draws values of its class returns it."""
    module, _, name = _DRAWN_BY[type(value).__name__].partition(":")
    return getattr(import_module(f"edl_labs.plots.{module}"), name)(value, *args, **options)
