"""What sharding costs: bytes a GPU keeps and sends with ZeRO or FSDP, and sums of layers that are split.

Sources: ZeRO's stages, Rajbhandari et al. 2020 (FSDP's full shard is stage 3); split blocks, Shoeybi et al. 2019
(Megatron-LM). What a collective takes in seconds: `virtual.cluster.CollectiveCosts`.
"""

from __future__ import annotations

from dataclasses import dataclass

from edl_labs.errors import UsageError
from edl_labs.roofline.sizes import check_amount, check_rate, check_sizes

_BLOCK_SUMS = 2  # after attention and after the MLP (Megatron-LM, figure 4), forward and again backward


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


def _checked_state(stage: int, ranks: int, state: StateBytes | None) -> StateBytes:
    check_sizes(ranks=ranks)
    if isinstance(stage, bool) or stage not in (0, 1, 2, 3):
        raise UsageError(
            f"no stage {str(stage)[:20]} of ZeRO",
            why="0 shards nothing, 1 the optimizer's state, 2 gradients too, 3 weights too",
            next="give stage 0, 1, 2 or 3",
        )
    return state or StateBytes()
