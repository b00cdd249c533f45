"""Which memory levels there are: as the system tells, or from the steps of a working-set sweep."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_STEP = 0.75  # neighbouring levels differ by more than a quarter, noise and patterns within one by less


def host_caches(threads: int, *, root: str = "/sys/devices/system/cpu") -> list[tuple[str, int]]:
    """Name and bytes of each cache level that `threads` cores have together, nearest first; [] where it is not told.

    A private cache counts once for each core, a shared one once for each group of cores that shares it.
    """
    found: dict[int, int] = {}
    for index in sorted(Path(root, "cpu0", "cache").glob("index*")):
        if _text(index / "type") == "Instruction":
            continue
        size, level = _bytes(_text(index / "size")), _text(index / "level")
        if size and level.isdigit():
            sharers = max(1, _cores(_text(index / "shared_cpu_list")))
            found[int(level)] = size * max(1, -(-threads // sharers))
    deepest = max(found, default=0)
    return [("LLC" if level == deepest and level > 2 else f"L{level}", found[level]) for level in sorted(found)]


def steps(sweep: Sequence[tuple[float, float]]) -> list[int]:
    """The sizes after which the rate falls to a lower plateau: cache capacities as a sweep shows them.

    `sweep` holds (bytes, rate), sizes rising. A step is where the rate leaves the plateau's best by a quarter and stays
    below.

    >>> steps([(1, 100), (2, 98), (4, 50), (8, 51), (16, 10), (32, 10)])
    [2, 8]
    """
    found: list[int] = []
    best = 0.0
    for place, (_, rate) in enumerate(sweep):
        rest = [later for _, later in sweep[place:]]
        if best and max(rest) < _STEP * best:
            found.append(int(sweep[place - 1][0]))
            best = 0.0
        best = max(best, rate)
    return found


def sizes(largest_bytes: int, *, smallest_bytes: int = 16 << 10) -> list[int]:
    """Working sets for a sweep, from `smallest_bytes` to `largest_bytes`, two for each doubling.

    >>> sizes(128 << 10)[:4]
    [16384, 24576, 32768, 49152]
    """
    found, size = [], smallest_bytes
    while size <= largest_bytes:
        found += [size, size * 3 // 2]
        size *= 2
    return [size for size in found if size <= largest_bytes]


def within(capacities: Sequence[tuple[str, float]], name: str) -> tuple[float, float]:
    """The working sets that belong to one level alone: above what the nearer ones hold, below what it holds."""
    names = [level for level, _ in capacities]
    place = names.index(name)
    nearer = capacities[place - 1][1] if place else 0
    return 1.5 * nearer, 0.75 * capacities[place][1]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


def _bytes(text: str) -> int:
    number = text.rstrip("KMG")
    return int(number) * _UNITS.get(text[-1:], 1) if number.isdigit() else 0


def _cores(text: str) -> int:
    """How many cores a list such as '0-3,8' names."""
    count = 0
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        count += int(last or first) - int(first) + 1
    return count
