"""How many tensors a chain of equal layers holds when it is checkpointed: arithmetic, which needs no torch."""

from __future__ import annotations

from edl_labs.arguments import checked_arguments
from edl_labs.errors import UsageError


@checked_arguments()
def checkpointed_peak(layers: int, segments: int, *, saved_per_layer: int = 1) -> int:
    """How many tensors are saved at once when `layers` equal layers are checkpointed in `segments` equal parts.

    The inputs of all segments but the last, which `checkpoint_sequential` runs plainly, and one segment in full
    (deck [002], O(sqrt n)). With one segment nothing is checkpointed.

    >>> [checkpointed_peak(64, c, saved_per_layer=2) for c in (1, 4, 8, 16, 32)]
    [128, 35, 23, 23, 35]
    """
    if not 1 <= segments <= layers:
        raise UsageError(
            f"cannot split {layers} layers into {segments} segments",
            why="each segment needs at least one layer",
            next="use, for example, checkpointed_peak(64, 8)",
        )
    # checkpoint_sequential gives each segment layers // segments and what is left over to the last one.
    return int(segments - 1 + saved_per_layer * (layers // segments + layers % segments))


@checked_arguments()
def checkpointing_slots(layers: int, segments: int) -> int:
    """Activations held by the textbook's scheme: one per segment and one segment in full, c + ceil(n / c).

    >>> [min(checkpointing_slots(n, c) for c in range(1, n + 1)) for n in (16, 64, 100)]
    [8, 16, 20]
    """
    checkpointed_peak(layers, segments)
    return segments + -(-layers // segments)
