"""Drag ranks, bucket size and link speed, and see how much of the gradients' sums hides behind the backward pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from edl_labs.errors import UsageError
from edl_labs.ui.live_or_still import LiveOrStill, live_image, png
from edl_labs.units import byte_count, byte_rate, counted, percent, seconds
from edl_labs.virtual.cluster import ClusterMachine, CollectiveCosts, CollectivePlan

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RANKS = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)  # the slider's stops: powers of two
CAPS = (*(size * 10**power for power in (5, 6, 7, 8) for size in (1, 2, 5)), 10**9)
RATES = (1e9, 3e9, 6e9, 12e9, 25e9, 50e9, 100e9, 200e9, 450e9)  # from Ethernet over InfiniBand to NVLink
_MOST_LAYERS = 2000  # redrawn in the time that a few take; deeper models have tensors that can be put together
_MOST_BARS = 120  # more than that are drawn as one: nobody could tell them apart
Setting = tuple[int, float, float]


@dataclass(frozen=True)
class Bucket:
    """Gradients that are sent together: their bytes, and when the backward pass has the last of them."""

    gradient_bytes: float
    ready_s: float


@dataclass(frozen=True)
class BucketTimes:
    """When each bucket's sum started and ended, counted from the start of the backward pass."""

    backward_s: float
    start_s: tuple[float, ...]
    end_s: tuple[float, ...]

    @property
    def finish_s(self) -> float:
        """When gradients are summed and the backward pass is over."""
        return max(self.backward_s, *self.end_s)

    @property
    def exposed_s(self) -> float:
        """Communication that is left over after the backward pass."""
        return self.finish_s - self.backward_s


@lru_cache(maxsize=256)  # the sliders' stops
def _ring(ranks: int, alpha_s: float, byte_per_s: float) -> CollectivePlan:
    machine = ClusterMachine.flat(ranks, alpha_s=alpha_s, byte_per_s=byte_per_s)
    return CollectiveCosts(machine).plan("all_reduce", tuple(range(machine.ranks)), 0.0, algorithm="ring")


class BucketExplorer(LiveOrStill):
    """A live picture with three sliders in a notebook; elsewhere three fixed settings, as a picture and as text.

    `layers` is a list of (gradient bytes, seconds of the backward pass), from the first layer on. Gradients travel from
    the last layer on, in buckets that close when they hold the bucket's size or more, each as one all-reduce in a ring
    (`virtual.cluster.CollectiveCosts`); a message costs `alpha_s` and its bytes over the link's rate.

    >>> BucketExplorer([(4e6, 1e-3)] * 6, ranks=4, alpha_s=1e-5, byte_per_s=6e9)
    gradients of 24 MB, summed during a backward pass of 6 ms, modelled:
    4 ranks at 6 GB/s, one bucket per layer: 6 sums, 1.36 ms exposed (22.7 % of the backward pass)
    4 ranks at 6 GB/s, buckets of 12 MB: 2 sums, 3.12 ms exposed (52 % of the backward pass)
    4 ranks at 6 GB/s, one bucket: 1 sum, 6.06 ms exposed (101 % of the backward pass)
    """

    def __init__(
        self, layers: Sequence[tuple[float, float]], *, ranks: int = 8, alpha_s: float = 2e-5, byte_per_s: float = 6e9
    ) -> None:
        if not 1 <= len(layers) <= _MOST_LAYERS or any(size <= 0 or time_s < 0 for size, time_s in layers):
            raise UsageError(
                f"got {counted(len(layers), 'layer')}, the smallest (bytes, seconds) being {min(layers, default=None)}",
                why=f"the picture needs 1 to {_MOST_LAYERS} layers, each with a size above 0 and a time of 0 or more",
                next="use, for example, BucketExplorer([(4e6, 1e-3)] * 12)",
            )
        _ring(ranks, alpha_s, byte_per_s)  # refuses what is no cluster
        self.layers, self.ranks, self.alpha_s, self.byte_per_s = tuple(layers), ranks, alpha_s, byte_per_s
        self.gradient_bytes = sum(size for size, _ in layers)
        self.backward_s = sum(time_s for _, time_s in layers)

    def buckets(self, cap_bytes: float) -> tuple[Bucket, ...]:
        """The buckets of a size, in the order in which they are sent."""
        found, held, passed_s = [], 0.0, 0.0
        for at, (size, time_s) in enumerate(reversed(self.layers), 1):
            held, passed_s = held + size, passed_s + time_s
            if held >= cap_bytes or at == len(self.layers):
                found.append(Bucket(held, passed_s))
                held = 0.0
        return tuple(found)

    def times(self, ranks: int, cap_bytes: float, byte_per_s: float) -> BucketTimes:
        """When the sums of a setting start and end: each once its bucket is ready and the links are free."""
        plan = _ring(ranks, self.alpha_s, byte_per_s)
        start_s: list[float] = []
        end_s: list[float] = []
        for bucket in self.buckets(cap_bytes):
            start_s.append(max(bucket.ready_s, end_s[-1] if end_s else 0.0))
            end_s.append(start_s[-1] + plan.seconds(bucket.gradient_bytes))
        return BucketTimes(self.backward_s, tuple(start_s), tuple(end_s))

    def settings(self) -> tuple[Setting, ...]:
        """What a page without sliders shows: a bucket a layer, half of the gradients, all of them."""
        caps = (0.0, self.gradient_bytes / 2, self.gradient_bytes)
        return tuple((self.ranks, cap, self.byte_per_s) for cap in caps)

    def describe(self, ranks: int, cap_bytes: float, byte_per_s: float) -> str:
        """One line about a setting: what was set, how many sums there are, and what is left over of them."""
        done = self.times(ranks, cap_bytes, byte_per_s)
        sized = f"buckets of {byte_count(cap_bytes)}"
        if cap_bytes >= self.gradient_bytes:
            sized = "one bucket"
        elif cap_bytes <= min(size for size, _ in self.layers):
            sized = "one bucket per layer"
        share = f" ({percent(done.exposed_s / self.backward_s)} of the backward pass)" if self.backward_s else ""
        told = f"{counted(len(done.end_s), 'sum')}, {seconds(done.exposed_s)} exposed{share}"
        return f"{ranks} ranks at {byte_rate(byte_per_s)}, {sized}: {told}"

    def figure(self, settings: tuple[Setting, ...] = ()) -> Figure:
        """The picture of some settings (ranks, bucket bytes, B/s), one below the other: when, and over all sizes."""
        from edl_labs.plots import style

        chosen = settings or self.settings()
        wide = {"width_ratios": (2, 1)}
        figure, rows = style.subplots(
            len(chosen), 2, figsize=(10, 2.4 * len(chosen)), squeeze=False, gridspec_kw=wide, sharex="col"
        )
        for (lanes, curve), setting in zip(rows, chosen, strict=True):
            self._draw_lanes(lanes, setting)
            self._draw_curve(curve, setting)
        rows[0, 0].set_xlim(0, 1.02 * max(self.times(*setting).finish_s for setting in chosen))
        rows[-1, 1].set_xlabel("bytes per bucket")
        return figure

    def _draw_lanes(self, axes: Axes, setting: Setting) -> None:
        from edl_labs.plots import style

        done = self.times(*setting)
        spans = list(zip(done.start_s, done.end_s, strict=True))
        if len(spans) > _MOST_BARS:
            spans = _joined(spans)
        axes.broken_barh([(0.0, done.backward_s)], (0.55, 0.8), color=style.BLUE)
        bars = [(start_s, end_s - start_s) for start_s, end_s in spans]
        axes.broken_barh(bars, (-0.45, 0.8), color=style.ORANGE, hatch="//", edgecolor=style.TEXT, linewidth=0.5)
        if done.exposed_s:
            axes.axvspan(done.backward_s, done.finish_s, color=style.RED, alpha=0.15, linewidth=0)
        axes.set(ylim=(-0.6, 1.5), yticks=(0, 1), yticklabels=("sums", "backward"))
        axes.set_title(f"modelled: {self.describe(*setting)}", fontsize=8, loc="left")
        axes.xaxis.set_major_formatter(lambda value, _: seconds(value))

    def _draw_curve(self, axes: Axes, setting: Setting) -> None:
        from edl_labs.plots import style

        ranks, cap, rate = setting
        least, most = min(size for size, _ in self.layers), self.gradient_bytes
        caps = [least, *(one for one in CAPS if least < one < most), most]
        exposed = [self.times(ranks, one, rate).exposed_s for one in caps]
        axes.semilogx(caps, exposed, color=style.ORANGE)
        here = min(max(cap, least), most)
        axes.plot([here], [self.times(*setting).exposed_s], "o", color=style.RED)
        axes.set(ylim=(0, None), ylabel="exposed")
        axes.minorticks_off()
        axes.xaxis.set_major_formatter(lambda value, _: byte_count(value))
        axes.yaxis.set_major_formatter(lambda value, _: seconds(value))

    def widget(self) -> Any:
        """The live picture (an ipywidgets.VBox)."""
        import ipywidgets

        look = {"style": {"description_width": "8em"}, "layout": {"width": "30em"}}

        def slider(name: str, values: Sequence[float], told: Any, first: float) -> Any:
            options = [(told(one), one) for one in sorted({*values, first})]
            return ipywidgets.SelectionSlider(options=options, value=first, description=name, **look)

        sliders = [
            slider("ranks", RANKS, str, self.ranks),
            slider("bucket", CAPS, byte_count, min(CAPS, key=lambda one: abs(one - 25e6))),
            slider("link", RATES, byte_rate, self.byte_per_s),
        ]
        picture = live_image()

        def redraw(_: Any = None) -> None:
            setting = (sliders[0].value, sliders[1].value, sliders[2].value)
            picture.tooltip = self.describe(*setting)
            picture.value = png(self.figure((setting,)), compress_level=1)

        for one in sliders:
            one.observe(redraw, "value")
        redraw()
        return ipywidgets.VBox([*sliders, picture])

    def __repr__(self) -> str:
        size, time_s = byte_count(self.gradient_bytes), seconds(self.backward_s)
        head = f"gradients of {size}, summed during a backward pass of {time_s}"
        return "\n".join([f"{head}, modelled:", *(self.describe(*one) for one in self.settings())])


def _joined(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Spans that follow one another without a gap, as one."""
    found = [spans[0]]
    for start_s, end_s in spans[1:]:
        if start_s <= found[-1][1]:
            found[-1] = (found[-1][0], end_s)
        else:
            found.append((start_s, end_s))
    return found
