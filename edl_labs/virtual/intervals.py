"""Interval maps: one value for each part of a range of positions, as replays keep for bytes and elements.

A map is a list of parts (start, stop, value) in order, without gaps.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import TypeVar

V = TypeVar("V")
Part = tuple[int, int, V]  # from where to where (not included), and the value there


def _same(value: V) -> V:
    return value


def split(parts: list[Part[V]], position: int, *, copied: Callable[[V], V] = _same) -> int:
    """Make a part start at `position`, and return its number; the second half of a cut part has a `copied` value."""
    at = bisect_right(parts, position, key=itemgetter(0)) - 1
    start, stop, value = parts[at]
    if position == start:
        return at
    if position < stop:
        parts[at : at + 1] = [(start, position, value), (position, stop, copied(value))]
    return at + 1


def between(parts: Sequence[Part[V]], start: int, stop: int) -> list[Part[V]]:
    """The parts from `start` to `stop`, cut there.

    >>> between([(0, 4, "a"), (4, 9, "b")], 2, 5)
    [(2, 4, 'a'), (4, 5, 'b')]
    """
    at = bisect_right(parts, start, key=itemgetter(0)) - 1
    found = []
    while at < len(parts) and parts[at][0] < stop:
        low, high, value = parts[at]
        found.append((max(low, start), min(high, stop), value))
        at += 1
    return found


def write(parts: list[Part[V]], new: Sequence[Part[V]]) -> int:
    """Replace what was there by `new` parts, which follow one another; returns how many parts were replaced.

    Equal neighbours are merged, so that what is written in chunks ends as one part.

    >>> parts = [(0, 9, "a")]
    >>> write(parts, [(2, 4, "b"), (4, 5, "b")]), parts
    (1, [(0, 2, 'a'), (2, 5, 'b'), (5, 9, 'a')])
    """
    low, high = split(parts, new[0][0]), split(parts, new[-1][1])
    replaced = high - low
    if low > 0:
        low, new = low - 1, [parts[low - 1], *new]
    if high < len(parts):
        new, high = [*new, parts[high]], high + 1
    parts[low:high] = _merged(new)
    return replaced


def _merged(parts: Iterable[Part[V]]) -> list[Part[V]]:
    merged: list[Part[V]] = []
    for start, stop, value in parts:
        if merged and merged[-1][2] == value:
            merged[-1] = (merged[-1][0], stop, value)
        else:
            merged.append((start, stop, value))
    return merged


def aligned(several: Sequence[Sequence[Part[V]]], size: int) -> Iterator[tuple[int, int, list[V]]]:
    """Each range in which none of several maps of one size changes, with the value of each map.

    >>> list(aligned([[(0, 2, "a"), (2, 3, "b")], [(0, 3, "c")]], 3))
    [(0, 2, ['a', 'c']), (2, 3, ['b', 'c'])]
    """
    edges = sorted({0, size, *(part[0] for parts in several for part in parts)})
    at = [0] * len(several)
    for start, stop in pairwise(edges):
        for which, parts in enumerate(several):
            while parts[at[which]][1] <= start:
                at[which] += 1
        yield start, stop, [parts[here][2] for parts, here in zip(several, at, strict=True)]
