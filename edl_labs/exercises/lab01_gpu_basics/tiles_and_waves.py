"""tile_quantization and wave_quantization: whole tiles on whole waves."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from edl_labs.checks import Exercise, close, exercise
from edl_labs.checks.evidence_form import answer_text
from edl_labs.errors import Wrong


@exercise("tile_quantization")
class TileQuantization(Exercise):
    """How many tiles cover a matrix, and which share of their work is wasted.

    `student.tile_report(m, n, tile_m=, tile_n=)` gives `(tiles, wasted, ragged)`.
    """

    answers = "all"

    def probe(self, student: Any, given: Any) -> Any:
        return student.tile_report(given["m"], given["n"], tile_m=given["tile_m"], tile_n=given["tile_n"])

    def compare(self, case: Any, got: Any, want: Any) -> None:
        _three(got, "tiles, wasted, ragged")
        if got[0] != want[0]:
            raise _tile_mistake(case, got[0])
        if not close(got[1], want[1], rtol=1e-6, atol=1e-12):
            raise _waste_mistake(case, got, want[1])
        if got[2] != want[2]:
            raise _ragged_mistake(case, got[2], want)


# In earlier notebooks tile_report stands above, and their best_width may call it.
@exercise("wave_quantization", uses=("tile_quantization",))
class WaveQuantization(Exercise):
    """How many waves the tiles take, how full they are, and which width below a bound fills them best.

    `student.wave_report(tiles, sm_count=)` gives `(waves, efficiency, spare)`; `student.best_width(...)` a width.
    """

    answers = "all"

    def probe(self, student: Any, given: Any) -> Any:
        if given["ask"] == "waves":
            return student.wave_report(given["tiles"], sm_count=given["sm_count"])
        try:
            return student.best_width(
                given["m"],
                bound=given["bound"],
                tile_m=given["tile_m"],
                tile_n=given["tile_n"],
                sm_count=given["sm_count"],
            )
        except NotImplementedError:  # and wave_report has answered before: the cell is no stub any more
            return _UNWRITTEN

    def explain_exception(self, case: Any, error: str) -> Wrong | None:
        """A search among no widths at all."""
        if (
            case["ask"] == "waves"
            or case["bound"] >= case["tile_n"]
            or error not in ("ValueError", "UnboundLocalError")
        ):
            return None
        why = f"it raised {error} for a bound of {case['bound']}, where a tile is {case['tile_n']} wide"
        then = (
            "try every whole number from 1 up, including the bound itself and widths that are not multiples of tile_n"
        )
        return Wrong("your code tries no width if the bound is less than the width of a tile", why=why, next=then)

    def format_answer(self, case: Any, got: Any) -> str:
        """The answer, if there is one."""
        return "" if got == _UNWRITTEN else answer_text(got)

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if case["ask"] == "width":
            return _judge_width(case, got, want)
        _three(got, "waves, efficiency, spare")
        if got[0] != want[0]:
            raise _wave_mistake(case, got[0])
        if not close(got[1], want[1], rtol=1e-6):
            raise _fullness_mistake(case, got[1], want)
        if got[2] != want[2]:
            raise _spare_mistake(case, got[2])
        return None

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """Another criterion than the share of wanted elements, which picks every width that was returned."""
        asked = [one for one in zip(cases, got, want, strict=True) if one[0]["ask"] == "width"]
        reports = [one for one in zip(cases, got, want, strict=True) if one[0]["ask"] == "waves"]
        if any(answer != right for _, answer, right in reports):
            return _holds_of_the_last_wave(reports)
        wrong = sum(answer != right for _, answer, right in asked)
        if wrong < _ENOUGH or any(type(answer) is not int for _, answer, _ in asked):
            return None
        for picks, what, then in _OTHER_WIDTHS:
            if all(picks(case, answer) or answer == right for case, answer, right in asked):
                why = f"this explains all {wrong} wrong widths"
                return Wrong(
                    what,
                    why=why,
                    next=f"{then}; divide the wanted elements by the elements that the waves could compute",
                )
        wide = [one for one in asked if one[0]["bound"] >= one[0]["tile_n"]]
        if all(answer % case["tile_n"] == 0 < answer for case, answer, _ in wide):
            why = (
                f"where the bound is at least one tile wide, all {len(wide)} widths that you returned are "
                "multiples of tile_n"
            )
            return Wrong(
                "your function returned only widths of whole tiles", why=why, next="try the widths in between, too"
            )
        return None


def _holds_of_the_last_wave(reports: list[tuple[Any, Any, Any]]) -> Wrong | None:
    """All is right but the spare places, and those are the tiles of the last wave everywhere."""
    for case, answer, right in reports:
        held = case["sm_count"] - right[2]
        if len(answer) != 3 or answer[0] != right[0] or not close(answer[1], right[1]) or answer[2] != held:
            return None
    why = "each `spare` that you returned is sm_count minus the number of empty places"
    return Wrong(
        "your `spare` is the number of tiles in the last wave",
        why=why,
        next="how many more tiles would fit without another wave?",
    )


_UNWRITTEN = -(2**31)  # no width, and no slip of the pen either


def _three(got: Any, names: str) -> None:
    if len(got) != 3:
        raise Wrong("expected three numbers", why=f"your function returned {len(got)}", next=f"return {names}")


def _tile_mistake(case: Any, tiles: Any) -> Wrong:
    rows, columns = Fraction(case["m"], case["tile_m"]), Fraction(case["n"], case["tile_n"])
    if tiles == math.floor(rows) * math.floor(columns):
        what, then = "your tiles do not cover the whole matrix", "which tile computes a row beyond the last full tile?"
        return Wrong(what, why="your number of tiles is rounded down, or to the nearest whole number", next=then)
    if tiles == math.ceil(rows * columns) or tiles == round(rows * columns):
        what, then = (
            "your code counts tiles by area",
            "draw the grid: each tile belongs to one row and one column of it",
        )
        return Wrong(
            what, why="what is left over at one edge cannot share a tile with what is left over at the other", next=then
        )
    if tiles == math.ceil(Fraction(case["m"], case["tile_n"])) * math.ceil(Fraction(case["n"], case["tile_m"])):
        why = f"it divides m by {case['tile_n']}, and n by {case['tile_m']}"
        return Wrong("your code swaps the sides of the tile", why=why, next="divide m by tile_m, and n by tile_n")
    if tiles == (math.floor(rows) + 1) * (math.floor(columns) + 1):
        what, then = "your code adds tiles where the matrix fits exactly", "work out the case m = tile_m by hand"
        return Wrong(what, why="your code adds a row and a column of tiles even if nothing is left over", next=then)
    return Wrong(
        "the number of tiles is wrong",
        why=f"your function returned {_say(tiles)} tiles of {case['tile_m']} × {case['tile_n']}",
        next="count rows of tiles and columns of tiles, then multiply",
    )


def _waste_mistake(case: Any, got: Any, right: float) -> Wrong:
    tiles, wasted = got[0], got[1]
    if right and close(wasted, 100 * right, rtol=1e-6):
        return Wrong(
            "your wasted share is a percentage", why=f"it is {_say(wasted)}", next="return a share, which is at most 1"
        )
    spare = tiles * case["tile_m"] * case["tile_n"] - case["m"] * case["n"]
    if spare and close(wasted, spare, rtol=1e-6):
        why = f"your function returned {_say(wasted)}, which counts elements"
        return Wrong(
            "your answer is the number of wasted elements", why=why, next="what share of all computed elements is it?"
        )
    if close(wasted, 1 - right, rtol=1e-6, atol=1e-12):
        return Wrong(
            "your answer is the useful share",
            why="expected the wasted share",
            next="the two shares add up to 1: return the other one",
        )
    if right < 1 and close(wasted, right / (1 - right), rtol=1e-6, atol=1e-12):
        why = "it is the waste divided by the work that is needed"
        return Wrong("your answer is the waste per useful element", why=why, next="divide by the work that is launched")
    if got[2] and close(wasted, spare / (got[2] * case["tile_m"] * case["tile_n"]), rtol=1e-6, atol=1e-12):
        why = "it is the waste divided by the work of only the ragged tiles"
        return Wrong(
            "your answer is the waste of only the ragged tiles", why=why, next="divide by the work of all tiles"
        )
    return Wrong(
        "the wasted share is wrong",
        why="every launched tile computes tile_m × tile_n elements, but only m × n elements are wanted in total",
        next="compare the two areas",
    )


def _ragged_mistake(case: Any, ragged: Any, want: Any) -> Wrong:
    if ragged == want[0] - want[2]:
        why = "expected the number of tiles that hang over an edge"
        return Wrong(
            "your answer is the number of tiles inside the output",
            why=why,
            next="subtract it from the number of all tiles",
        )
    below, right = case["m"] % case["tile_m"] > 0, case["n"] % case["tile_n"] > 0
    rows, columns = math.ceil(case["m"] / case["tile_m"]), math.ceil(case["n"] / case["tile_n"])
    if right and below and ragged == rows + columns:
        what, why = "your code counts the tile in the corner twice", "it hangs over two edges, but it is one tile"
    elif ragged == (1 if right and below else 0):
        what, why = (
            "your code counts a tile as ragged only if it hangs over both edges",
            "a tile that hangs over only one edge is ragged, too",
        )
    else:
        what, why = (
            "the number of ragged tiles is wrong",
            f"your function returned {_say(ragged)} for {_say(want[0])} tiles",
        )
    return Wrong(what, why=why, next="draw the grid: which tiles contain fewer than tile_m × tile_n wanted elements?")


def _spare_mistake(case: Any, spare: Any) -> Wrong:
    if spare == case["tiles"] % case["sm_count"]:
        what, why = (
            "your `spare` is the number of tiles in the last wave",
            "expected the number of empty places in the last wave",
        )
    elif spare == case["sm_count"]:
        what, why = "your code finds spare places in a wave that is full", "every place of the last wave is taken"
    else:
        what, why = "the number of spare places is wrong", f"your function returned {_say(spare)}"
    return Wrong(what, why=why, next="how many more tiles would fit without another wave?")


def _wave_mistake(case: Any, waves: Any) -> Wrong:
    tiles, sm_count = case["tiles"], case["sm_count"]
    if waves == tiles // sm_count:
        what, then = "your code leaves out the last wave", "what happens to a tile when every SM is busy?"
        return Wrong(what, why="your number of waves is rounded down", next=then)
    if waves == tiles // sm_count + 1:
        what, then = "your code counts a full last wave twice", "work out a case with as many tiles as SMs"
        return Wrong(what, why="your code adds a wave even if no tile is left over", next=then)
    return Wrong(
        "the number of waves is wrong",
        why=f"your function returned {_say(waves)} waves for {tiles} tiles on {sm_count} SMs",
        next="count sm_count tiles per wave; the last wave may be nearly empty, but it takes as long as a full one",
    )


def _fullness_mistake(case: Any, efficiency: Any, want: Any) -> Wrong:
    last = case["tiles"] - (want[0] - 1) * case["sm_count"]
    if close(efficiency, last / case["sm_count"]):
        why = "the waves before it are full, and they count, too"
        return Wrong(
            "your efficiency is that of the last wave", why=why, next="compute the efficiency of all waves together"
        )
    if close(efficiency, 100 * want[1]):
        return Wrong(
            "your efficiency is a percentage",
            why=f"it is {_say(efficiency)}",
            next="return a share, which is at most 1",
        )
    return Wrong(
        "the efficiency is wrong",
        why=f"efficiency is the share of the places in all waves that hold a tile: expected {_say(want[1])}, got "
        f"{_say(efficiency)}",
        next="how many places do all these waves have together?",
    )


_ENOUGH = 3  # widths that fit another criterion by luck are rarer than that


def _one_everywhere(case: Any, width: int) -> bool:
    return width == 1


def _first_with_full_tiles(case: Any, width: int) -> bool:
    return width == case["tile_n"] <= case["bound"]


def _first_of_its_tiles(case: Any, width: int) -> bool:
    """The narrowest width that has as many tiles, and so the same waves; all of them are equal for who counts waves."""
    return width % case["tile_n"] == 1


_OTHER_WIDTHS: tuple[tuple[Callable[[Any, int], bool], str, str], ...] = (
    (
        _one_everywhere,
        "your function returned the narrowest matrix: it looks for the fewest waves, or for the smallest share",
        "look for the largest share: few waves may contain little useful work",
    ),
    (
        _first_with_full_tiles,
        "your code considers only what the tiles waste, not the waves",
        "consider tiles and waves together",
    ),
    (
        _first_of_its_tiles,
        "your code considers only the waves, not what the tiles waste",
        "consider tiles and waves together",
    ),
)


def _judge_width(case: Any, width: Any, right: Any) -> None:
    if width == _UNWRITTEN:
        raise Wrong(
            "best_width still raises NotImplementedError",
            why="wave_report returns answers, but best_width, or a function that it calls, is not written yet",
            next="write best_width in the same cell, run the cell, then check again",
        )
    if type(width) is not int or not 1 <= width <= case["bound"]:
        raise Wrong(
            "the width is not a whole number from 1 to the bound",
            why=f"your function returned {_say(width)}, and the bound is {case['bound']}",
            next="try every whole number from 1 up to and including the bound",
        )
    # Where several widths are equally good, no question asks for one of them.
    if width != right:
        raise _width_mistake(case, width, right)


def _width_mistake(case: Any, width: int, right: int) -> Wrong:
    what, why = "your function did not return the best width", f"your function returned {width}, but {right} is better"
    if width == case["bound"]:
        what = "your function returned the widest matrix, which is not the best one"
    elif width % case["tile_n"] == 0 and right % case["tile_n"]:
        bound = ", the bound itself," if right == case["bound"] else ""
        why = (
            f"your function returned {width}, a multiple of tile_n; {right}{bound} is better, but is "
            "not a multiple of tile_n"
        )
    elif right == case["bound"]:
        why = f"your function returned {width}; the bound itself, {right}, is allowed, too, and is better"
    then = (
        "count whole tiles along each side, and whole waves; compare the wanted elements with the elements "
        "that the waves could compute"
    )
    return Wrong(what, why=why, next=then)


def _say(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)[:30]
