"""Mistakes about tiles: what each would give in place of a part's right price, or as the choice, and its sentence."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

_Slip = Callable[[Any, str, int, int, float], float]
_Counts = Callable[[Any, Any, int], float]
_ALL = "in every tile and split of all cases, and all else is right"


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


SLIPS: tuple[tuple[_Slip, str, str, str], ...] = (
    (
        _in_waves(lambda case, tile, split: _blocks(case, tile, split) / _slots(case, tile)),
        "a wave that is not full takes as long as a full one",
        f"a part of a wave was counted as a part of its time {_ALL}",
        "how many whole waves are there?",
    ),
    (
        _in_waves(
            lambda case, tile, split: math.ceil(
                case["m"] * case["n"] / tile["m"] / tile["n"] * split / _slots(case, tile)
            )
        ),
        "a ragged tile is a whole block",
        f"the output's elements were divided by a tile's {_ALL}",
        "tiles along m and tiles along n are each rounded up",
    ),
    (
        _in_waves(
            lambda case, tile, split: math.ceil(
                (case["m"] // tile["m"]) * (case["n"] // tile["n"]) * split / _slots(case, tile)
            )
        ),
        "ragged tiles at the edges are left out",
        f"tiles were rounded down {_ALL}",
        "who computes the last rows and columns?",
    ),
    (
        _in_waves(lambda case, tile, split: math.ceil(_blocks(case, tile, split) / case["chip"]["sm_count"])),
        "an SM holds per_sm blocks at a time",
        f"waves of one block an SM were counted {_ALL}",
        "how many blocks does the whole chip hold?",
    ),
    (
        _computing(lambda case, tile, split: 1 / tile["per_sm"]),
        "blocks of one SM share its rate",
        f"each block had an SM's whole rate {_ALL}",
        "two blocks at a time take as long as one after the other",
    ),
    (
        _computing(
            lambda case, tile, split: (
                math.ceil(_blocks(case, tile, split) / case["chip"]["sm_count"])
                / _waves(case, tile, split)
                / tile["per_sm"]
            )
        ),
        "per_sm is left out",
        f"SMs held one block each {_ALL}",
        "it makes waves larger, and each block slower",
    ),
    (
        _computing(lambda case, tile, split: tile["efficiency"]),
        "the efficiency of a tile is left out",
        f"every tile reached the SM's whole rate {_ALL}",
        "small tiles reach less: that is what the field says",
    ),
    (
        _in_waves(lambda case, tile, split: math.ceil(_blocks(case, tile, 1) / _slots(case, tile))),
        "a split makes more blocks",
        f"blocks were those of the output's tiles, with every split {_ALL}",
        "each tile is given to how many blocks?",
    ),
    (
        _k_of(lambda k, split: k),
        "a block of a split sums a part of k alone",
        f"every block summed all of k {_ALL}",
        "k over split, rounded up",
    ),
    (
        _k_of(lambda k, split: k / split),
        "the part of k that a block sums is rounded up",
        f"parts of an element were summed {_ALL}",
        "the slowest block has the part that is rounded up",
    ),
    (
        _k_of(lambda k, split: k // split),
        "the rest of k is left out",
        f"k over split was rounded down {_ALL}",
        "who sums the last elements?",
    ),
    (
        _computing(lambda case, tile, split: 0.5),
        "a multiplication and an addition are two operations",
        f"each pair was counted once {_ALL}",
        "2 FLOP for each element of a tile and of k",
    ),
    (
        _no_second_kernel,
        "a split has a price: its sums are added up by a second kernel",
        f"a split cost nothing {_ALL}",
        "which bytes are written and read, and who launches it?",
    ),
    (
        _always_second,
        "without a split there is no second kernel",
        "its bytes and launch were counted with one part too",
        "one part needs no adding up",
    ),
    (
        _no_launch,
        "the second kernel's launch is left out",
        f"its bytes alone were counted {_ALL}",
        "a launch has a price of its own",
    ),
    (
        _adding(lambda split: 4 * split + 2),
        "sums of the parts take 8 bytes each: 4 are written, then read",
        f"4 bytes of each were counted {_ALL}",
        "who writes them, who reads them, and what is not rounded yet?",
    ),
    (
        _adding(lambda split: 4 * split + 4 + 2),
        "every block writes its sums, and all of them are read",
        f"one of the two was counted for a single output {_ALL}",
        "how many outputs are written in parts, and how many are read?",
    ),
    (
        _adding(lambda split: 8 * split),
        "the output is written once more, in 2 bytes",
        f"only sums of the parts were counted {_ALL}",
        "what does the second kernel put out?",
    ),
    (
        _adding(lambda split: 8 * split + 4),
        "the output is written in 2 bytes",
        f"4 were counted {_ALL}",
        "sums of the parts have 4, the output has 2",
    ),
    (
        _adding(lambda split: 4 * split + 2 * split + 2),
        "sums of the parts have 4 bytes on both ways",
        f"2 were counted on one of them {_ALL}",
        "the second kernel reads what was written",
    ),
    (
        _adding(lambda split: 8 * (split - 1) + 2),
        "every part is written and read, the first one too",
        f"one part fewer was counted {_ALL}",
        "split blocks, each with sums",
    ),
)

Aim = Callable[[Any, Any, int, float], Any]
AIMS: tuple[tuple[Aim, str, str, str], ...] = (
    (
        lambda case, tile, split, s: (split, s),
        "a split is never chosen",
        "the choice is the best without one in all cases",
        "price the splits too",
    ),
    (
        lambda case, tile, split, s: (-tile["m"] * tile["n"], s),
        "the largest tile is not always the quickest",
        "it was chosen in all cases",
        "what do its waves look like?",
    ),
    (
        lambda case, tile, split, s: (tile["m"] * tile["n"], s),
        "the smallest tile is not always the quickest",
        "it was chosen in all cases",
        "how much of the rate does it reach?",
    ),
    (lambda case, tile, split, s: -s, "the slowest is chosen", "in all cases", "min, or max?"),
)
