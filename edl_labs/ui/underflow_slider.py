"""Drag the loss scale, and see how many gradients a format keeps."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from edl_labs.errors import UsageError
from edl_labs.numerics._underflow_report import UnderflowReport, named_tensors, underflow_report
from edl_labs.numerics.named_formats import FORMATS, float_format
from edl_labs.ui.live_or_still import LiveOrStill, png

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_NUMBERS = 200_000  # a histogram of them follows the slider
_STILLS = (0, 8, 16, 24)  # powers of two: no scale, some, torch's first, and beyond
_MOST_POWER = 40  # far beyond 2**16, torch's first scale


class UnderflowSlider(LiveOrStill):
    """The histogram of gradients against a format's range, with the scale as a slider; elsewhere four fixed scales.

    `tensors` is a tensor, a list or a dict of them. Of more than 200,000 numbers an even sample is kept, so that
    dragging stays quick; then the title says so.
    """

    def __init__(self, tensors: Any, fmt: Any = "fp16", *, power: int = 0) -> None:
        import numpy as np

        from edl_labs.numerics import arrays

        self.fmt = float_format(fmt)
        self.power = _checked(power)
        given = np.concatenate([arrays.float64(values).ravel() for _, values in named_tensors(tensors)])
        given = np.abs(given[(given != 0) & np.isfinite(given)])
        self.step = max(1, -(-given.size // MAX_NUMBERS))
        self._values = given[:: self.step]

    def report(self, power: int) -> UnderflowReport:
        """What the format makes of the numbers times 2**power."""
        return underflow_report(self._values, self.fmt, scale=2.0 ** _checked(power))

    def figure(self, powers: tuple[int, ...] | None = None) -> Figure:
        """The histograms at some scales, given as powers of two, one below the other."""
        from edl_labs.plots import style
        from edl_labs.plots.number_formats import draw_underflow

        powers = _STILLS if powers is None else powers
        figure, rows = style.subplots(len(powers), 1, figsize=(8, 2.5 * len(powers)), squeeze=False, sharex=True)
        for axes, power in zip(rows[:, 0], powers, strict=True):
            draw_underflow(axes, self.report(power))
            if self.step > 1:
                axes.set_title(f"{axes.get_title()} (one number of {self.step})", color=style.TEXT)
        for axes in rows[:-1, 0]:
            axes.set_xlabel("")
        return figure

    def widget(self) -> Any:
        """The live picture (an ipywidgets.VBox): a format menu and the scale's slider above the histogram."""
        import ipywidgets

        menu = ipywidgets.Dropdown(options=self._names(), value=self.fmt.name, description="format")
        slider = ipywidgets.IntSlider(
            value=self.power,
            min=-10,
            max=_MOST_POWER,
            description="log2 of the scale",
            continuous_update=False,
            style={"description_width": "10em"},
            layout={"width": "34em"},
        )
        picture = ipywidgets.Image(format="png", layout={"max_width": "100%"})
        own = self.fmt

        def redraw(_: Any = None) -> None:
            self.fmt = own if menu.value == own.name else float_format(menu.value)
            self.power = slider.value
            picture.value = png(self.figure((slider.value,)))

        for control in (menu, slider):
            control.observe(redraw, "value")
        redraw()
        return ipywidgets.VBox([menu, slider, picture])

    def _names(self) -> list[str]:
        return list(dict.fromkeys([self.fmt.name, *(n for n, f in FORMATS.items() if f.signed and f.bits <= 32)]))

    def __repr__(self) -> str:
        reports = ((power, self.report(power)) for power in _STILLS)
        return "\n".join(f"times 2^{power}, {report.fmt.name}: {str(report.total)[5:]}" for power, report in reports)


def _checked(power: Any) -> int:
    if not (isinstance(power, int) and math.isfinite(2.0 ** max(-1000, min(1000, power))) and abs(power) <= 1000):
        raise UsageError(
            f"a scale of 2**{power!r}",
            why="the power is a whole number from -1000 to 1000",
            next="16 is torch's first scale",
        )
    return power
