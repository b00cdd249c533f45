"""tile_choice: products priced by tiles, waves and split sums, part by part, and the quickest of them."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Exercise, close, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.lab08_kernels.tile_slips import AIMS, SAID, Aim
from edl_labs.exercises.slip_digests import digest, named_slip
from edl_labs.units import byte_rate, seconds

_FREE = 1e40  # per second: what computes or moves at this rate costs nothing
CLOSEST = 1e-12  # what free things still cost, in seconds
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
                case, got["parts"][part], want["parts"][part], f"a part is priced otherwise: {words}", part
            )
        self._judge_prices(case, got["seconds"], want["seconds"], "the parts are not added up", "")
        chosen, every = tuple(got["chosen"]), choices(case)
        if _A_DICT in chosen:
            why, then = "best_tile gave a tile's dict", "(its number in chip['tiles'], split)"
            raise Wrong("a tile is named by its number in the list", why=why, next=then)
        if chosen not in every:
            raise _no_choice(case, chosen)
        took, best = want["seconds"][every.index(chosen)], min(want["seconds"])
        if took > _GOOD * best:
            why = f"tile {chosen[0]} in {chosen[1]} part(s) takes {seconds(took)}, and {seconds(best)} are possible"
            raise Wrong("another tile or split is quicker", why=why, next="price all of them, and compare")

    def _judge_prices(self, case: Any, got: list[Any], want: list[Any], what: str, part: str) -> None:
        for (tile, split), found, right in zip(choices(case), got, want, strict=True):
            if not close(found, right, atol=CLOSEST):
                one = case["chip"]["tiles"][tile]
                why = f"{found:.4g} s for {right:.4g} s with tiles of {one['m']} x {one['n']} in {split} part(s)"
                raise Wrong(what, why=why, next=_NEXT.get(part, "waves, and with a split what comes after them"))

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """The slip that gives every part of all prices; where all are right, the aim that gives all choices."""
        mine, right = (
            [[price for part in PARTS for price in one["parts"][part]] for one in all_] for all_ in (got, want)
        )
        if not all(_alike(*pair) for pair in zip(mine, right, strict=True)):
            return named_slip(cases, [digest(prices, least=CLOSEST) for prices in mine], SAID)
        if not all(_alike(one["seconds"], other["seconds"]) for one, other in zip(got, want, strict=True)):
            if all(_alike(one["seconds"], _side_by_side(one["parts"])) for one in got):
                why = "the longer of the waves and the second kernel was taken in every tile and split of all cases"
                then = "it reads what the waves have written: one comes after the other"
                return Wrong("parts are added up after the waves, not beside them", why=why, next=then)
            return None
        best = [_first(case, lambda _, tile, split, price: price, one) for case, one in zip(cases, want, strict=True)]
        places = [(tile, case["chip"]["splits"].index(split)) for case, (tile, split) in zip(cases, best, strict=True)]
        if [tuple(one["chosen"]) for one in got] == places:
            why, then = (
                "the quickest split's place in chip['splits'] came back in all cases",
                "(number of the tile, split)",
            )
            return Wrong("a split is given as it is, not by its place in the list", why=why, next=then)
        for case, one in zip(cases, got, strict=True):
            chosen = tuple(one["chosen"])
            if chosen not in choices(case) and _A_DICT not in chosen:
                return _no_choice(case, chosen)
        for aim, what, why, then in AIMS:
            if all(
                tuple(one["chosen"]) == _first(case, aim, other)
                for case, one, other in zip(cases, got, want, strict=True)
            ):
                return Wrong(what, why=why, next=then)
        return None

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


def _no_choice(case: Any, chosen: tuple[Any, ...]) -> Wrong:
    why = f"{chosen} for {len(case['chip']['tiles'])} tiles and splits of {case['chip']['splits']}"
    then = "return (number of the tile, split), and take the split from chip['splits']"
    return Wrong("that is no tile and split of this chip", why=why, next=then)


def choices(case: Any) -> list[tuple[int, int]]:
    """Every tile with every split."""
    return [(tile, split) for tile in range(len(case["chip"]["tiles"])) for split in case["chip"]["splits"]]


def _copied(chip: Any, changed: Any) -> Any:
    return {**chip, "tiles": [{**one} for one in chip["tiles"]], "splits": [*chip["splits"]], **changed}


def _alike(got: list[Any], want: list[Any]) -> bool:
    return all(close(one, other, atol=CLOSEST) for one, other in zip(got, want, strict=True))


def _side_by_side(parts: Any) -> list[float]:
    """Prices where the second kernel runs beside the waves."""
    rows = zip(parts["computing"], parts["adding up"], parts["launching"], strict=True)
    return [max(waves, adding + launch) for waves, adding, launch in rows]


def _first(case: Any, aim: Aim, want: Any) -> tuple[int, int]:
    tiles = case["chip"]["tiles"]
    both = zip(choices(case), want["seconds"], strict=True)
    return min(both, key=lambda one: aim(case, tiles[one[0][0]], one[0][1], one[1]))[0]
