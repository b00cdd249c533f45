"""Decoders ranked twice: alone on one thread, and inside a DataLoader; the two orders need not agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle

from edl_labs.arguments import checked_arguments
from edl_labs.errors import UsageError
from edl_labs.pipeline._run_loader import run_loader
from edl_labs.pipeline.jpeg import Decoder, agreement, decoders
from edl_labs.presenters import Plottable
from edl_labs.values import Value


@dataclass(frozen=True)
class DecoderRow:
    """One decoder: images a second alone and in the loader, with the best and worst round of each, and its ranks."""

    name: str
    version: str
    alone_per_s: float
    alone_low_per_s: float
    alone_high_per_s: float
    loader_per_s: float
    loader_low_per_s: float
    loader_high_per_s: float
    alone_rank: int
    loader_rank: int

    @property
    def scaling(self) -> float:
        """How many times faster the loader is than one thread."""
        return self.loader_per_s / self.alone_per_s


@dataclass(frozen=True, repr=False)
class DecoderRanks(Value, Plottable):
    """All decoders that give the same images; `refused` are those that do not, with how far off they are."""

    DERIVED = ("surely_moved",)
    ROWS = "rows"

    rows: tuple[DecoderRow, ...]
    workers: int
    images: int
    refused: Mapping[str, str]

    @property
    def moved(self) -> dict[str, tuple[int, int]]:
        """Decoders whose rank alone is not their rank in the loader: (alone, loader)."""
        return {r.name: (r.alone_rank, r.loader_rank) for r in self.rows if r.alone_rank != r.loader_rank}

    @property
    def surely_moved(self) -> tuple[tuple[str, str], ...]:
        """Pairs (a, b), a faster alone and b faster in the loader in every round; none from a single round."""
        spread = [row for row in self.rows if row.alone_low_per_s < row.alone_high_per_s]
        return tuple(
            (a.name, b.name)
            for a in spread
            for b in spread
            if a.alone_low_per_s > b.alone_high_per_s and b.loader_low_per_s > a.loader_high_per_s
        )


class _Decoding:
    """A data set that decodes, and hands over so little that decoding is all there is to measure."""

    def __init__(self, samples: Sequence[bytes], decode: Decoder) -> None:
        self.samples, self.decode = samples, decode

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, sample: int) -> int:
        return int(self.decode(self.samples[sample], sample=f"sample {sample}")[0, 0, 0])


@checked_arguments()
def rank_decoders(
    samples: Sequence[bytes],
    *,
    chosen: Mapping[str, Decoder] | None = None,
    workers: int = 2,
    batch_size: int = 16,
    seconds: float = 0.5,
    rounds: int = 3,
) -> DecoderRanks:
    """The `DecoderRanks` on `samples`: images are compared first, then all decoders take turns in each round."""
    chosen = decoders() if chosen is None else chosen
    if rounds < 1 or not chosen:
        raise UsageError(
            "there is nothing to rank",
            why="ranking needs at least one decoder and one round",
            next="call, for example, rank_decoders(samples, rounds=3)",
        )
    checked = agreement(samples[: min(8, len(samples))], chosen)
    refused = {a.name: f"mean difference {a.mean_difference:.2f} levels" for a in checked if not a.agrees}
    kept = {name: decode for name, decode in chosen.items() if name not in refused}
    alone: dict[str, list[float]] = {name: [] for name in kept}
    inside: dict[str, list[float]] = {name: [] for name in kept}
    for number in range(rounds):
        # Each round begins with another decoder: who runs after whom matters to caches and clocks.
        names = [*kept][number % len(kept) :] + [*kept][: number % len(kept)]
        for name in names:
            alone[name].append(_alone(samples, kept[name], seconds))
            dataset = _Decoding(samples, kept[name])
            run = run_loader(dataset, batch_size=batch_size, workers=workers, seconds=seconds)
            inside[name].append(run.sample_per_s)
    return DecoderRanks(_rows(kept, alone, inside), workers, len(samples), refused)


def _alone(samples: Sequence[bytes], decode: Decoder, seconds: float) -> float:
    from edl_labs.bench import measure

    turn = cycle(samples)
    return 1 / measure(lambda: decode(next(turn)), budget_s=seconds, name=decode.name, detect=False).median_s


def _rows(
    kept: Mapping[str, Decoder], alone: Mapping[str, list[float]], inside: Mapping[str, list[float]]
) -> tuple[DecoderRow, ...]:
    from statistics import median

    def ranks(rates: Mapping[str, list[float]]) -> dict[str, int]:
        order = sorted(rates, key=lambda name: -median(rates[name]))
        return {name: place for place, name in enumerate(order, start=1)}

    first, second = ranks(alone), ranks(inside)
    rows = [
        DecoderRow(
            name=name,
            version=decode.version,
            alone_per_s=median(alone[name]),
            alone_low_per_s=min(alone[name]),
            alone_high_per_s=max(alone[name]),
            loader_per_s=median(inside[name]),
            loader_low_per_s=min(inside[name]),
            loader_high_per_s=max(inside[name]),
            alone_rank=first[name],
            loader_rank=second[name],
        )
        for name, decode in kept.items()
    ]
    return tuple(sorted(rows, key=lambda row: row.alone_rank))
