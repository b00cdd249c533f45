"""`compare_machines`: one step on several machines: time, memory, cost, and a verdict that may be inconclusive."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from edl_labs.arguments import checked_arguments
from edl_labs.errors import UsageError
from edl_labs.predict.forecast import Prediction
from edl_labs.predict.machine_card import MachineCard
from edl_labs.predict.step_predictor import predict_step
from edl_labs.presenters import present
from edl_labs.units import byte_count, percent, seconds
from edl_labs.values import Value

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SHARED_DOUBT = 0.5  # of an interval's logarithm that two machines have in common: errors of one model go together


@dataclass(frozen=True, repr=False)
class MachineComparison(Value):
    """Predictions of one step on several machines, in the order asked; `verdict` says which is fastest, or that no one
    can tell, and which costs least where prices are given."""

    ROWS = "predictions"
    DERIVED = ("verdict",)

    predictions: tuple[Prediction, ...]

    @property
    def verdict(self) -> str:
        """The fastest that fits; 'inconclusive' names the machines whose intervals leave that open."""
        fitting = [one for one in self.predictions if one.fits != "no"]
        if not fitting:
            return "the step does not fit on any of these machines"
        fastest = min(fitting, key=lambda one: one.step_s)
        rivals = [one.machine for one in fitting if one is not fastest and not self.is_faster(fastest, one)]
        text = f"{fastest.machine} is the fastest"
        if rivals:
            text = f"inconclusive: {fastest.machine} looks fastest, but {', '.join(rivals)} may be as fast"
        priced = [one for one in fitting if one.cost_per_million]
        if priced:
            cheapest = min(priced, key=lambda one: one.cost_per_million)
            text += f"; {cheapest.machine} costs least, {cheapest.cost_per_million:,.2f} per million samples"
        unsure = [one.machine for one in self.predictions if one.fits == "unsure"]
        return text + (f"; it may not fit on {', '.join(unsure)}" if unsure else "")

    def is_faster(self, one: Prediction, other: Prediction) -> bool:
        """Whether `one` is faster in at least nine cases of ten, doubts in common taken out."""
        own = [(p.high_s / p.low_s) ** 0.5 for p in (one, other)]
        apart = max(own) ** (1 - _SHARED_DOUBT) * min(own) ** (1 - _SHARED_DOUBT)
        return one.step_s * apart < other.step_s

    def plot(self, **options: Any) -> Figure:
        """The comparison's picture, a figure of its own."""
        figure: Figure = present("plot", self, **options)
        return figure

    def __str__(self) -> str:
        return f"{self.predictions[0].model}: {self.verdict}"

    def __repr__(self) -> str:
        rows = [("machine", "step", "80 % interval", "samples/s", "limited by", "memory", "fits", "cost per million")]
        for one in self.predictions:
            cost = f"{one.cost_per_million:,.2f}" if one.cost_per_million else "–"
            memory = f"{byte_count(one.peak_bytes)} of {byte_count(one.memory_bytes)}"
            between = f"{seconds(one.low_s)} – {seconds(one.high_s)}"
            limit = f"{one.limiter} {percent(one.limits[one.limiter] / one.step_s)}"
            rows.append(
                (one.machine, seconds(one.step_s), between, f"{one.samples_per_s:,.4g}", limit, memory, one.fits, cost)
            )
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([*lines, self.verdict])


@checked_arguments()
def compare_machines(
    step_or_model: Any,
    example: Any,
    machines: Iterable[Any] = ("T4", "A10G", "A100-80GB", "H100", "H200", "B200"),
    *,
    price_per_hour: Mapping[str, float] | None = None,
    **options: Any,
) -> MachineComparison:
    """`predict` on each of `machines` (names or cards); the step is followed once.

    `price_per_hour` gives a GPU's price by the name that `machines` has, in any currency; other keywords are
    `predict`'s. UsageError for an unknown machine, or none.
    """
    cards = []
    for machine in machines:
        card = MachineCard.of(machine)
        price = (price_per_hour or {}).get(machine if isinstance(machine, str) else card.key, card.price_per_hour)
        cards.append(MachineCard.of(card, price_per_hour=float(price)))
    if not cards:
        raise UsageError(
            "machines= must name at least one GPU, got an empty list.",
            why="The step is predicted once for each GPU.",
            next='Pass GPUs, such as ["T4", "A100-80GB", "H100"].',
        )
    first = predict_step(step_or_model, example, cards[0], **options)
    return MachineComparison((first, *(first.what_if(machine=card) for card in cards[1:])))
