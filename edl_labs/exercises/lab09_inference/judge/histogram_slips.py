"""What known slips of `calibrate` choose on a histogram, by name: scales and zero points that are wrong there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_Grid = tuple[float, float]
_Price = Callable[[float, float, float], float]  # of a bin: its count, its distance beyond the grid, the scale


def slips_on(seen: Any) -> dict[str, list[float]]:
    """The grid of each slip."""
    edges, counts = seen["edges"], seen["counts"]
    kept = [at for at, count in enumerate(counts) if count]
    pairs = _pairs(seen)
    found = {name: _best(seen, pairs, price) for name, price in _PRICES.items()}
    for at, name, ends in (
        (0, "lower", (edges[0], edges[kept[0]])),
        (1, "upper", (edges[-1], edges[kept[-1] + 1])),
    ):
        for number, end in enumerate([] if seen["symmetric"] else ends):
            some = [pair for pair in pairs if pair[at] == end]
            found[f"{name} end {number}"] = _best(seen, some, _right_price)
    by_bins = max(1, round(0.0005 * len(counts)))
    found |= {
        "whole": _grid_of(edges[0], edges[-1], seen),
        "last bin": _grid_of(edges[kept[0]], edges[kept[-1]], seen),
        "bins": _grid_of(edges[by_bins], edges[-1 - by_bins], seen),
        "finest": min(one for one in (_grid_of(*pair, seen) for pair in pairs) if one[0] > 0),
    }
    if seen["symmetric"]:
        found["each end"] = _grid_of(*_each_end(seen, 0.0005), seen)
    return {name: [float(scale), float(zero)] for name, (scale, zero) in found.items()}


def _each_end(seen: Any, share: float) -> tuple[float, float]:
    """The range with at most a share of the counts beyond each end."""
    counts, edges = seen["counts"], seen["edges"]
    most = share * sum(counts)
    low = max(edge for at, edge in enumerate(edges[:-1]) if sum(counts[:at]) <= most)
    return low, min(edges[at] for at in range(1, len(edges)) if sum(counts[at:]) <= most)


def _grid_of(low: float, high: float, seen: Any) -> _Grid:
    if seen["symmetric"]:
        return max(-low, high) / 127, 0
    low, high = min(low, 0.0), max(high, 0.0)
    scale = (high - low) / 255
    return scale, round(-128 - low / scale) if scale else -128


def _pairs(seen: Any) -> list[tuple[float, float]]:
    edges = seen["edges"]
    if seen["symmetric"]:
        return [(-abs(one), abs(one)) for one in edges if one]
    return [(low, high) for at, low in enumerate(edges) for high in edges[at + 1 :]]


def _best(seen: Any, pairs: list[tuple[float, float]], price: _Price) -> _Grid:
    """The grid with the least error where a bin costs `price(count, beyond, scale)`."""
    grids = list(dict.fromkeys(_grid_of(low, high, seen) for low, high in pairs))
    lowest = -127 if seen["symmetric"] else -128
    edges = seen["edges"]
    bins = [(n, (a + b) / 2) for n, a, b in zip(seen["counts"], edges, edges[1:], strict=False)]

    def error(grid: _Grid) -> float:
        scale, zero = grid
        low, high = (lowest - zero) * scale, (127 - zero) * scale
        return sum(price(n, max(low - at, at - high, 0.0), scale) for n, at in bins)

    return min(grids, key=error)


def _right_price(count: float, beyond: float, scale: float) -> float:
    return count * (beyond**2 if beyond else scale**2 / 12)


_PRICES: dict[str, _Price] = {
    "not squared": lambda n, beyond, scale: n * (beyond**2 if beyond else scale / 12),
    "no counts": lambda n, beyond, scale: beyond**2 if beyond else scale**2 / 12,
    "distance": lambda n, beyond, scale: n * (beyond if beyond else scale**2 / 12),
    "kept is free": lambda n, beyond, scale: n * beyond**2 if beyond else 0.0,
}
PRICED_WRONGLY = tuple(_PRICES)  # where this choice is the percentile's range, it cannot be told from that
