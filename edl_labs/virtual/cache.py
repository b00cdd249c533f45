"""An L2 that remembers which regions of memory were touched last."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable


class L2Cache:
    """Least recently used regions, up to a capacity in bytes; a region is resident as a whole or not at all.

    A region larger than the cache evicts everything and stays out itself: a sweep through it, repeated, finds nothing.

    >>> cache = L2Cache(100)
    >>> cache.touch([("x", 60)]), cache.touch([("x", 60)]), cache.touch([("y", 60)]), cache.touch([("x", 60)])
    (0, 60, 0, 0)
    """

    def __init__(self, capacity_bytes: int) -> None:
        self._capacity = capacity_bytes
        self._resident: OrderedDict[Hashable, int] = OrderedDict()
        self._used = 0

    def touch(self, regions: Iterable[tuple[Hashable, int]]) -> int:
        """How many bytes of `regions`, pairs of a key and bytes, were resident; then they are the latest ones."""
        hits = 0
        for key, size in regions:
            found = self._resident.pop(key, 0)
            self._used -= found
            hits += found
            self._keep(key, size)
        return hits

    def _keep(self, key: Hashable, size: int) -> None:
        if size > self._capacity:
            self._resident.clear()
            self._used = 0
            return
        self._resident[key] = size
        self._used += size
        while self._used > self._capacity:
            self._used -= self._resident.popitem(last=False)[1]
