"""The cases of tile_quantization and wave_quantization: matrices, counts of tiles, and widths."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from edl_labs.checks import Case, case_source

_TILES = ((256, 128), (128, 128), (128, 64), (64, 64))  # tiles that cuBLAS and CUTLASS use
_SM_COUNTS = (40, 80, 108, 114, 132)  # T4, V100, A100, H100 PCIe, H100 SXM


@case_source("tile_quantization")
def matrices(rng: Any) -> list[Case]:
    tile_m, tile_n = _tile(rng)
    rows, columns = int(rng.integers(2, 9)), int(rng.integers(2, 9))
    shapes = [
        (rows * tile_m, columns * tile_n),
        (rows * tile_m + 1, columns * tile_n),
        (rows * tile_m, columns * tile_n + 1),
        (rows * tile_m - 1, columns * tile_n - 1),
        (1, 1),
        (int(rng.integers(1, tile_m)), int(rng.integers(1, 40 * tile_n))),
    ]
    fixed = [{"m": m, "n": n, "tile_m": tile_m, "tile_n": tile_n} for m, n in shapes]
    return [Case(given=one) for one in (fixed + [_shape(rng) for _ in range(6)])]


@case_source("wave_quantization")
def waves_and_widths(rng: Any) -> list[Case]:
    sm_count = int(rng.choice(_SM_COUNTS))
    full = sm_count * int(rng.integers(1, 5))
    counts = [full, full + 1, full - 1, sm_count, 1, *(int(rng.integers(2, 9 * sm_count)) for _ in range(3))]
    reports = [{"ask": "waves", "tiles": tiles, "sm_count": sm_count} for tiles in counts]
    widths = [_width(rng) for _ in range(5)]
    tempting = [_tempting(rng, mistake) for mistake in _MISTAKEN_SHARES]
    return [Case(given=one) for one in [*reports, _tight_bound(rng), *tempting, *widths, _narrowest(rng)]]


def _tile(rng: Any) -> tuple[int, int]:
    return _TILES[int(rng.integers(len(_TILES)))]


def _shape(rng: Any) -> dict[str, int]:
    tile_m, tile_n = _tile(rng)
    return {
        "m": int(rng.integers(1, 20 * tile_m)),
        "n": int(rng.integers(1, 20 * tile_n)),
        "tile_m": tile_m,
        "tile_n": tile_n,
    }


def _width(rng: Any) -> dict[str, Any]:
    """A width question in which neither the bound nor the widest whole tile is best."""
    while True:
        case = _random_width(rng, columns=(6, 24))
        widths, best = _good_widths(case)
        if best and all(_useful_share(case, width) < best for width in (case["bound"], max(widths[:-1]))):
            return case


# What could be compared instead of the product of the two shares, of tiles and of waves.
_MISTAKEN_SHARES: tuple[Callable[[Fraction, Fraction], Fraction], ...] = (
    lambda tile, wave: tile + wave,
    lambda tile, wave: (1 + tile) * wave,
)


def _tempting(rng: Any, mistake: Callable[[Fraction, Fraction], Fraction]) -> dict[str, Any]:
    """A width question of few columns of tiles, in which `mistake` prefers the bound or the widest whole tiles."""
    while True:
        case = _random_width(rng, columns=(1, 5))
        widths, best = _good_widths(case)
        found = max(widths, key=lambda width: mistake(*_shares(case, width)))
        if best and found in widths[-2:] and _useful_share(case, found) < best:
            return case


def _random_width(rng: Any, *, columns: tuple[int, int]) -> dict[str, Any]:
    tile_m, tile_n = _tile(rng)
    return {
        "ask": "width",
        "m": int(rng.integers(2, 25)) * tile_m - int(rng.choice([0, 0, 1, tile_m // 3])),
        "bound": int(rng.integers(columns[0] * tile_n, columns[1] * tile_n)),
        "tile_m": tile_m,
        "tile_n": tile_n,
        "sm_count": int(rng.choice(_SM_COUNTS)),
    }


def _good_widths(case: Any) -> tuple[list[int], Fraction]:
    """The widths of which one is best, the bound last, and how good that is; 0 when several are equally good.

    In a column of tiles, wider is better.
    """
    widths = [*range(case["tile_n"], case["bound"], case["tile_n"]), case["bound"]]
    shares = [_useful_share(case, width) for width in widths]
    return widths, max(shares) if shares.count(max(shares)) == 1 else Fraction(0)


def _narrowest(rng: Any) -> dict[str, Any]:
    """A width question with a single answer, 1."""
    tile_m, tile_n = _tile(rng)
    sm_count = int(rng.choice(_SM_COUNTS))
    return {"ask": "width", "m": tile_m, "bound": 1, "tile_m": tile_m, "tile_n": tile_n, "sm_count": sm_count}


def _tight_bound(rng: Any) -> dict[str, Any]:
    """A width question whose best answer is the bound itself: one full wave."""
    tile_m, tile_n = _tile(rng)
    sm_count = int(rng.choice(_SM_COUNTS))
    rows = int(rng.choice([d for d in range(2, 13) if sm_count % d == 0]))
    bound = sm_count // rows * tile_n
    return {
        "ask": "width",
        "m": rows * tile_m,
        "bound": bound,
        "tile_m": tile_m,
        "tile_n": tile_n,
        "sm_count": sm_count,
    }


def _shares(case: Any, width: int) -> tuple[Fraction, Fraction]:
    """How much of its tiles a matrix fills, and how many of its waves' places hold a tile."""
    tiles = math.ceil(Fraction(case["m"], case["tile_m"])) * math.ceil(Fraction(width, case["tile_n"]))
    places = math.ceil(Fraction(tiles, case["sm_count"])) * case["sm_count"]
    return Fraction(case["m"] * width, tiles * case["tile_m"] * case["tile_n"]), Fraction(tiles, places)


def _useful_share(case: Any, width: int) -> Fraction:
    tile, wave = _shares(case, width)
    return tile * wave
