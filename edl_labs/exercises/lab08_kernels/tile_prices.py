"""tile_choice: products priced by tiles, waves and split sums, part by part, and the quickest of them."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Exercise, close, exercise
from edl_labs.errors import Wrong
from edl_labs.units import byte_rate, seconds

_FREE = 1e40  # per second: what computes or moves at this rate costs nothing
_CLOSEST = 1e-12  # what free things still cost, in seconds
_A_DICT = -1  # in place of a tile that came as its dict, and not as its number
_GOOD = 1.0001  # of the best time: two choices whose prices are equal are equally right
# A part: what of the chip is free when it is asked alone, and what it is in words.
PARTS: dict[str, tuple[dict[str, float], str]] = {
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
        self._judge_prices(case, got["seconds"], want["seconds"], "the parts are not added up", "")
        chosen, every = tuple(got["chosen"]), choices(case)
        if _A_DICT in chosen:
            why, then = "best_tile gave a tile's dict", "(its number in chip['tiles'], split)"
            raise Wrong("a tile is named by its number in the list", why=why, next=then)
        if chosen not in every:
            why = f"{chosen} for {len(case['chip']['tiles'])} tiles and splits of {case['chip']['splits']}"
            then = "return (number of the tile, split), and take the split from chip['splits']"
            raise Wrong("that is not a tile and split of this chip", why=why, next=then)
        took, best = want["seconds"][every.index(chosen)], min(want["seconds"])
        if took > _GOOD * best:
            why = f"tile {chosen[0]} in {chosen[1]} part(s) takes {seconds(took)}, but {seconds(best)} is possible"
            raise Wrong("another tile or split is faster", why=why, next="compute the time of each, and compare")

    def _judge_prices(self, case: Any, got: list[Any], want: list[Any], what: str, part: str) -> None:
        for (tile, split), found, right in zip(choices(case), got, want, strict=True):
            if not close(found, right, atol=_CLOSEST):
                one = case["chip"]["tiles"][tile]
                why = f"tiles of {one['m']} x {one['n']}, sum in {split} part(s): {found:.4g} s; {right:.4g} s is right"
                raise Wrong(what, why=why, next=_NEXT.get(part, "waves, and with a split what comes after them"))

    def format_case(self, case: Any) -> str:
        """The product and the chip."""
        chip = case["chip"]
        tiles = ", ".join(
            f"{one['m']} x {one['n']} ({one['efficiency']:g}, {one['per_sm']} an SM)" for one in chip["tiles"]
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
        return f"best_tile gives {chosen}{took}"


def choices(case: Any) -> list[tuple[int, int]]:
    """Every tile with every split."""
    return [(tile, split) for tile in range(len(case["chip"]["tiles"])) for split in case["chip"]["splits"]]


def _copied(chip: Any, changed: Any) -> Any:
    return {**chip, "tiles": [{**one} for one in chip["tiles"]], "splits": [*chip["splits"]], **changed}
