"""aligned_shapes: matrix products of drawn layers, the alignment they have, and padding that pays."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

from edl_labs.checks import Exercise, close, exercise
from edl_labs.errors import Wrong

_ANSWERS = ("none", "16 B", "128 B")


@exercise("aligned_shapes")
class AlignedShapes(Exercise):
    """How well a matrix product is aligned, and the padding that makes it fastest.

    `student.alignment(shape, bits)` names the rule that a product obeys; `student.best_padding(...)` pads it.
    """

    answers = "all"

    def probe(self, student: Any, given: Any) -> Any:
        if given["ask"] == "alignment":
            return {"alignment": student.alignment(list(given["shape"]), given["bits"]), "padded": []}
        padded = student.best_padding(list(given["shape"]), given["bits"], rates=dict(given["rates"]))
        return {"alignment": "", "padded": list(padded) if _is_some(padded) else [padded]}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if case["ask"] == "alignment":
            if got["alignment"] != want["alignment"]:
                raise _wrong_alignment(case, got["alignment"], want["alignment"])
            return
        shape, padded = case["shape"], got["padded"]
        if len(padded) == 1:
            value = f"{padded[0]:.4g}" if type(padded[0]) is float else str(padded[0])[:60]
            why = f"your function returned {value}, of type {type(padded[0]).__name__}"
            raise Wrong(
                "your function returned one value, expected three sides", why=why, next="return m, k, n, not their time"
            )
        if len(padded) != 3 or any(type(side) is not int for side in padded):
            why = f"your function returned {str(padded)[:60]}"
            raise Wrong("expected three whole numbers, the padded sides", why=why, next="return m, k, n")
        if any(mine < side for mine, side in zip(padded, shape, strict=True)):
            raise Wrong("your padding makes a side smaller", why=f"{shape} became {padded}", next="round each side up")
        if padded != want["padded"]:
            raise _wrong_padding(case, padded, want["padded"])

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """The rules in _RULES and the works in _WORKS that give everything that came back."""
        padded = [
            (case, mine["padded"], right["padded"])
            for case, mine, right in zip(cases, got, want, strict=True)
            if case["ask"] == "padding"
        ]
        wrong_ones = [one for one in padded if one[1] != one[2]]
        works = [one for at, one in enumerate(_WORKS) if all(_is_least(at, case, mine) for case, mine, _ in padded)]
        if wrong_ones and works:  # small products may fit two of them: both are said
            case, mine, right = wrong_ones[0]
            why = f"{case['shape']} became {mine} in {case['dtype']}, but {right} takes less time"
            return Wrong("; or ".join(what for _, what, _ in works), why=why, next=works[0][2])
        rows = [(case, mine["alignment"]) for case, mine in zip(cases, got, strict=True) if case["ask"] == "alignment"]
        wrong = [
            (case, mine["alignment"])
            for case, mine, right in zip(cases, got, want, strict=True)
            if mine["alignment"] != right["alignment"]
        ]
        for rule, what, then in _RULES:
            if wrong and all(mine == rule(case["shape"], case["bits"]) for case, mine in rows):
                case, mine = wrong[0]
                why = f"your function returned {mine!r} for m, k, n = {case['shape']} in {case['dtype']}"
                return Wrong(what, why=why, next=then)
        return None

    def format_case(self, case: Any) -> str:
        """The product, and the rates where the question is padding."""
        text = f"{case['dtype']} ({case['bits']} bits), m, k, n = {case['shape']}"
        return text + (f", FLOP/s {case['rates']}" if case["ask"] == "padding" else "")


def _is_some(padded: Any) -> bool:
    return hasattr(padded, "__iter__") and not isinstance(padded, str)


def _strictest(multiples: dict[str, int], obeys: Callable[[int], bool]) -> str:
    return next((rule for rule, multiple in multiples.items() if obeys(multiple)), "none")


def _as_bits(shape: list[int], bits: int) -> str:
    return _strictest({"128 B": 128, "16 B": 16}, lambda size: all(side * bits % size == 0 for side in shape))


def _of_all_elements(shape: list[int], bits: int) -> str:
    multiples = {"128 B": 1024 // bits, "16 B": 128 // bits}
    return _strictest(multiples, lambda multiple: math.prod(shape) % multiple == 0)


def _never_the_widest(shape: list[int], bits: int) -> str:
    return _strictest({"16 B": 128 // bits}, lambda multiple: all(side % multiple == 0 for side in shape))


# Each is (the answer that a mistake gives, what is wrong, what to do).
_RULES: list[tuple[Callable[[list[int], int], str], str, str]] = [
    (_as_bits, "your code compares bits with bytes", "how many bytes does a side of `bits`-bit elements have?"),
    (
        _of_all_elements,
        "a side breaks the rule that you returned, even if another side or the product of all sides obeys it",
        "check m, k and n one by one: each has to obey the rule",
    ),
    (
        _never_the_widest,
        "your function never returned '128 B'",
        "a shape that obeys 128 B also obeys 16 B: which of these two rules do you check first?",
    ),
]


# Each is (what a mistake takes for the work of a product, what is wrong, what to do).
_WORKS: list[tuple[Callable[[list[int]], float], str, str]] = [
    (
        lambda sides: sides[0] * sides[2],
        "your code pads k as if that cost nothing",
        "each of the m·n results is a sum of k products: the work is m·k·n",
    ),
    (
        sum,
        "your code adds up the sides to get the work, but it is their product",
        "each of the m·n results is a sum of k products: the work is m·k·n",
    ),
    (
        lambda sides: sides[0] * sides[1] + sides[1] * sides[2] + sides[0] * sides[2],
        "your code counts elements that are read and written as the work",
        "the rates are in operations per second: how many operations does a product have?",
    ),
]


def _is_least(mistake: int, case: Any, padded: list[Any]) -> bool:
    """Whether no padding takes less time than this one, by the work of one of _WORKS: with any work it would answer."""
    work = _WORKS[mistake][0]
    if len(padded) != 3 or any(type(side) is not int for side in padded):
        return False

    def time_s(sides: Any) -> float:
        obeyed = _strictest(multiples, lambda multiple: all(side % multiple == 0 for side in sides))
        return work(list(sides)) / float(case["rates"][obeyed])

    multiples = {"128 B": 1024 // case["bits"], "16 B": 128 // case["bits"]}
    choices = ([-(-side // multiple) * multiple for multiple in (1, *multiples.values())] for side in case["shape"])
    return close(time_s(padded), min(map(time_s, itertools.product(*choices))))


def _wrong_alignment(case: Any, mine: str, right: str) -> Wrong:
    why = f"your function returned {mine!r} for m, k, n = {case['shape']} in {case['dtype']}"
    if mine not in _ANSWERS:
        return Wrong("your answer is not one of the three answers", why=why, next="return 'none', '16 B' or '128 B'")
    if _ANSWERS.index(mine) < _ANSWERS.index(right):
        then = "how many elements of this dtype are in 16 bytes, and in 128?"
        return Wrong("your answer is too weak: the product is better aligned", why=why, next=then)
    return Wrong(
        "a side breaks the rule that you returned",
        why=why,
        next="check all three sides, each in bytes of this dtype",
    )


def _obeyed(case: Any, was: int, now: int) -> bool:
    """Whether a side was padded by just one step of a rule that it obeyed before."""
    return any(was % step == 0 and now - was == step for step in (128 // case["bits"], 1024 // case["bits"]))


def _wrong_padding(case: Any, mine: list[int], right: list[int]) -> Wrong:
    shape, per_wide = case["shape"], 1024 // case["bits"]
    why = f"{shape} became {mine} in {case['dtype']}"
    late = [
        f"{was} became {now}" for was, now in zip(shape, mine, strict=True) if now > was and _obeyed(case, was, now)
    ]
    if late and mine != right:
        why += f": {late[0]}, but obeyed the rule already"
        return Wrong(
            "your code pads a side that already obeys the rule", why=why, next="round up to a multiple, not past it"
        )
    if mine == shape:
        return Wrong(
            "your code leaves the shape unchanged, but a padded shape takes less time",
            why=why,
            next="try every rule, and compare work / rate",
        )
    if all(side % per_wide == 0 for side in mine):
        then = "try smaller paddings, too: the added work takes time"
        return Wrong("you padded more than is worth it", why=why, next=then)
    if right == shape:
        return Wrong("your padding costs more than it gains", why=why, next="try the shape without padding, too")
    if close(mine[0] * mine[1] * mine[2], right[0] * right[1] * right[2]):
        return Wrong(
            "your padding has the right amount of work, but on a different side", why=why, next="keep the order m, k, n"
        )
    step = next(step for step in (per_wide, per_wide // 8, 1) if all(side % step == 0 for side in mine))
    if any(mine_side >= side + step for mine_side, side in zip(mine, shape, strict=True)):
        then = "look at all three sides: the product is only as fast as its worst aligned side allows"
        return Wrong(
            "your code pads one side further than is useful while the other sides stay as they are", why=why, next=then
        )
    return Wrong(
        "your padding is not the best: a different one takes less time",
        why=why,
        next="divide the padded m·k·n by the rate of the rule that the padded shape obeys",
    )
