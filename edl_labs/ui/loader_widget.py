"""Drag workers, decode time and step time, and see who waits for whom on a modelled machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from edl_labs.errors import UsageError
from edl_labs.ui.live_or_still import LiveOrStill, live_image, png
from edl_labs.units import counted, percent, seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from edl_labs.virtual import WorkersReplay

MAX_WORKERS = 8  # rows that a picture holds
# What a page without sliders shows: too few workers, enough, and more than the cores.
SETTINGS = ((1, 8e-3, 4e-3), (2, 8e-3, 4e-3), (6, 16e-3, 2e-3))


class LoaderExplorer(LiveOrStill):
    """A live picture with three sliders in a notebook; elsewhere three fixed settings, as a picture and as text.

    A loader whose workers decode `batches` batches, and a step on a device that uses them.
    """

    def __init__(self, *, cores: int = 4, batches: int = 24) -> None:
        if not (1 <= cores <= 64 and 2 <= batches <= 500):
            raise UsageError(
                f"got {cores} cores and {batches} batches",
                why="the picture has room for 1 to 64 cores and 2 to 500 batches",
                next="use, for example, LoaderExplorer(cores=4, batches=24)",
            )
        self.cores, self.batches = cores, batches

    def replay(self, *, workers: int, decode_s: float, step_s: float) -> WorkersReplay:
        """What happens with these settings, as a value."""
        from edl_labs.virtual import VirtualWorkers, replay_workers

        vw = VirtualWorkers(cores=self.cores)
        for _ in vw.loader([[("cpu", "decode", decode_s)]] * self.batches, workers=workers):
            vw.step(step_s)
        return replay_workers(vw.program, vw.machine)

    def describe(self, found: WorkersReplay, *, workers: int, decode_s: float, step_s: float) -> str:
        """One line about a setting: what was set, how fast it is, and how much of the loop waits for data."""
        setting = f"{counted(workers, 'worker')}, decode {seconds(decode_s)}, step {seconds(step_s)}"
        if not found.makespan_s:
            return f"{setting}: no time passes, so nothing waits"
        share = percent(sum(found.waited_s) / found.makespan_s, digits=2)
        return f"{setting}: {found.batch_per_s:.0f} batches/s, the loop waits for data {share} of the time"

    def figure(self, settings: tuple[tuple[int, float, float], ...] = SETTINGS) -> Figure:
        """The picture of some settings (workers, decode_s, step_s), one below the other."""
        from edl_labs.plots import style
        from edl_labs.plots.data_pipelines import draw_workers

        figure, rows = style.subplots(len(settings), 1, figsize=(9, 2.9 * len(settings)), squeeze=False)
        for axes, (workers, decode_s, step_s) in zip(rows[:, 0], settings, strict=True):
            chosen: dict[str, Any] = {"workers": workers, "decode_s": decode_s, "step_s": step_s}
            found = self.replay(**chosen)
            draw_workers(axes, found.timeline, title=f"modelled, {self.cores} cores: {self.describe(found, **chosen)}")
        return figure

    def widget(self) -> Any:
        """The live picture (an ipywidgets.VBox)."""
        import ipywidgets

        look = {"style": {"description_width": "8em"}, "layout": {"width": "30em"}}
        times = [(seconds(k * 1e-3), k * 1e-3) for k in (0.5, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32)]
        sliders = [
            ipywidgets.IntSlider(value=2, min=0, max=MAX_WORKERS, description="workers", **look),
            ipywidgets.SelectionSlider(options=times, value=8e-3, description="decode a batch", **look),
            ipywidgets.SelectionSlider(options=times, value=4e-3, description="step", **look),
        ]
        picture = live_image()

        def redraw(_: Any = None) -> None:
            setting = (sliders[0].value, sliders[1].value, sliders[2].value)
            chosen = dict(zip(("workers", "decode_s", "step_s"), setting, strict=True))
            picture.tooltip = self.describe(self.replay(**chosen), **chosen)
            picture.value = png(self.figure((setting,)), compress_level=1)

        for slider in sliders:
            slider.observe(redraw, "value")
        redraw()
        return ipywidgets.VBox([*sliders, picture])

    def __repr__(self) -> str:
        lines = []
        for workers, decode_s, step_s in SETTINGS:
            chosen: dict[str, Any] = {"workers": workers, "decode_s": decode_s, "step_s": step_s}
            lines.append(self.describe(self.replay(**chosen), **chosen))
        return "\n".join([f"a modelled loader on {self.cores} cores:", *lines])
