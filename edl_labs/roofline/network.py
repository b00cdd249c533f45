"""What sharding sends: the collectives of a step with ZeRO or FSDP, and those of layers that are split.

Sources: ZeRO's stages, Rajbhandari et al. 2020 (FSDP's full shard is stage 3); split blocks, Shoeybi et al. 2019
(Megatron-LM). What a collective takes in seconds: `virtual.cluster.CollectiveCosts`; what a stage keeps:
`numerics.bytes_per_parameter`.
"""

from __future__ import annotations

from dataclasses import dataclass

from edl_labs.errors import UsageError
from edl_labs.roofline.sizes import check_rate, check_sizes

_BLOCK_SUMS = 2  # after attention and after the MLP (Megatron-LM, figure 4), forward and again backward


@dataclass(frozen=True)
class Calls:
    """One collective, `times` a step, each of so many bytes."""

    operation: str
    message_bytes: float
    times: int = 1

    def sent_bytes(self, ranks: int) -> float:
        """The bytes that each rank sends at least: (P-1)/P of the vector, or twice that in an all_reduce."""
        passes = 2 if self.operation == "all_reduce" else 1
        return passes * (ranks - 1) / ranks * self.message_bytes * self.times


def zero_calls(
    stage: int, parameters: float, *, ranks: int, item_bytes: float = 2, micro_batches: int = 1
) -> tuple[Calls, ...]:
    """Collectives of one step: 2 Psi to send in stages 0 to 2, 3 Psi in stage 3, for one micro-batch.

    Stages 0 and 1 sum gradients once a step, however many micro-batches there are. From stage 2 on no rank keeps whole
    gradients, and in stage 3 no whole weights: each micro-batch pays.

    >>> [sum(call.sent_bytes(8) for call in zero_calls(stage, 8e9, ranks=8)) for stage in (0, 1, 2, 3)]
    [28000000000.0, 28000000000.0, 28000000000.0, 42000000000.0]
    """
    if isinstance(stage, bool) or stage not in (0, 1, 2, 3):
        raise UsageError(
            f"there is no ZeRO stage {str(stage)[:20]}",
            why="stage 0 shards nothing, stage 1 the optimizer state, stage 2 also the gradients, and stage 3 also the "
            "weights",
            next="pass stage 0, 1, 2 or 3",
        )
    check_rate("parameters", parameters)
    check_rate("item_bytes", item_bytes)
    check_sizes(ranks=ranks, micro_batches=micro_batches)
    if ranks == 1:
        return ()
    message_bytes = item_bytes * parameters
    if stage == 0:
        return (Calls("all_reduce", message_bytes),)
    reduced = Calls("reduce_scatter", message_bytes, 1 if stage == 1 else micro_batches)
    return reduced, Calls("all_gather", message_bytes, 2 * micro_batches if stage == 3 else 1)


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
