"""Mistakes about tiles: the sentence of each, and what a mistaken choice aims at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_ALL = "in every tile and split of all cases, and all else is right"
SAID: dict[str, tuple[str, str, str]] = {
    "waves in parts": (
        "a wave that is not full takes as long as a full one",
        f"a part of a wave was counted as a part of its time {_ALL}",
        "how many whole waves are there?",
    ),
    "output over tile": (
        "a ragged tile is a whole block",
        f"the output's elements were divided by a tile's {_ALL}",
        "tiles along m and tiles along n are each rounded up",
    ),
    "tiles rounded down": (
        "ragged tiles at the edges are left out",
        f"tiles were rounded down {_ALL}",
        "who computes the last rows and columns?",
    ),
    "one block an SM in waves": (
        "an SM holds per_sm blocks at a time",
        f"waves of one block an SM were counted {_ALL}",
        "how many blocks does the whole chip hold?",
    ),
    "whole rate each": (
        "blocks of one SM share its rate",
        f"each block had an SM's whole rate {_ALL}",
        "two blocks at a time take as long as one after the other",
    ),
    "no per_sm": (
        "per_sm is left out",
        f"SMs held one block each {_ALL}",
        "it makes waves larger, and each block slower",
    ),
    "no efficiency": (
        "the efficiency of a tile is left out",
        f"every tile reached the SM's whole rate {_ALL}",
        "small tiles reach less: that is what the field says",
    ),
    "split makes no blocks": (
        "a split makes more blocks",
        f"blocks were those of the output's tiles, with every split {_ALL}",
        "each tile is given to how many blocks?",
    ),
    "all of k": (
        "a block of a split sums a part of k alone",
        f"every block summed all of k {_ALL}",
        "k over split, rounded up",
    ),
    "k in fractions": (
        "the part of k that a block sums is rounded up",
        f"parts of an element were summed {_ALL}",
        "the slowest block has the part that is rounded up",
    ),
    "k rounded down": (
        "the rest of k is left out",
        f"k over split was rounded down {_ALL}",
        "who sums the last elements?",
    ),
    "a pair once": (
        "a multiplication and an addition are two operations",
        f"each pair was counted once {_ALL}",
        "2 FLOP for each element of a tile and of k",
    ),
    "split for free": (
        "a split has a price: its sums are added up by a second kernel",
        f"a split cost nothing {_ALL}",
        "which bytes are written and read, and who launches it?",
    ),
    "always a second kernel": (
        "without a split there is no second kernel",
        "its bytes and launch were counted with one part too",
        "one part needs no adding up",
    ),
    "no launch": (
        "the second kernel's launch is left out",
        f"its bytes alone were counted {_ALL}",
        "a launch has a price of its own",
    ),
    "parts once": (
        "sums of the parts take 8 bytes each: 4 are written, then read",
        f"4 bytes of each were counted {_ALL}",
        "who writes them, who reads them, and what is not rounded yet?",
    ),
    "parts in one place": (
        "every block writes its sums, and all of them are read",
        f"one of the two was counted for a single output {_ALL}",
        "how many outputs are written in parts, and how many are read?",
    ),
    "no output": (
        "the output is written once more, in 2 bytes",
        f"only sums of the parts were counted {_ALL}",
        "what does the second kernel put out?",
    ),
    "output in fp32": (
        "the output is written in 2 bytes",
        f"4 were counted {_ALL}",
        "sums of the parts have 4, the output has 2",
    ),
    "parts in 2 bytes one way": (
        "sums of the parts have 4 bytes on both ways",
        f"2 were counted on one of them {_ALL}",
        "the second kernel reads what was written",
    ),
    "a part fewer": (
        "every part is written and read, the first one too",
        f"one part fewer was counted {_ALL}",
        "split blocks, each with sums",
    ),
    "real FLOP over blocks": (
        "a block computes a whole tile, ragged or not",
        f"the product's own FLOP were shared out among blocks {_ALL}",
        "2 FLOP for each element of a tile and of its part of k",
    ),
    "rounded up along m alone": (
        "ragged tiles along n are left out",
        f"tiles were rounded up along m and down along n {_ALL}",
        "who computes the last columns?",
    ),
    "rounded up along n alone": (
        "ragged tiles along m are left out",
        f"tiles were rounded up along n and down along m {_ALL}",
        "who computes the last rows?",
    ),
    "a split as more room": (
        "a split makes more and shorter blocks, and no more room for them",
        f"SMs held split times as many blocks, each over all of k, {_ALL}",
        "split blocks for each tile, each over its part of k",
    ),
    "efficiency twice": (
        "the efficiency of a tile is counted twice",
        f"its square was taken {_ALL}",
        "an SM's rate times the efficiency, once",
    ),
    "whole tiles added up": (
        "parts are outputs of m × n, not of whole tiles",
        f"the second kernel moved padded outputs {_ALL}",
        "which elements of a ragged tile are written?",
    ),
    "a launch a part": (
        "one launch adds up all parts",
        f"a launch was counted for each of them {_ALL}",
        "how many kernels come after the waves?",
    ),
}

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
