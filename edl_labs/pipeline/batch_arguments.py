"""Checked arguments of this subject: lengths of samples, batches of their numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from edl_labs.errors import UsageError


def checked_lengths(lengths: Iterable[Any]) -> list[int]:
    """Lengths as whole numbers from 1; UsageError naming the first sample that has none."""
    found = []
    for sample, length in enumerate(lengths):
        whole = _whole(length)
        if whole is None or whole < 1:
            raise UsageError(
                f"sample {sample} has length {length!r}",
                why="a sample has at least one token, counted in whole numbers",
                next="drop empty samples, or fix what counts them",
            )
        found.append(whole)
    return found


def checked_batches(batches: Iterable[Iterable[Any]], samples: int) -> list[list[int]]:
    """Batches as lists of sample numbers below `samples`; UsageError naming the first batch that is not one."""
    found = []
    for number, batch in enumerate(batches):
        rows = [_whole(row) for row in batch]
        if not rows:
            raise UsageError(
                f"batch {number} is empty", why="a batch holds at least one sample", next="leave empty batches out"
            )
        for row in rows:
            if row is None or not 0 <= row < samples:
                raise UsageError(
                    f"batch {number} asks for sample {row!r}",
                    why=f"there are samples 0 to {samples - 1}",
                    next="let batches hold positions in `lengths`",
                )
        found.append([row for row in rows if row is not None])
    return found


def positive(value: object, what: str) -> int:
    """`value` as a whole number from 1; UsageError for anything else."""
    whole = _whole(value)
    if whole is None or whole < 1:
        raise UsageError(f"{what} is {value!r}", why="it must be a whole number, at least 1", next=f"try {what}=32")
    return whole


def refuse_longer(lengths: Sequence[int], budget: int, *, what: str) -> None:
    """UsageError naming the first sample that is longer than `budget`, which `what` names."""
    for sample, length in enumerate(lengths):
        if length > budget:
            raise UsageError(
                f"sample {sample} of {length:,} tokens does not fit {what} of {budget:,}",
                why="batching does not cut samples",
                next=f"raise {what}, or cut or drop that sample first",
            )


def _whole(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    try:
        whole = int(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return whole if whole == value else None
