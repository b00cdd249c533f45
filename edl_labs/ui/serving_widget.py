"""Drag how often requests come, how many run at a time and how long prompts are, and see who waits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from edl_labs.errors import UsageError
from edl_labs.ui.live_or_still import LiveOrStill, live_image, png
from edl_labs.units import percent, seconds
from edl_labs.virtual.server import (
    ServerMachine,
    ServerReplay,
    VirtualServer,
    arrivals_of,
    drawn_lengths,
    poisson_times,
    replay,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RATES = (0.5, 1.0, 2.0, 4.0, 8.0, 12.0, 16.0, 24.0, 32.0)  # requests a second: from an idle A100 to a hopeless one
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)  # sequences at a time, up to vLLM's default
PROMPTS = (50, 100, 200, 400, 800, 1600, 3200)  # median tokens: from a question to a paper
_MOST = 400  # requests of a load: a second to serve, which is as long as anybody drags
_SEED = 11  # any: the same requests for every setting, so that only what was dragged differs
Setting = tuple[float, int, int]


class ServingExplorer(LiveOrStill):
    """A live picture with three sliders in a notebook; elsewhere three fixed settings, as a picture and as text.

    `policy(server)` serves `count` requests that come at random on `machine`; answers have a median of `answer` tokens.

    >>> def policy(server):
    ...     for one in server.finished:
    ...         server.free(one)
    ...     for one in (server.running or server.waiting)[:1]:
    ...         if one.needs:
    ...             server.allocate(one, one.needs)
    ...         if not server.running:
    ...             server.admit(one)
    >>> ServingExplorer(ServerMachine(), policy, count=8, answer=10, rate=1.0)
    8 requests, modelled:
    1 requests/s, up to 256 at once, prompts of 200: first token p50 11.5 ms, p99 38.6 ms; 12.2 tokens/s, busy 8.74 %
    1 requests/s, up to 8 at once, prompts of 200: first token p50 11.5 ms, p99 38.6 ms; 12.2 tokens/s, busy 8.74 %
    4 requests/s, up to 256 at once, prompts of 200: first token p50 17 ms, p99 150 ms; 46.5 tokens/s, busy 33.3 %
    """

    def __init__(
        self,
        machine: ServerMachine,
        policy: Callable[[VirtualServer], object],
        *,
        count: int = 80,
        answer: int = 120,
        rate: float = 4.0,
    ) -> None:
        if not 1 <= count <= _MOST or answer < 1 or not 0 < rate <= 1e6:
            raise UsageError(
                f"got {count} requests of {answer} tokens, {rate} per second",
                why=f"the picture needs 1 to {_MOST} requests of at least 1 token, and a rate above 0 and up to 1e6",
                next="use, for example, ServingExplorer(machine, policy, count=80)",
            )
        self.machine, self.policy, self.count, self.answer, self.rate = machine, policy, count, answer, rate
        self.run = lru_cache(maxsize=64)(self._run)

    def _run(self, rate: float, batch: int, prompt: int) -> ServerReplay:
        import numpy

        rng = numpy.random.default_rng(_SEED)
        most = self.machine.most_output_tokens
        load = arrivals_of(
            poisson_times(rng, count=self.count, per_s=rate),
            drawn_lengths(rng, count=self.count, median=prompt, spread=0.6, most=4 * prompt),
            drawn_lengths(rng, count=self.count, median=self.answer, spread=0.6, most=min(most, 5 * self.answer)),
        )
        machine = self.machine.replace(most_sequences=batch)
        return replay(VirtualServer(machine, load).run(self.policy))

    def settings(self) -> tuple[Setting, ...]:
        """What a page without sliders shows: the load, fewer at a time, and four times the load."""
        most = self.machine.most_sequences
        return (self.rate, most, 200), (self.rate, min(most, 8), 200), (4 * self.rate, most, 200)

    def describe(self, rate: float, batch: int, prompt: int) -> str:
        """One line about a setting: what was set, and the result."""
        run = self.run(rate, batch, prompt)
        head = f"{rate:g} requests/s, up to {batch} at once, prompts of {prompt}"
        if run.unfinished:
            return f"{head}: {run.unfinished} of {self.count} requests never finish"
        tokens = f"{run.token_per_s:,.0f}" if run.token_per_s >= 100 else f"{run.token_per_s:.3g}"
        p50, p99 = (seconds(run.time_to_first_token_s(share)) for share in (0.5, 0.99))
        return f"{head}: first token p50 {p50}, p99 {p99}; {tokens} tokens/s, busy {percent(run.utilisation)}"

    def figure(self, settings: tuple[Setting, ...] = ()) -> Figure:
        """The picture of some settings (rate, batch, prompt), one below the other: requests and the block pool."""
        from edl_labs.plots import serving_pictures, style

        chosen = settings or self.settings()
        figure, rows = style.subplots(len(chosen), 2, figsize=(11, 3.2 * len(chosen)), squeeze=False)
        for (requests, pool), setting in zip(rows, chosen, strict=True):
            run = self.run(*setting)
            serving_pictures.draw_requests(requests, run)
            set_to, _, came = self.describe(*setting).partition(": ")
            requests.set_title(f"modelled: {set_to}\n{came}", fontsize="medium")  # in place of the picture's own
            serving_pictures.draw_pool(pool, run)
        return figure

    def widget(self) -> Any:
        """The live picture (an ipywidgets.VBox)."""
        import ipywidgets

        look = {"style": {"description_width": "8em"}, "layout": {"width": "30em"}}

        def slider(name: str, values: Sequence[float], first: float) -> Any:
            options = [(f"{one:g}", one) for one in sorted({*values, first})]
            return ipywidgets.SelectionSlider(options=options, value=first, description=name, **look)

        sliders = [
            slider("requests/s", RATES, self.rate),
            slider("at a time", BATCHES, self.machine.most_sequences),
            slider("prompt", PROMPTS, 200),
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
        return "\n".join([f"{self.count} requests, modelled:", *(self.describe(*one) for one in self.settings())])
