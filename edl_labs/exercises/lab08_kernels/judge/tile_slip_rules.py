"""What known mistakes about tiles give in place of a part's right price: digests of it are all that cases hold."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from edl_labs.exercises.lab08_kernels.tile_prices import CLOSEST, PARTS, choices
from edl_labs.exercises.slip_digests import digest

_Slip = Callable[[Any, str, int, int, float], float]
_Counts = Callable[[Any, Any, int], float]


def _blocks(case: Any, tile: Any, split: int) -> float:
    return math.ceil(case["m"] / tile["m"]) * math.ceil(case["n"] / tile["n"]) * split


def _slots(case: Any, tile: Any) -> int:
    return int(case["chip"]["sm_count"] * tile["per_sm"])


def _waves(case: Any, tile: Any, split: int) -> int:
    return math.ceil(_blocks(case, tile, split) / _slots(case, tile))


def _computing(factor: _Counts) -> _Slip:
    """The right price of the waves, times a factor."""

    def slip(case: Any, part: str, tile: int, split: int, right: float) -> float:
        return right * factor(case, case["chip"]["tiles"][tile], split) if part == "computing" else right

    return slip


def _in_waves(waves: _Counts) -> _Slip:
    return _computing(lambda case, tile, split: waves(case, tile, split) / _waves(case, tile, split))


def _k_of(depth: Callable[[int, int], float]) -> _Slip:
    return _computing(lambda case, tile, split: depth(case["k"], split) / math.ceil(case["k"] / split))


def _adding(count: Callable[[int], float], *, alone: float = 0.0) -> _Slip:
    """Another number of bytes for each element of the output than the right one; `alone` where nothing is split."""

    def slip(case: Any, part: str, tile: int, split: int, right: float) -> float:
        if part != "adding up":
            return right
        outputs_s = case["m"] * case["n"] / case["chip"]["byte_per_s"]
        return outputs_s * (count(split) if split > 1 else alone)

    return slip


def _no_second_kernel(case: Any, part: str, tile: int, split: int, right: float) -> float:
    return right if part == "computing" else 0.0


def _always_second(case: Any, part: str, tile: int, split: int, right: float) -> float:
    if part == "launching":
        return float(case["chip"]["launch_s"])
    return _adding(lambda parts: 8 * parts + 2, alone=10)(case, part, tile, split, right)


def _no_launch(case: Any, part: str, tile: int, split: int, right: float) -> float:
    return 0.0 if part == "launching" else right


def _of_tiles(along_m: Callable[[float], int], along_n: Callable[[float], int]) -> _Slip:
    """Tiles along each side, rounded in its own way."""
    return _in_waves(
        lambda case, tile, split: math.ceil(
            along_m(case["m"] / tile["m"]) * along_n(case["n"] / tile["n"]) * split / _slots(case, tile)
        )
    )


def _whole_tiles_added(case: Any, part: str, tile: int, split: int, right: float) -> float:
    one = case["chip"]["tiles"][tile]
    whole = _blocks(case, one, 1) * one["m"] * one["n"]
    return right * whole / (case["m"] * case["n"]) if part == "adding up" else right


def slips(case: Any, priced: Callable[[Any, int, int], float]) -> dict[str, str]:
    """Of each slip, the digest of its prices: part by part, of every tile and split."""
    right = []
    for part, (free, _) in PARTS.items():
        asked = {**case, "chip": {**case["chip"], **free}}
        right += [(part, *choice, priced(asked, *choice)) for choice in choices(case)]
    return {name: digest((slip(case, *one) for one in right), least=CLOSEST) for name, slip in _SLIPS.items()}


_SLIPS: dict[str, _Slip] = {
    "waves in parts": _in_waves(lambda case, tile, split: _blocks(case, tile, split) / _slots(case, tile)),
    "output over tile": _in_waves(
        lambda case, tile, split: math.ceil(case["m"] * case["n"] / tile["m"] / tile["n"] * split / _slots(case, tile))
    ),
    "tiles rounded down": _in_waves(
        lambda case, tile, split: math.ceil(
            (case["m"] // tile["m"]) * (case["n"] // tile["n"]) * split / _slots(case, tile)
        )
    ),
    "one block an SM in waves": _in_waves(
        lambda case, tile, split: math.ceil(_blocks(case, tile, split) / case["chip"]["sm_count"])
    ),
    "whole rate each": _computing(lambda case, tile, split: 1 / tile["per_sm"]),
    "no per_sm": _computing(
        lambda case, tile, split: (
            math.ceil(_blocks(case, tile, split) / case["chip"]["sm_count"])
            / _waves(case, tile, split)
            / tile["per_sm"]
        )
    ),
    "no efficiency": _computing(lambda case, tile, split: tile["efficiency"]),
    "split makes no blocks": _in_waves(
        lambda case, tile, split: math.ceil(_blocks(case, tile, 1) / _slots(case, tile))
    ),
    "all of k": _k_of(lambda k, split: k),
    "k in fractions": _k_of(lambda k, split: k / split),
    "k rounded down": _k_of(lambda k, split: k // split),
    "a pair once": _computing(lambda case, tile, split: 0.5),
    "split for free": _no_second_kernel,
    "always a second kernel": _always_second,
    "no launch": _no_launch,
    "parts once": _adding(lambda split: 4 * split + 2),
    "parts in one place": _adding(lambda split: 4 * split + 4 + 2),
    "no output": _adding(lambda split: 8 * split),
    "output in fp32": _adding(lambda split: 8 * split + 4),
    "parts in 2 bytes one way": _adding(lambda split: 4 * split + 2 * split + 2),
    "a part fewer": _adding(lambda split: 8 * (split - 1) + 2),
    "real FLOP over blocks": _computing(
        lambda case, tile, split: (
            case["m"]
            * case["n"]
            * case["k"]
            / _blocks(case, tile, split)
            / (tile["m"] * tile["n"] * math.ceil(case["k"] / split))
        )
    ),
    "rounded up along m alone": _of_tiles(math.ceil, math.floor),
    "rounded up along n alone": _of_tiles(math.floor, math.ceil),
    "a split as more room": _computing(
        lambda case, tile, split: (
            math.ceil(_blocks(case, tile, 1) / (split * _slots(case, tile)))
            / _waves(case, tile, split)
            * case["k"]
            / math.ceil(case["k"] / split)
        )
    ),
    "efficiency twice": _computing(lambda case, tile, split: 1 / tile["efficiency"]),
    "whole tiles added up": _whole_tiles_added,
    "a launch a part": lambda case, part, tile, split, right: right * split if part == "launching" else right,
}
