"""The stage ladder: what each stage of a loader takes alone, and what all up to it take together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

from edl_labs.clock import Clock
from edl_labs.errors import UsageError
from edl_labs.pipeline.errors import BrokenSample
from edl_labs.pipeline.images import Stage, left_out
from edl_labs.units import seconds
from edl_labs.values import Value

# What one stage gave is held for the next: open files, whose number is limited, and decoded images, which are large.
_HELD = 48


@dataclass(frozen=True, repr=False)
class Rung(Value):
    """One stage: seconds a sample alone with its interval, and seconds a sample of everything up to it."""

    name: str
    alone_s: float
    low_s: float
    high_s: float
    cumulative_s: float
    where: str


@dataclass(frozen=True, repr=False)
class Ladder(Value):
    """All rungs, the batch size that collating was priced at, and why other rungs are missing.

    `cache` says whether files were in the page cache: a warm figure says nothing about a cold one.
    """

    ROWS = "rungs"

    rungs: tuple[Rung, ...]
    batch_size: int
    cache: str = "unknown"
    left_out: dict[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Rung:
        return next(rung for rung in self.rungs if rung.name == name)

    @property
    def worker_s(self) -> float:
        """What a worker does for a sample, added up from the stages alone."""
        return sum(rung.alone_s for rung in self.rungs if rung.where == "worker")

    @property
    def main_s(self) -> float:
        """What the training process does for a sample."""
        return sum(rung.alone_s for rung in self.rungs if rung.where == "main")

    @property
    def slowest(self) -> Rung:
        """The stage that takes longest alone."""
        return max(self.rungs, key=lambda rung: rung.alone_s)

    @property
    def additivity(self) -> float:
        """What the last rung took together over the sum of all alone: 1 where stages do not help or hurt each other."""
        total = sum(rung.alone_s for rung in self.rungs)
        return self.rungs[-1].cumulative_s / total if total else 1.0

    def __str__(self) -> str:
        rows = [f"{'stage':10} {'alone':>10} {'so far':>10}   a sample, page cache {self.cache}"]
        for rung in self.rungs:
            rows.append(f"{rung.name:10} {seconds(rung.alone_s):>10} {seconds(rung.cumulative_s):>10}")
        return "\n".join([*rows, *(f"{name:10} {'-':>10}   {why}" for name, why in self.left_out.items())])


def measure_ladder(
    stages: Sequence[Stage],
    samples: Sequence[Any],
    *,
    batch_size: int = 32,
    budget_s: float = 0.15,
    clock: Clock | None = None,
    cache: str = "unknown",
) -> Ladder:
    """The `Ladder` of `stages` over `samples` (what the first stage takes), each stage for `budget_s` twice.

    A stage alone gets what the stages before it gave, made beforehand, of at most 48 samples (or batches) spread over
    all; a stage of a batch gets batches of `batch_size`. BrokenSample names the one of `samples` that a stage refused.
    """
    if not stages or not samples:
        raise UsageError("there is nothing to measure", why="stages and samples are needed", next="image_stages(store)")
    given = [(sample, sample) for sample in samples]
    rungs: list[Rung] = []
    chain: list[Stage] = []
    for stage in stages:
        if stage.per_batch and not any(before.per_batch for before in chain):
            given = [_transposed(batch) for batch in _batches(given, batch_size)]
        chain.append(stage)
        share = batch_size if stage.per_batch else 1
        alone = _timed(stage.fn, given, budget_s, clock, stage.name)
        inputs = _batches(samples, batch_size) if stage.per_batch else list(samples)
        together = _timed(_composed(chain), [(value, value) for value in inputs], budget_s, clock, stage.name)
        rungs.append(
            Rung(
                stage.name,
                alone.median_s / share,
                alone.low_s / share,
                alone.high_s / share,
                together.median_s / share,
                stage.where,
            )
        )
        given = [(sample, _numbered(stage.fn, sample, value)) for sample, value in _spread(given)]
    return Ladder(tuple(rungs), batch_size, cache, left_out(stages))


def _spread(values: list[Any]) -> list[Any]:
    """The values, or as many as may be held, from all over them."""
    count = min(len(values), _HELD)
    return [values[n * len(values) // count] for n in range(count)]


def _batches(values: Sequence[Any], batch_size: int) -> list[list[Any]]:
    """Batches of the full size that go through the values, and round again where the last one is not full."""
    count = len(values)
    return [[values[(start + n) % count] for n in range(batch_size)] for start in range(0, count, batch_size)]


def _transposed(pairs: list[tuple[Any, Any]]) -> tuple[list[Any], list[Any]]:
    return [sample for sample, _ in pairs], [value for _, value in pairs]


def _numbered(fn: Callable[[Any], Any], sample: Any, value: Any) -> Any:
    """`fn(value)`: stages pass bytes and images on, and only who gives them their input knows whose these are."""
    try:
        return fn(value)
    except BrokenSample as error:
        if error.sample.startswith("sample "):
            raise
        name = f"one of the samples {sample}" if isinstance(sample, list) else f"sample {sample}"
        raise BrokenSample(name, error.problem) from error


def _composed(chain: Sequence[Stage]) -> Callable[[Any], Any]:
    each = [stage.fn for stage in chain if not stage.per_batch]
    whole = [stage.fn for stage in chain if stage.per_batch]

    def one(value: Any) -> Any:
        for fn in each:
            value = fn(value)
        return value

    def batch(values: Any) -> Any:
        result: Any = [_numbered(one, value, value) for value in values]
        for fn in whole:
            result = fn(result)
        return result

    return batch if whole else one


def _timed(
    fn: Callable[[Any], Any], given: list[tuple[Any, Any]], budget_s: float, clock: Clock | None, name: str
) -> Any:
    from edl_labs.bench import measure

    turn = cycle(given)
    return measure(lambda: _numbered(fn, *next(turn)), budget_s=budget_s, clock=clock, name=name, detect=False)
