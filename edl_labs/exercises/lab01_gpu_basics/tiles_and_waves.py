"""tile_quantization and wave_quantization: whole tiles on whole waves."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from edl_labs.checks import close, exercise
from edl_labs.errors import Wrong

_TILES = ((256, 128), (128, 128), (128, 64), (64, 64))  # tiles that cuBLAS and CUTLASS use
_SM_COUNTS = (40, 80, 108, 114, 132)  # T4, V100, A100, H100 PCIe, H100 SXM


@exercise("tile_quantization")
class TileQuantization:
    """How many tiles cover a matrix, and which share of their work is wasted.

    `student.tile_report(m, n, tile_m=, tile_n=)` gives `(tiles, wasted)`.
    """

    def cases(self, rng: Any) -> list[Any]:
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
        return fixed + [_shape(rng) for _ in range(6)]

    def probe(self, student: Any, case: Any) -> Any:
        return student.tile_report(case["m"], case["n"], tile_m=case["tile_m"], tile_n=case["tile_n"])

    def compare(self, case: Any, got: Any, want: Any) -> None:
        _pair(got, "tiles, wasted")
        if got[0] != want[0]:
            raise _tile_mistake(case, got[0])
        if not close(got[1], want[1], rtol=1e-6, atol=1e-12):
            raise _waste_mistake(got[1], want[1])


@exercise("wave_quantization", uses=("tile_quantization",))
class WaveQuantization:
    """How many waves the tiles take, how full they are, and which width below a bound fills them best.

    `student.wave_report(tiles, sm_count=)` gives `(waves, efficiency)`; `student.best_width(...)` a width.
    """

    def cases(self, rng: Any) -> list[Any]:
        sm_count = int(rng.choice(_SM_COUNTS))
        full = sm_count * int(rng.integers(1, 5))
        counts = [full, full + 1, full - 1, sm_count, 1, *(int(rng.integers(2, 9 * sm_count)) for _ in range(3))]
        reports = [{"ask": "waves", "tiles": tiles, "sm_count": sm_count} for tiles in counts]
        widths = [_width(rng) for _ in range(5)]
        tempting = [_tempting(rng, mistake) for mistake in _MISTAKEN_SHARES]
        return [*reports, _tight_bound(rng), *tempting, *widths, _narrowest(rng)]

    def probe(self, student: Any, case: Any) -> Any:
        if case["ask"] == "waves":
            return student.wave_report(case["tiles"], sm_count=case["sm_count"])
        return student.best_width(
            case["m"], bound=case["bound"], tile_m=case["tile_m"], tile_n=case["tile_n"], sm_count=case["sm_count"]
        )

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if case["ask"] == "width":
            return _judge_width(case, got, want)
        _pair(got, "waves, efficiency")
        if got[0] != want[0]:
            raise _wave_mistake(case, got[0])
        if not close(got[1], want[1], rtol=1e-6):
            raise _fullness_mistake(case, got[1], want)
        return None


def _pair(got: Any, names: str) -> None:
    if len(got) != 2:
        raise Wrong("two numbers are asked for", why=f"{len(got)} came back", next=f"return {names}")


def _tile_mistake(case: Any, tiles: Any) -> Wrong:
    rows, columns = Fraction(case["m"], case["tile_m"]), Fraction(case["n"], case["tile_n"])
    if tiles == math.floor(rows) * math.floor(columns):
        what, then = "part of the matrix is covered by no tile", "what does a row of output beyond the last tile need?"
        return Wrong(what, why="the number of tiles was rounded down", next=then)
    if tiles == math.ceil(rows * columns) or tiles == round(rows * columns):
        what, then = "tiles were counted by area", "draw the grid: a tile belongs to one row and one column of it"
        return Wrong(what, why="leftovers of two edges cannot share a tile", next=then)
    if tiles == (math.floor(rows) + 1) * (math.floor(columns) + 1):
        what, then = "a matrix that fits exactly got an extra row of tiles", "try m = tile_m by hand"
        return Wrong(what, why="one was added even where nothing is left over", next=then)
    return Wrong(
        "the number of tiles is wrong",
        why=f"{_say(tiles)} tiles of {case['tile_m']} × {case['tile_n']} came back",
        next="count rows of tiles and columns of tiles, then multiply",
    )


def _waste_mistake(wasted: Any, right: float) -> Wrong:
    if close(wasted, 1 - right, rtol=1e-6, atol=1e-12):
        return Wrong("that is the useful share", why="the wasted one is asked for", next="they add up to 1")
    if right < 1 and close(wasted, right / (1 - right), rtol=1e-6, atol=1e-12):
        why = "it was divided by the work that is needed"
        return Wrong("that is waste per useful element", why=why, next="divide by the work that is launched")
    return Wrong(
        "the wasted share is wrong",
        why="every launched tile computes tile_m × tile_n elements; only m × n of all of them are wanted",
        next="compare the two areas",
    )


def _wave_mistake(case: Any, waves: Any) -> Wrong:
    tiles, sm_count = case["tiles"], case["sm_count"]
    if waves == tiles // sm_count:
        what, then = "the last wave was forgotten", "what happens to the tile that finds every SM taken?"
        return Wrong(what, why="the number of waves was rounded down", next=then)
    if waves == tiles // sm_count + 1:
        what, then = "a full last wave was counted twice", "try as many tiles as there are SMs"
        return Wrong(what, why="one was added even where no tile is left over", next=then)
    return Wrong(
        "the number of waves is wrong",
        why=f"{_say(waves)} waves came back for {tiles} tiles on {sm_count} SMs",
        next="a wave is sm_count tiles at once; the last one may be nearly empty and takes as long",
    )


def _fullness_mistake(case: Any, efficiency: Any, want: Any) -> Wrong:
    last = case["tiles"] - (want[0] - 1) * case["sm_count"]
    if close(efficiency, last / case["sm_count"]):
        why = "the waves before it are full, and they count"
        return Wrong("that is how full the last wave is", why=why, next="look at all waves together")
    return Wrong(
        "the efficiency is wrong",
        why="it is the share of tile places, over all waves, that hold a tile",
        next="how many places do that many waves have?",
    )


def _judge_width(case: Any, width: Any, right: Any) -> None:
    if type(width) is not int or not 1 <= width <= case["bound"]:
        raise Wrong(
            "the width is not a whole number from 1 to the bound",
            why=f"{_say(width)} came back and the bound is {case['bound']}",
            next="try every whole width up to the bound, the bound included",
        )
    # Several widths can be equally good, and floats may order them either way: all of them are right.
    if _useful_share(case, width) < _useful_share(case, right):
        raise _width_mistake(case, width)


def _width_mistake(case: Any, width: int) -> Wrong:
    if width == case["bound"]:
        what, why = "the widest matrix is not the best filled one", "the bound itself came back"
    elif width == case["bound"] // case["tile_n"] * case["tile_n"]:
        what, why = "the tiles are full, but the waves are not", "the widest whole number of tiles came back"
    else:
        what, why = "another width fills the machine better", f"{width} came back"
    return Wrong(what, why=why, next="compare, for each width, the wanted elements with what its waves could compute")


def _shares(case: Any, width: int) -> tuple[Fraction, Fraction]:
    """How much of its tiles a matrix fills, and how many of its waves' places hold a tile."""
    tiles = math.ceil(Fraction(case["m"], case["tile_m"])) * math.ceil(Fraction(width, case["tile_n"]))
    places = math.ceil(Fraction(tiles, case["sm_count"])) * case["sm_count"]
    return Fraction(case["m"] * width, tiles * case["tile_m"] * case["tile_n"]), Fraction(tiles, places)


def _useful_share(case: Any, width: int) -> Fraction:
    tile, wave = _shares(case, width)
    return tile * wave


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
        if all(_useful_share(case, width) < best for width in (case["bound"], max(widths[:-1]))):
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
        if found in widths[-2:] and _useful_share(case, found) < best:
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
    """The widths of which one is best, the bound last, and how good that is: in a column of tiles, wider is better."""
    widths = [*range(case["tile_n"], case["bound"], case["tile_n"]), case["bound"]]
    return widths, max(_useful_share(case, width) for width in widths)


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


def _say(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)[:30]
