"""Races: two threads at the same element, one of them writing, and nothing that orders them.

Threads of a block are ordered by `syncthreads`, those of a warp by `syncwarp` too; threads of different blocks by
nothing but the end of the launch. Atomic additions do not race with each other. That a warp's lanes run in step orders
nothing: since Volta each has a program counter of its own. A race is found whether or not the values came out right.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from edl_labs.values import Value


class Touch(NamedTuple):
    """One access of one thread: how many barriers of its block and of its warp it has passed."""

    block: int
    phase: int
    warp: int
    warp_phase: int
    thread: int
    op: str
    line: int


@dataclass(frozen=True, repr=False)
class WarpRace(Value):
    """Two accesses to element `place` of `array` that nothing orders; threads as (block, number in the block)."""

    launch: int
    array: str
    is_shared: bool
    place: int
    first: tuple[int, int]
    first_op: str
    first_line: int
    second: tuple[int, int]
    second_op: str
    second_line: int

    def __str__(self) -> str:
        does = {"load": "reads", "store": "writes", "atomic_add": "adds to"}
        return (
            f"thread {self.first[1]} of block {self.first[0]} {does[self.first_op]} element {self.place} of "
            f"{self.array} (line {self.first_line}), thread {self.second[1]} of block {self.second[0]} "
            f"{does[self.second_op]} the same element (line {self.second_line}), and nothing puts these accesses in "
            "order"
        )


def unordered(touches: Iterable[Touch]) -> tuple[Touch, Touch] | None:
    """Two accesses to one element that race, if any do."""
    every = sorted(touches)
    if not _is_shared_out(every):
        return None
    blocks = {touch.block for touch in every}
    if len(blocks) > 1:
        pair = _clash(every, lambda one, other: one.block != other.block)
        if pair:
            return pair
    for _, group in groupby(every, key=lambda touch: (touch.block, touch.phase)):
        phase = list(group)
        pair = _clash(phase, lambda one, other: one.warp != other.warp)
        if pair:
            return pair
        for _, part in groupby(phase, key=lambda touch: (touch.warp, touch.warp_phase)):
            pair = _clash(list(part), lambda one, other: one.thread != other.thread)
            if pair:
                return pair
    return None


def _is_shared_out(touches: Sequence[Touch]) -> bool:
    """Whether several threads touch it, and one of them changes it."""
    return any(touch.op != "load" for touch in touches) and len({(one.block, one.thread) for one in touches}) > 1


def _clash(touches: Sequence[Touch], apart: object) -> tuple[Touch, Touch] | None:
    assert callable(apart)
    changing = [touch for touch in touches if touch.op != "load"]
    # Of each thread one access of each kind is enough, and loads are told from what changes.
    for one in changing:
        for other in touches:
            atomic = one.op == other.op == "atomic_add"
            if not atomic and apart(one, other):
                return (one, other) if one <= other else (other, one)
    return None
