"""tile_choice: products priced by tiles, waves and split sums, part by part, and the quickest of them."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Exercise, close, exercise
from edl_labs.errors import Wrong
from edl_labs.units import byte_rate, counted, seconds

_FREE = 1e40  # per second: what computes or moves at this rate costs nothing
_CLOSEST = 1e-12  # what free things still cost, in seconds
_A_DICT = -1  # in place of a tile that came as its dict, and not as its number
_GOOD = 1.0001  # of the best time: two choices whose prices are equal are equally right
# A part: what of the chip is free when it is asked alone, and what it is in words.
PARTS: dict[str, tuple[dict[str, float], str]] = {
    "computing": ({"byte_per_s": _FREE, "launch_s": 0.0}, "the waves of blocks"),
    "adding up": ({"sm_flop_per_s": _FREE, "launch_s": 0.0}, "the bytes of split sums"),
    "launching": ({"sm_flop_per_s": _FREE, "byte_per_s": _FREE}, "the second kernel's launch"),
}
_NEXT = {
    "computing": "count blocks, then waves, each rounded up; then compute the time of one wave",
    "adding up": "which bytes does each kernel write or read for the sums? With which split are there no such bytes?",
    "launching": "add one more launch, but only if there is a second kernel",
}


@exercise("tile_choice")
class TileChoice(Exercise):
    """`product_s` for every tile and split of a chip, whole and part by part, and the choice of `best_tile`."""

    answers = "all"

    def probe(self, student: Any, given: Any) -> Any:
        def priced(chip: Any) -> list[Any]:
            return [
                student.product_s(given["m"], given["n"], given["k"], {**chip["tiles"][tile]}, split, chip)
                for tile, split in choices(given)
            ]

        parts = {part: priced(_copied(given["chip"], free)) for part, (free, _) in PARTS.items()}
        chosen = student.best_tile(given["m"], given["n"], given["k"], _copied(given["chip"], {}))
        if isinstance(chosen, (tuple, list)):
            chosen = [_A_DICT if isinstance(one, dict) else one for one in chosen]
        return {"parts": parts, "seconds": priced(_copied(given["chip"], {})), "chosen": chosen}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        for part, (_, words) in PARTS.items():
            self._judge_prices(
                case, got["parts"][part], want["parts"][part], f"one part of your time is wrong: {words}", part
            )
        self._judge_prices(case, got["seconds"], want["seconds"], "your time is not the sum of its parts", "")
        chosen, every = tuple(got["chosen"]), choices(case)
        if _A_DICT in chosen:
            why, then = (
                "best_tile() must name a tile by its number",
                "return (the tile's number in chip['tiles'], split)",
            )
            raise Wrong("your best_tile() returns a tile's dict instead of the tile's number", why=why, next=then)
        if chosen not in every:
            splits = f"splits {case['chip']['splits']}"
            why = f"best_tile() returned {chosen}; the chip has {len(case['chip']['tiles'])} tiles and the {splits}"
            then = "return (the tile's number, the split), and take the split from chip['splits']"
            raise Wrong("your result is not a tile and a split of this chip", why=why, next=then)
        took, best = want["seconds"][every.index(chosen)], min(want["seconds"])
        if took > _GOOD * best:
            parts = counted(chosen[1], "part")
            why = f"tile {chosen[0]} with sums in {parts} takes {seconds(took)}, but {seconds(best)} is possible"
            raise Wrong(
                "your function does not choose the fastest tile and split",
                why=why,
                next="compute the time of every tile with every split, and compare",
            )

    def _judge_prices(self, case: Any, got: list[Any], want: list[Any], what: str, part: str) -> None:
        for (tile, split), found, right in zip(choices(case), got, want, strict=True):
            if not close(found, right, atol=_CLOSEST):
                one = case["chip"]["tiles"][tile]
                why = f"tiles of {one['m']} x {one['n']}, with sums in {counted(split, 'part')}: "
                why += f"got {seconds(found, digits=4)}, expected {seconds(right, digits=4)}"
                raise Wrong(
                    what,
                    why=why,
                    next=_NEXT.get(part, "if there is a split, add the second kernel's time to that of the waves"),
                )

    def format_case(self, case: Any) -> str:
        """The product and the chip."""
        chip = case["chip"]
        tiles = ", ".join(
            f"{one['m']} x {one['n']} (efficiency {one['efficiency']:g}, {one['per_sm']} per SM)"
            for one in chip["tiles"]
        )
        return (
            f"{case['m']} x {case['n']} over {case['k']}; {chip['sm_count']} SMs of {chip['sm_flop_per_s']:.3g} "
            f"FLOP/s, {byte_rate(chip['byte_per_s'])}, launch {seconds(chip['launch_s'])}; tiles {tiles}; "
            f"splits {chip['splits']}"
        )

    def format_answer(self, case: Any, got: Any) -> str:
        """The choice with its price."""
        chosen = tuple(got["chosen"])
        took = f", {got['seconds'][choices(case).index(chosen)]:.4g} s" if chosen in choices(case) else ""
        return f"best_tile returns {chosen}{took}"


def choices(case: Any) -> list[tuple[int, int]]:
    """Every tile with every split."""
    return [(tile, split) for tile in range(len(case["chip"]["tiles"])) for split in case["chip"]["splits"]]


def _copied(chip: Any, changed: Any) -> Any:
    return {**chip, "tiles": [{**one} for one in chip["tiles"]], "splits": [*chip["splits"]], **changed}
