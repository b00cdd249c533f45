"""Drag a memory budget, and see which layers of a step are kept, run again or copied to the host, and what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from edl_labs.ui.live_or_still import LiveOrStill, live_image, png
from edl_labs.units import byte_count, percent, seconds
from edl_labs.virtual.errors import VirtualMemoryError
from edl_labs.virtual.memory import Placement, Tape, as_chain, best_placement, stepped

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# What a page without a slider shows: everything kept, and two budgets that cost something.
SHARES = (1.0, 0.75, 0.5)


class BudgetExplorer(LiveOrStill):
    """A live picture with a slider in a notebook; elsewhere the budgets of SHARES, as a picture and as text.

    `of` is a MemoryPlan or a Tape; parts of it that are not a chain count as one layer. The budget is a share of what
    keeping every activation takes; with `offload`, layers may also be copied to the host.

    >>> BudgetExplorer(Tape.chain(4, activation_bytes=2, output_bytes=1, forward_s=1.0, backward_s=2.0))
    a tape, 8 B with everything kept:
    100 % of it, 8 B: keeps all 4 layers, takes 12 s
    75 % of it, 6 B: recomputes 2 of 4 layers, takes 14 s
    50 % of it, 4 B: recomputes 3 of 4 layers, takes 15 s
    """

    def __init__(self, of: Any, *, offload: bool = False) -> None:
        self.tape: Tape = as_chain(of if isinstance(of, Tape) else of.tape)
        self.offload = offload
        self.kept = stepped(self.tape, ()).replay()

    def budget_bytes(self, share: float) -> int:
        """The bytes of a share of what keeping everything takes."""
        return int(share * self.kept.peak_bytes)

    def placement(self, share: float) -> Placement | None:
        """What fits into the budget in the least time; None where nothing does."""
        try:
            return best_placement(self.tape, self.budget_bytes(share), offload=self.offload)
        except VirtualMemoryError:
            return None

    def describe(self, share: float, found: Placement | None) -> str:
        """One line about a budget: what becomes of the layers, and how long the step takes."""
        head = f"{percent(share, digits=2)} of it, {byte_count(self.budget_bytes(share))}"
        if found is None:
            return f"{head}: no placement fits into this budget"
        again, count = sum(stop - start for start, stop in found.recomputed), len(self.tape.layers)
        parts = [f"recomputes {again} of {count} layers"] if again else []
        parts += (
            [
                f"copies {len(found.offloaded)} to the host"
                if again
                else f"copies {len(found.offloaded)} of {count} layers to the host"
            ]
            if found.offloaded
            else []
        )
        return f"{head}: {' and '.join(parts) or f'keeps all {count} layers'}, takes {seconds(found.replay.makespan_s)}"

    def figure(self, shares: tuple[float, ...] = SHARES) -> Figure:
        """The picture of some budgets, one below the other; each with its budget as a line."""
        from edl_labs.plots import style
        from edl_labs.plots.memory_pictures import draw_tape

        figure, rows = style.subplots(len(shares), 1, figsize=(9, 2.9 * len(shares)), squeeze=False)
        for axes, share in zip(rows[:, 0], shares, strict=True):
            found = self.placement(share)
            title = f"modelled: {self.describe(share, found)}"
            draw_tape(axes, self.kept if found is None else found.replay, title=title)
            axes.axhline(self.budget_bytes(share), color=style.RED, linestyle="--", linewidth=1)
        return figure

    def widget(self) -> Any:
        """The live picture (an ipywidgets.VBox)."""
        import ipywidgets

        slider = ipywidgets.IntSlider(value=75, min=5, max=100, step=5, description="budget [%]")
        picture = live_image()

        def redraw(_: Any = None) -> None:
            share = slider.value / 100
            picture.tooltip = self.describe(share, self.placement(share))
            picture.value = png(self.figure((share,)), compress_level=1)

        slider.observe(redraw, "value")
        redraw()
        return ipywidgets.VBox([slider, picture])

    def __repr__(self) -> str:
        head = f"{self.tape.name}, {byte_count(self.kept.peak_bytes)} with everything kept:"
        return "\n".join([head, *(self.describe(share, self.placement(share)) for share in SHARES)])
