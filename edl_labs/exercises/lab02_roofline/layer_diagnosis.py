"""diagnose: deck [002]'s recipe on drawn layers and machines."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from edl_labs.checks import Exercise, exercise, score_above_chance
from edl_labs.errors import Wrong

LIMITERS = ("latency", "math", "memory")


@exercise("diagnose", uses=("intensity",))
class Diagnose(Exercise):
    """Latency, math or memory: what limits a layer on a machine.

    `student.diagnose(layer, machine)` gives one of LIMITERS; six of each, corrected for chance.
    """

    answers = "all"

    def probe(self, student: Any, given: Any) -> Any:
        return student.diagnose(dict(given["layer"]), dict(given["machine"]))

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if got not in LIMITERS:
            why = f"the three are: {', '.join(LIMITERS)}"
            raise Wrong(f"{got[:40]!r} is not one of the three answers", why=why, next="return one of them")
        if got != want:
            raise Wrong(f"this layer is not limited by {got}", why=_IF[got], next=_NEXT[got])

    def explain_exception(self, case: Any, kind: str) -> Wrong | None:
        """A field that other kinds of layers have."""
        if kind != "KeyError":
            return None
        layer = case["layer"]
        return Wrong(
            f"your code looks up a field that a {layer['kind']} does not have",
            why=f"its fields are {', '.join(layer)}",
            next="count the blocks of each kind of layer from the fields of that kind",
        )

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """Math and memory changed places everywhere, or one wrong count or intensity gives all answers."""
        if got == want:
            return None
        rows = list(zip(cases, got, want, strict=True))
        fitting = {what: then for is_latency, what, then in _COUNTS if all(_follows(is_latency, *row) for row in rows)}
        if fitting:
            case, answer, right = next(row for row in rows if row[1] != row[2])
            what, then = next(iter(fitting.items()))
            if len(fitting) > 1:  # whatever counts too few, or asks for more of them
                what = "your code finds too few blocks in every matrix product, or requires too many"
                checks = dict.fromkeys((*fitting.values(), "one block for each SM is enough"))
                then = f"check which of these rules your code breaks: {'; '.join(checks)}"
            why = (
                f"this mistake gives exactly your answers: for a {_size(case['layer'])}, you returned "
                f"{answer!r}, expected {right!r}"
            )
            return Wrong(what, why=why, next=then)
        if "latency" not in got and all(
            answer == right for answer, right in zip(got, want, strict=True) if right != "latency"
        ):
            return Wrong(
                "your function never returns 'latency'",
                why="your answers are right for all layers with at least one block for each SM",
                next="before you look at the ridge, compare the number of blocks with the number of SMs",
            )
        if all(answer == _per_element(case, right) for case, answer, right in rows):
            why = "all your answers follow from comparing FLOPs per element with a ridge in FLOP/B"
            return Wrong("you counted elements, not bytes", why=why, next="multiply the elements by itemsize")
        if all(answer == _half_as_many(case, right) for case, answer, right in rows):
            why = "all your answers follow from comparing half of each product's FLOP/B with the ridge"
            then = "count 2·m·n·k operations: a·b + c is two of them"
            return Wrong("your code counts a multiply-add as one operation", why=why, next=then)
        other = {"math": "memory", "memory": "math", "latency": "latency"}
        if not all(answer == other[right] for answer, right in zip(got, want, strict=True)):
            return None
        return Wrong(
            "your comparison with the ridge is the wrong way round",
            why="latency is right everywhere, but math and memory are swapped everywhere",
            next="swap the two: above the ridge there are more FLOPs per "
            "byte than the machine can do, so math is the limit",
        )

    def combine(self, fractions: list[float]) -> float:
        """The share of right answers beyond those that luck can bring."""
        return score_above_chance(fractions, answers=len(LIMITERS))

    def format_case(self, case: Any) -> str:
        return "\n".join(
            f"{name}: {', '.join(f'{k} {v:g}' if type(v) is float else f'{k} {v}' for k, v in row.items())}"
            for name, row in case.items()
        )


def _sides(layer: Any) -> tuple[int, int, int] | None:
    """Rows and columns of the result, and the inner size, of a matrix product."""
    names = {"gemm": ("m", "n", "k"), "linear": ("batch", "outputs", "inputs")}.get(layer["kind"])
    return (layer[names[0]], layer[names[1]], layer[names[2]]) if names else None


def _size(layer: Any) -> str:
    sides = _sides(layer)
    if sides is None:
        return f"`{layer['kind']}` of {layer.get('elements') or (layer['rows'], layer['features'])}"
    return f"`{layer['kind']}` with m, n, k = {', '.join(map(str, sides))}"


def _follows(is_latency: Callable[[Any, Any], bool | None], case: Any, got: str, want: str) -> bool:
    """Whether an answer is the one of a wrong count of blocks, and else the right one."""
    latency = is_latency(case["layer"], case["machine"])
    if latency is None:
        return got == want
    return got == "latency" if latency else got != "latency" and want in (got, "latency")


def _few(tiles: Callable[[int, int, int, int, int], int]) -> Callable[[Any, Any], bool | None]:
    """Whether a product has fewer tiles than SMs, of m, n, k and a tile's two sides; None for other layers."""

    def is_latency(layer: Any, machine: Any) -> bool | None:
        sides = _sides(layer)
        if sides is None:
            return None
        return tiles(*sides, machine["tile_m"], machine["tile_n"]) < int(machine["sms"])

    return is_latency


def _few_of_weights(layer: Any, machine: Any) -> bool | None:
    if layer["kind"] != "linear":
        return None
    tall, wide = layer["inputs"] / machine["tile_m"], layer["outputs"] / machine["tile_n"]
    return math.ceil(tall) * math.ceil(wide) < int(machine["sms"])


def _rows_of_a_norm(layer: Any, machine: Any) -> bool | None:
    return layer["rows"] < int(machine["sms"]) if "rows" in layer else None


def _last_wave(layer: Any, machine: Any) -> bool | None:
    return None if _sides(layer) is None else _blocks(layer, machine) % int(machine["sms"]) > 0


def _one_block_each(layer: Any, machine: Any) -> bool | None:
    return True if _blocks(layer, machine) == int(machine["sms"]) else None


def _blocks(layer: Any, machine: Any) -> int:
    sides = _sides(layer)
    if sides is not None:
        return math.ceil(sides[0] / machine["tile_m"]) * math.ceil(sides[1] / machine["tile_n"])
    every = math.prod(layer[name] for name in ("elements", "rows", "features") if name in layer)
    return math.ceil(every / machine["elements_per_block"])


def _per_element(case: Any, want: str) -> str:
    return _with_intensity(case, want, 1.0)


def _half_as_many(case: Any, want: str) -> str:
    return _with_intensity(case, want, 0.5 / case["layer"]["itemsize"])


def _with_intensity(case: Any, want: str, factor: float) -> str:
    """The answer where a product's FLOPs per element, times `factor`, are compared with the ridge."""
    sides = _sides(case["layer"])
    if want == "latency" or sides is None:
        return want
    m, n, k = sides
    ridge = case["machine"]["peak_flop_per_s"] / case["machine"]["bandwidth_byte_per_s"]
    return "math" if factor * 2 * m * n * k / (m * k + k * n + m * n) > ridge else "memory"


_WHICH = "cut the result, m by n, into tiles: each tile is a block"
_OF_THE_WEIGHTS = ("your code cuts the weights into tiles, inputs by outputs", _WHICH)
# Each is (whether a wrong count calls a layer's limit latency, what is wrong, what to do).
_COUNTS: list[tuple[Callable[[Any, Any], bool | None], str, str]] = [
    (
        _few(lambda m, n, k, tile_m, tile_n: math.ceil(m * n / (tile_m * tile_n))),
        "your code divides the area of the result by that of a tile",
        "round up along each side, because tiles are whole; then multiply",
    ),
    (
        _few(lambda m, n, k, tile_m, tile_n: (m // tile_m) * (n // tile_n)),
        "your code leaves out tiles at the edge of the result",
        "round up: a tile that is not full is a block, too",
    ),
    (_few_of_weights, *_OF_THE_WEIGHTS),
    (
        _few(lambda m, n, k, tile_m, tile_n: math.ceil(m / tile_m) * math.ceil(k / tile_n)),
        "your code cuts the first operand into tiles, m by k",
        _WHICH,
    ),
    (
        _few(lambda m, n, k, tile_m, tile_n: math.ceil(m / tile_n) * math.ceil(n / tile_m)),
        "your code swaps the sides of a tile",
        "let a tile cover tile_m rows and tile_n columns of the result",
    ),
    (
        _rows_of_a_norm,
        "your code gives a layer norm one block for each row",
        "count the blocks that the layer's elements (rows × features) need",
    ),
    (
        _one_block_each,
        "your code answers 'latency' for layers with exactly one block for each SM",
        "one block for each SM is enough: turn `<=` into `<`, or `>` into `>=`",
    ),
    (
        _last_wave,
        "your code answers 'latency' if the last wave is not full",
        "leave waves out here: one block for each SM is enough",
    ),
]
_IF = {
    "latency": "it has at least one thread block for each SM",
    "math": "a layer limited by math has at least one block for each SM, and an intensity above the ridge",
    "memory": "a layer limited by memory has at least one block for each SM, and an intensity below the ridge",
}
_NEXT = {
    "latency": "count the blocks again (in a matrix product, with whole tiles along both sides); "
    "one block per SM is enough",
    "math": "count the blocks first; then compare FLOP/B with the ridge of this machine",
    "memory": "count the blocks first; then compare FLOP/B with the ridge of this machine",
}
