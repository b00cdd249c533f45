"""What sharding costs: bytes a GPU keeps and sends with ZeRO or FSDP, split layers, pipelines, and sums in buckets.

Sources: ZeRO's stages, Rajbhandari et al. 2020 (FSDP's full shard is stage 3); split blocks, Shoeybi et al. 2019
(Megatron-LM), with activations after Korthikanti et al. 2022; pipelines, Huang et al. 2019 (GPipe) and Narayanan et al.
2021 (1F1B, interleaving).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from edl_labs.errors import UsageError
from edl_labs.roofline.network.alpha_beta import GroupLinks, collective_cost
from edl_labs.roofline.sizes import check_amount, check_rate, check_sizes
from edl_labs.values import Value

SCHEDULES = ("gpipe", "1f1b")
_BLOCK_SUMS = 2  # after attention and after the MLP (Megatron-LM, figure 4), forward and again backward
_KEPT, _SPLIT, _SCORES = 10, 24, 5  # bytes a token and channel of 2-byte activations (Korthikanti et al., equation 2)


@dataclass(frozen=True)
class StateBytes:
    """Bytes per parameter that a step keeps: mixed precision with Adam (2 + 2 + 12) unless told otherwise."""

    weights: float = 2
    gradients: float = 2
    optimizer: float = 12

    def __post_init__(self) -> None:
        for name in ("weights", "gradients", "optimizer"):
            check_amount(name, getattr(self, name))


@dataclass(frozen=True)
class Calls:
    """One collective, `times` a step, each of so many bytes."""

    operation: str
    message_bytes: float
    times: int = 1

    def sent_bytes(self, ranks: int) -> float:
        """What each rank sends at least: (P-1)/P of the vector, twice that in an all_reduce."""
        passes = 2 if self.operation == "all_reduce" else 1
        return passes * (ranks - 1) / ranks * self.message_bytes * self.times


@dataclass(frozen=True)
class Bucket:
    """Gradients that travel together: their bytes, and when the backward pass has the last of them."""

    gradient_bytes: float
    ready_s: float


@dataclass(frozen=True, repr=False)
class BucketTimes(Value):
    """When each bucket began and ended to travel, counted from the start of the backward pass."""

    DERIVED = ("finish_s", "exposed_s")

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


def zero_bytes_per_parameter(stage: int, *, ranks: int, state: StateBytes | None = None) -> float:
    """Bytes of state per parameter on each of `ranks`: stage 1 shards the optimizer, 2 gradients too, 3 weights too.

    >>> [zero_bytes_per_parameter(stage, ranks=8) for stage in (0, 1, 2, 3)]
    [16.0, 5.5, 3.75, 2.0]
    """
    state = _checked_state(stage, ranks, state)
    parts = (state.optimizer, state.gradients, state.weights)
    return sum(part / ranks if at < stage else float(part) for at, part in enumerate(parts))


def zero_calls(
    stage: int, parameters: float, *, ranks: int, state: StateBytes | None = None, micro_batches: int = 1
) -> tuple[Calls, ...]:
    """Collectives of one step: 2 Psi to send in stages 0 to 2, 3 Psi in stage 3, for one micro-batch.

    Stages 0 and 1 sum gradients once a step, however many micro-batches there are. From stage 2 on no rank keeps whole
    gradients, and in stage 3 no whole weights: each micro-batch pays.

    >>> [sum(call.sent_bytes(8) for call in zero_calls(stage, 8e9, ranks=8)) for stage in (0, 1, 2, 3)]
    [28000000000.0, 28000000000.0, 28000000000.0, 42000000000.0]
    """
    state = _checked_state(stage, ranks, state)
    check_rate("parameters", parameters)
    check_sizes(micro_batches=micro_batches)
    if ranks == 1:
        return ()
    gradients, weights = state.gradients * parameters, state.weights * parameters
    if stage == 0:
        return (Calls("all_reduce", gradients),)
    reduced = Calls("reduce_scatter", gradients, 1 if stage == 1 else micro_batches)
    return reduced, Calls("all_gather", weights, 2 * micro_batches if stage == 3 else 1)


def tensor_calls(
    tokens: float, *, hidden: int, blocks: int, ranks: int, item_bytes: float = 2, recompute: bool = False
) -> tuple[Calls, ...]:
    """All_reduces of blocks that are split over `ranks`, for `tokens` in a step: two a block forward, two backward.

    `recompute` runs each block forward once more, with its two sums.
    """
    check_rate("tokens", tokens)
    check_sizes(hidden=hidden, blocks=blocks, ranks=ranks)
    passes = 3 if recompute else 2
    vector = tokens * hidden * item_bytes
    return (Calls("all_reduce", vector, passes * _BLOCK_SUMS * blocks),) if ranks > 1 else ()


def block_activation_bytes(
    tokens: float, *, hidden: int, ranks: int = 1, attention_scores: float = 0, recompute: bool = False
) -> float:
    """Activations that a block keeps for its backward pass, in 2-byte types, split over `ranks`.

    Per token and channel 10 + 24 / ranks bytes; `attention_scores` (heads x sequence / hidden) adds 5 of them / ranks
    where attention keeps its matrices; with `recompute` the block's input alone, 2 bytes.

    >>> block_activation_bytes(2048, hidden=4096) / 2048 / 4096
    34.0
    """
    check_rate("tokens", tokens)
    check_sizes(hidden=hidden, ranks=ranks)
    check_amount("attention_scores", attention_scores)
    if recompute:
        return 2.0 * tokens * hidden
    return tokens * hidden * (_KEPT + (_SPLIT + _SCORES * attention_scores) / ranks)


def bubble_fraction(stages: int, micro_batches: int, *, chunks: int = 1) -> float:
    """The share of a step in which a stage idles: (p-1)/(vm+p-1), in GPipe and in 1F1B alike.

    1F1B changes what is in flight, not the bubble; v `chunks` of layers a stage (interleaving) do shrink it.

    >>> bubble_fraction(4, 4), bubble_fraction(4, 16)
    (0.42857142857142855, 0.15789473684210525)
    """
    check_sizes(stages=stages, micro_batches=micro_batches, chunks=chunks)
    return (stages - 1) / (chunks * micro_batches + stages - 1)


def micro_batches_in_flight(schedule: str, *, stage: int, stages: int, micro_batches: int) -> int:
    """How many micro-batches' activations a stage (the first is 0) holds at most: m in GPipe, p - stage in 1F1B.

    >>> [micro_batches_in_flight(name, stage=0, stages=4, micro_batches=16) for name in SCHEDULES]
    [16, 4]
    """
    check_sizes(stages=stages, micro_batches=micro_batches)
    if schedule not in SCHEDULES or stage not in range(stages):
        raise UsageError(
            f"no stage {stage!r} of {stages} in a schedule {str(schedule)[:20]!r}",
            why=f"schedules are {' and '.join(SCHEDULES)}, stages are numbered from 0",
            next="say schedule='1f1b', stage=0",
        )
    return micro_batches if schedule == "gpipe" else min(micro_batches, stages - stage)


def equal_buckets(gradient_bytes: float, count: int, *, backward_s: float) -> tuple[Bucket, ...]:
    """`count` buckets of equal size, which the backward pass finishes one after another at a steady pace."""
    check_sizes(count=count)
    check_amount("gradient_bytes", gradient_bytes)
    check_amount("backward_s", backward_s)
    return tuple(Bucket(gradient_bytes / count, backward_s * (at + 1) / count) for at in range(count))


def sent_in_buckets(
    buckets: Iterable[Bucket],
    levels: Sequence[GroupLinks] | GroupLinks,
    *,
    backward_s: float,
    algorithm: str = "auto",
) -> BucketTimes:
    """All_reduces of gradients under the backward pass: each begins when its bucket is ready and the links are free."""
    start_s: list[float] = []
    end_s: list[float] = []
    for bucket in buckets:
        cost = collective_cost("all_reduce", bucket.gradient_bytes, levels, algorithm=algorithm)
        start_s.append(max(bucket.ready_s, end_s[-1] if end_s else 0.0))
        end_s.append(start_s[-1] + cost.seconds)
    if not end_s:
        raise UsageError("gradients in no buckets", why="each travels in one", next="give at least one Bucket")
    return BucketTimes(backward_s, tuple(start_s), tuple(end_s))


def _checked_state(stage: int, ranks: int, state: StateBytes | None) -> StateBytes:
    check_sizes(ranks=ranks)
    if isinstance(stage, bool) or stage not in (0, 1, 2, 3):
        raise UsageError(
            f"no stage {str(stage)[:20]} of ZeRO",
            why="0 shards nothing, 1 the optimizer's state, 2 gradients too, 3 weights too",
            next="give stage 0, 1, 2 or 3",
        )
    return state or StateBytes()
