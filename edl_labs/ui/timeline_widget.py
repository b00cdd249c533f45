"""Drag launch overhead, kernel time and chunk size, and see what host, kernels and copies do on a modelled machine."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from edl_labs.errors import UsageError
from edl_labs.ui.live_or_still import LiveOrStill, live_image, pixels, stacked_png
from edl_labs.units import byte_count, percent, seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from edl_labs.virtual.timeline import Timeline

MAX_CHUNKS = 4096  # the picture is drawn in a second
# What a page without sliders shows: long kernels, short kernels, and chunks too small for the host.
SETTINGS = ((5e-6, 60e-6, 1 / 8), (5e-6, 6e-6, 1 / 8), (20e-6, 6e-6, 1 / 64))
_PLACE = (0.1, 0.14, 0.88, 0.72)  # left, bottom, width, height: room for the rows' names and the title
_BELOW = (0.1, 0.95, 0.88, 0.01)  # the same of the legend: its axes have no height, it hangs from them
_WIDTH_IN, _HEIGHT_IN, _LEGEND_IN = 9.0, 2.25, 0.35  # a notebook's column, four rows and one line of text
_MOST_TICKS = 6  # of the time's axis, each a text to draw
_SLIDERS = (
    ("launch overhead", 1e-6, 50e-6, seconds),
    ("kernel time per chunk", 1e-6, 1e-3, seconds),
    ("chunk size", 1 / 256, 1.0, percent),
)


class TimelineExplorer(LiveOrStill):
    """A live picture with three sliders in a notebook; elsewhere three fixed settings, as a picture and as text.

    The program: bring `total_bytes` to the device in chunks, run a kernel on each, bring it back, in one stream.
    """

    def __init__(self, chip: str = "A100", *, total_bytes: int = 16_000_000) -> None:
        if total_bytes < MAX_CHUNKS:
            raise UsageError(
                f"{total_bytes} bytes are too few to split into chunks",
                why="a chunk needs at least one byte",
                next="use, for example, total_bytes=16_000_000",
            )
        self.chip, self.total_bytes = chip, total_bytes

    def timeline(self, *, launch_s: float, kernel_s: float, chunk_bytes: int) -> Timeline:
        """What runs when with these settings, as a value."""
        from edl_labs.virtual import VirtualGPU, VirtualMachine

        gpu = VirtualGPU(VirtualMachine.of(self.chip, launch_overhead_s=launch_s, copy_overhead_s=launch_s).warm())
        outside = gpu.host_empty(self.total_bytes, pin_memory=True, name="host")
        inside = gpu.empty(self.total_bytes, name="device")
        chunk_bytes = max(chunk_bytes, -(-self.total_bytes // MAX_CHUNKS))
        for low in range(0, self.total_bytes, chunk_bytes):
            here = slice(low, min(low + chunk_bytes, self.total_bytes))
            gpu.copy(inside[here], outside[here], non_blocking=True)
            gpu.launch("kernel", duration_s=kernel_s, reads=inside[here], writes=inside[here])
            gpu.copy(outside[here], inside[here], non_blocking=True)
        gpu.synchronize()
        return gpu.timeline

    def describe(self, line: Timeline, *, launch_s: float, kernel_s: float, chunk_bytes: int) -> str:
        """One line about a setting: what was set, how long it takes, and how busy the kernels' row is."""
        busy = percent(line.busy_s("kernel") / line.makespan_s, digits=2)
        return (
            f"launch {seconds(launch_s)}, kernel {seconds(kernel_s)}, chunks of {byte_count(chunk_bytes)}: "
            f"{seconds(line.makespan_s)}, kernels run {busy} of the time"
        )

    def figure(self, settings: tuple[tuple[float, float, float], ...] = SETTINGS) -> Figure:
        """The picture of some settings, one below the other: launch_s, kernel_s and the chunk's share of all bytes."""
        from edl_labs.plots import style

        figure, rows = style.subplots(len(settings), 1, figsize=(9, 2.6 * len(settings)), squeeze=False)
        for axes, setting in zip(rows[:, 0], settings, strict=True):
            self._draw(axes, setting)
        return figure

    def _draw(
        self, axes: Axes, setting: tuple[float, float, float], *, has_legend: bool = True
    ) -> tuple[str, Timeline]:
        """Draws a setting; what it shows, in words and as a value."""
        from edl_labs.plots.timeline_picture import draw_timeline

        chosen = self._chosen(*setting)
        line = self.timeline(**chosen)
        told = self.describe(line, **chosen)
        draw_timeline(axes, line, title=f"modelled {self.chip}: {told}", has_legend=has_legend)
        return told, line

    def widget(self) -> Any:
        """The live picture (an ipywidgets.VBox)."""
        import ipywidgets

        from edl_labs.plots import style

        sliders = [_slider(ipywidgets, *slider) for slider in _SLIDERS]
        picture = live_image()
        # One figure for all pictures, laid out by hand: making axes is a fifth of a picture's time, a layout a sixth,
        # and the legend, which is kept as it was drawn, another fifth.
        figure, axes = style.subplots(figsize=(_WIDTH_IN, _HEIGHT_IN))
        figure.set_layout_engine("none")
        axes.set_position(_PLACE)
        axes.locator_params(axis="x", nbins=_MOST_TICKS)

        def redraw(_: Any = None) -> None:
            for artist in (*axes.collections, *axes.texts):
                artist.remove()
            chosen = (sliders[0].value, sliders[1].value, sliders[2].value)
            picture.tooltip, line = self._draw(axes, chosen, has_legend=False)
            legend = _legend(frozenset(span.kind for span in line.spans))
            picture.value = stacked_png(pixels(figure), legend)

        for slider in sliders:
            slider.observe(redraw, "value")
        redraw()
        return ipywidgets.VBox([*sliders, picture])

    def _chosen(self, launch_s: float, kernel_s: float, share: float) -> dict[str, Any]:
        return {"launch_s": launch_s, "kernel_s": kernel_s, "chunk_bytes": max(1, round(share * self.total_bytes))}

    def __repr__(self) -> str:
        lines = []
        for setting in SETTINGS:
            chosen = self._chosen(*setting)
            lines.append(self.describe(self.timeline(**chosen), **chosen))
        return "\n".join([f"a modelled {self.chip} moves {byte_count(self.total_bytes)} in and out:", *lines])


@cache
def _legend(kinds: frozenset[str]) -> Any:
    """The legend of some kinds of spans, as wide as the picture."""
    from edl_labs.plots import style
    from edl_labs.plots.timeline_picture import draw_legend

    figure, axes = style.subplots(figsize=(_WIDTH_IN, _LEGEND_IN))
    figure.set_layout_engine("none")
    axes.set_position(_BELOW)
    axes.set_axis_off()
    draw_legend(axes, kinds)
    return pixels(figure)


def _slider(ipywidgets: Any, name: str, low: float, high: float, say: Any) -> Any:
    import math

    steps = [low * (high / low) ** (i / 40) for i in range(41)]
    options = [(say(value), value) for value in steps]
    middle = min(steps, key=lambda value: abs(math.log(value / math.sqrt(low * high))))
    return ipywidgets.SelectionSlider(
        options=options,
        value=middle,
        description=name,
        style={"description_width": "11em"},
        layout={"width": "32em"},
    )
