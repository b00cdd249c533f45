"""The cases of tile_choice: chips and products for which every rule of the price decides something."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from edl_labs.checks import Case, case_source

_TRIES = 3000  # one in thirty draws is asked
_MARGIN = 1.02  # between the best choice and the next: rounding must not decide
_SPLITS = (1, 2, 3, 4, 8)  # the chip's list in every case but one
_OTHER_SPLITS = (1, 3, 5, 6, 12)  # only a choice from the chip's own list is one of these


@case_source("tile_choice")
def products(rng: Any) -> list[Case]:
    cases = [
        _decided(rng, _small_output, lambda best, tiles: best[1] > 2 and best[0] != 2),
        _decided(rng, _middling, lambda best, tiles: best == (1, 1)),
        _decided(rng, _middling, lambda best, tiles: best[1] == 1 and best[0] == 2),
        _decided(rng, _small_output, lambda best, tiles: best[1] == 2),
        _decided(rng, _large, lambda best, tiles: best == (0, 1)),
        _decided(rng, _small_output, lambda best, tiles: best[1] in (3, 5, 6), splits=_OTHER_SPLITS),
    ]
    return [Case(given=one) for one in cases]


def _small_output(rng: Any) -> dict[str, Any]:
    return {"m": _odd(rng, 200, 1200), "n": _odd(rng, 200, 1200), "k": _odd(rng, 5000, 40_000)}


def _middling(rng: Any) -> dict[str, Any]:
    return {"m": _odd(rng, 1000, 3000), "n": _odd(rng, 1000, 3000), "k": _odd(rng, 500, 2000)}


def _large(rng: Any) -> dict[str, Any]:
    return {"m": _odd(rng, 4000, 9000), "n": _odd(rng, 4000, 9000), "k": _odd(rng, 2000, 5000)}


def _odd(rng: Any, least: int, most: int) -> int:
    """An odd number: no tile and no split divides it."""
    return int(rng.integers(least // 2, most // 2)) * 2 + 1


def _chip(rng: Any, splits: Sequence[int]) -> dict[str, Any]:
    shapes = ((256, 128), (128, 128), (64, 64))
    shares = sorted((round(float(share), 2) for share in rng.uniform(0.4, 0.95, size=3)), reverse=True)
    per_sm = (1, int(rng.integers(1, 3)), int(rng.integers(2, 5)))
    tiles = [
        {"m": m, "n": n, "efficiency": share, "per_sm": held}
        for (m, n), share, held in zip(shapes, shares, per_sm, strict=True)
    ]
    return {
        "sm_count": int(rng.integers(40, 140)),
        "sm_flop_per_s": round(float(rng.uniform(1.5e12, 6e12)), -9),
        "byte_per_s": round(float(rng.uniform(0.6e12, 3e12)), -9),
        "launch_s": round(float(rng.uniform(2e-6, 6e-6)), 7),
        "splits": [*splits],
        "tiles": tiles,
    }


def _decided(
    rng: Any,
    sizes: Callable[[Any], dict[str, Any]],
    wanted: Callable[[tuple[int, int], Any], bool],
    *,
    splits: Sequence[int] = _SPLITS,
) -> dict[str, Any]:
    """A product whose best choice is of a kind, by a margin."""
    for _ in range(_TRIES):
        case = {**sizes(rng), "chip": _chip(rng, splits)}
        ranked = sorted(
            (priced(case, tile, split), (tile, split)) for tile in range(3) for split in case["chip"]["splits"]
        )
        if ranked[1][0] > _MARGIN * ranked[0][0] and wanted(ranked[0][1], case["chip"]["tiles"]):
            return case
    raise AssertionError("no product was decided; draw other sizes")


def priced(case: Any, number: int, parts: int) -> float:
    """Seconds of the product."""
    chip, shape = case["chip"], case["chip"]["tiles"][number]
    count = parts * (1 + (case["m"] - 1) // shape["m"]) * (1 + (case["n"] - 1) // shape["n"])
    turns = 1 + (count - 1) // (chip["sm_count"] * shape["per_sm"])
    depth = 1 + (case["k"] - 1) // parts
    wave_s = shape["per_sm"] * 2 * shape["m"] * shape["n"] * depth / (shape["efficiency"] * chip["sm_flop_per_s"])
    after_s = 0.0
    if parts > 1:
        after_s = chip["launch_s"] + case["m"] * case["n"] * (8 * parts + 2) / chip["byte_per_s"]
    return turns * wave_s + after_s
