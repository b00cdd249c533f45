"""tile_choice: products priced by tiles, waves and split sums, part by part, and the quickest of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from edl_labs.checks import close, exercise
from edl_labs.errors import Wrong
from edl_labs.units import byte_rate, seconds

_FREE = 1e40  # per second: what computes or moves at this rate costs nothing
_CLOSEST = 1e-12  # what free things still cost, in seconds
_GOOD = 1.0001  # of the best time: two choices whose prices are equal are equally right
# A part: what of the chip is free when it is asked alone, and what it is in words.
_PARTS: dict[str, tuple[dict[str, float], str]] = {
    "computing": ({"byte_per_s": _FREE, "launch_s": 0.0}, "the waves of blocks"),
    "adding up": ({"sm_flop_per_s": _FREE, "launch_s": 0.0}, "the bytes of sums that are split"),
    "launching": ({"sm_flop_per_s": _FREE, "byte_per_s": _FREE}, "the second kernel's launch"),
}
_NEXT = {
    "computing": "blocks, then waves, each rounded up; then the time of one wave",
    "adding up": "which bytes are written, read, and written again, and with which split are there none?",
    "launching": "one more launch, and only where there is a second kernel",
}


@exercise("tile_choice")
class TileChoice:
    """`product_s` for every tile and split of a chip, whole and part by part, and the choice of `best_tile`."""

    def probe(self, student: Any, case: Any) -> Any:
        def priced(chip: Any) -> list[Any]:
            return [
                student.product_s(case["m"], case["n"], case["k"], {**chip["tiles"][tile]}, split, chip)
                for tile, split in _choices(case)
            ]

        parts = {part: priced(_copied(case["chip"], free)) for part, (free, _) in _PARTS.items()}
        chosen = student.best_tile(case["m"], case["n"], case["k"], _copied(case["chip"], {}))
        return {"parts": parts, "seconds": priced(_copied(case["chip"], {})), "chosen": chosen}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        for part, (_, words) in _PARTS.items():
            self._judge_prices(case, got["parts"][part], want["parts"][part], f"a part is priced otherwise: {words}", part)
        self._judge_prices(case, got["seconds"], want["seconds"], "the parts are not added up", "")
        chosen, choices = tuple(got["chosen"]), _choices(case)
        if chosen not in choices:
            why = f"{chosen} for {len(case['chip']['tiles'])} tiles and splits of {case['chip']['splits']}"
            raise Wrong("that is no tile and split of this chip", why=why, next="(number of the tile, split)")
        took, best = want["seconds"][choices.index(chosen)], min(want["seconds"])
        if took > _GOOD * best:
            why = f"tile {chosen[0]} in {chosen[1]} part(s) takes {seconds(took)}, and {seconds(best)} are possible"
            raise Wrong("another tile or split is quicker", why=why, next="price all of them, and compare")

    def _judge_prices(self, case: Any, got: list[Any], want: list[Any], what: str, part: str) -> None:
        for (tile, split), found, right in zip(_choices(case), got, want, strict=True):
            if not close(found, right, atol=_CLOSEST):
                one = case["chip"]["tiles"][tile]
                why = f"{found:.4g} s for {right:.4g} s with tiles of {one['m']} x {one['n']} in {split} part(s)"
                raise Wrong(what, why=why, next=_NEXT.get(part, "waves, and with a split what comes after them"))

    def throughout(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """The slip that gives every part of all prices; where all are right, the aim that gives all choices."""
        asked = [(case, part, *choice) for case in cases for part in _PARTS for choice in _choices(case)]
        found, right = ([price for one in all_ for part in _PARTS for price in one["parts"][part]] for all_ in (got, want))
        if not _alike(found, right):
            for slip, what, why, then in _SLIPS:
                if _alike(found, [slip(*one, price) for one, price in zip(asked, right, strict=True)]):
                    return Wrong(what, why=why, next=then)
            return None
        if not all(_alike(one["seconds"], other["seconds"]) for one, other in zip(got, want, strict=True)):
            return None
        for aim, what, why, then in _AIMS:
            if all(tuple(one["chosen"]) == _first(case, aim, other) for case, one, other in zip(cases, got, want, strict=True)):
                return Wrong(what, why=why, next=then)
        return None

    def show(self, case: Any) -> str:
        """The product and the chip."""
        chip = case["chip"]
        tiles = ", ".join(f"{one['m']} x {one['n']} ({one['efficiency']:g}, {one['per_sm']} an SM)" for one in chip["tiles"])
        return (
            f"{case['m']} x {case['n']} over {case['k']}; {chip['sm_count']} SMs of {chip['sm_flop_per_s']:.3g} FLOP/s, "
            f"{byte_rate(chip['byte_per_s'])}, launch {seconds(chip['launch_s'])}; tiles {tiles}; splits {chip['splits']}"
        )

    def yours(self, case: Any, got: Any) -> str:
        """The choice with its price."""
        chosen = tuple(got["chosen"])
        took = f", {got['seconds'][_choices(case).index(chosen)]:.4g} s" if chosen in _choices(case) else ""
        return f"best_tile gives {chosen}{took}"


def _choices(case: Any) -> list[tuple[int, int]]:
    return [(tile, split) for tile in range(len(case["chip"]["tiles"])) for split in case["chip"]["splits"]]


def _copied(chip: Any, changed: Any) -> Any:
    return {**chip, "tiles": [{**one} for one in chip["tiles"]], "splits": [*chip["splits"]], **changed}


def _alike(got: list[Any], want: list[Any]) -> bool:
    return all(close(one, other, atol=_CLOSEST) for one, other in zip(got, want, strict=True))


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


_SLIPS: tuple[tuple[_Slip, str, str, str], ...] = (
    (
        _in_waves(lambda case, tile, split: _blocks(case, tile, split) / _slots(case, tile)),
        "a wave that is not full takes as long as a full one",
        f"a part of a wave was counted as a part of its time {_ALL}",
        "how many whole waves are there?",
    ),
    (
        _in_waves(lambda case, tile, split: math.ceil(case["m"] * case["n"] / tile["m"] / tile["n"] * split / _slots(case, tile))),
        "a ragged tile is a whole block",
        f"the output's elements were divided by a tile's {_ALL}",
        "tiles along m and tiles along n are each rounded up",
    ),
    (
        _in_waves(lambda case, tile, split: math.ceil((case["m"] // tile["m"]) * (case["n"] // tile["n"]) * split / _slots(case, tile))),
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
            lambda case, tile, split: math.ceil(_blocks(case, tile, split) / case["chip"]["sm_count"])
            / _waves(case, tile, split) / tile["per_sm"]
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
    (_no_second_kernel, "a split has a price: its sums are added up by a second kernel", f"a split cost nothing {_ALL}", "which bytes are written and read, and who launches it?"),
    (_always_second, "without a split there is no second kernel", "its bytes and launch were counted with one part too", "one part needs no adding up"),
    (_no_launch, "the second kernel's launch is left out", f"its bytes alone were counted {_ALL}", "a launch has a price of its own"),
    (_adding(lambda split: 4 * split + 2), "sums of the parts are moved twice: written, then read", f"they were moved once {_ALL}", "who writes them, and who reads them?"),
    (_adding(lambda split: 4 * split + 4 + 2), "every block writes its sums, and all of them are read", f"one of the two was counted for a single output {_ALL}", "how many outputs are written in parts, and how many are read?"),
    (_adding(lambda split: 8 * split), "the output is written once more, in 2 bytes", f"only sums of the parts were counted {_ALL}", "what does the second kernel put out?"),
    (_adding(lambda split: 8 * split + 4), "the output is written in 2 bytes", f"4 were counted {_ALL}", "sums of the parts have 4, the output has 2"),
    (_adding(lambda split: 4 * split + 2 * split + 2), "sums of the parts have 4 bytes on both ways", f"2 were counted on one of them {_ALL}", "the second kernel reads what was written"),
    (_adding(lambda split: 4 * split + 2, alone=0.0), "sums of the parts have 4 bytes", f"2 were counted {_ALL}", "what is not rounded yet is kept in fp32"),
    (_adding(lambda split: 8 * (split - 1) + 2), "every part is written and read, the first one too", f"one part fewer was counted {_ALL}", "split blocks, each with sums"),
)  # fmt: skip

_Aim = Callable[[Any, Any, int, float], Any]
_AIMS: tuple[tuple[_Aim, str, str, str], ...] = (
    (lambda case, tile, split, s: (split, s), "a split is never chosen", "the choice is the best without one in all cases", "price the splits too"),
    (lambda case, tile, split, s: (-tile["m"] * tile["n"], s), "the largest tile is not always the quickest", "it was chosen in all cases", "what do its waves look like?"),
    (lambda case, tile, split, s: (tile["m"] * tile["n"], s), "the smallest tile is not always the quickest", "it was chosen in all cases", "how much of the rate does it reach?"),
    (lambda case, tile, split, s: -s, "the slowest is chosen", "in all cases", "min, or max?"),
)  # fmt: skip


def _first(case: Any, aim: _Aim, want: Any) -> tuple[int, int]:
    tiles = case["chip"]["tiles"]
    both = zip(_choices(case), want["seconds"], strict=True)
    return min(both, key=lambda one: aim(case, tiles[one[0][0]], one[0][1], one[1]))[0]
