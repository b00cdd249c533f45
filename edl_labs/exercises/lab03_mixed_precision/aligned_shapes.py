"""aligned_shapes: matrix products of drawn layers, the alignment they have, and padding that pays."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import close, exercise
from edl_labs.errors import Wrong

_ANSWERS = ("none", "16 B", "128 B")


@exercise("aligned_shapes")
class AlignedShapes:
    """How well a matrix product is aligned, and the padding that makes it fastest.

    `student.alignment(shape, bits)` names the rule that a product obeys; `student.best_padding(...)` pads it.
    """

    def probe(self, student: Any, case: Any) -> Any:
        if case["ask"] == "alignment":
            return {"alignment": student.alignment(list(case["shape"]), case["bits"]), "padded": []}
        padded = student.best_padding(list(case["shape"]), case["bits"], rates=dict(case["rates"]))
        return {"alignment": "", "padded": list(padded)}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if case["ask"] == "alignment":
            if got["alignment"] != want["alignment"]:
                raise _wrong_alignment(case, got["alignment"], want["alignment"])
            return
        shape, padded = case["shape"], got["padded"]
        if len(padded) != 3 or any(type(side) is not int for side in padded):
            why = f"{str(padded)[:60]} came back"
            raise Wrong("a padded product has three whole sides", why=why, next="return m, k, n")
        if any(mine < side for mine, side in zip(padded, shape, strict=True)):
            raise Wrong("padding makes nothing smaller", why=f"{shape} became {padded}", next="round each side up")
        if padded != want["padded"]:
            raise _wrong_padding(case, padded, want["padded"])

    def show(self, case: Any) -> str:
        """The product, and the rates where padding is asked for."""
        text = f"{case['dtype']} ({case['bits']} bits), m, k, n = {case['shape']}"
        return text + (f", FLOP/s {case['rates']}" if case["ask"] == "padding" else "")


def _wrong_alignment(case: Any, mine: str, right: str) -> Wrong:
    why = f"{mine!r} came back for m, k, n = {case['shape']} in {case['dtype']}"
    if mine not in _ANSWERS:
        return Wrong("that is not one of the three answers", why=why, next="return 'none', '16 B' or '128 B'")
    if _ANSWERS.index(mine) < _ANSWERS.index(right):
        then = "how many elements of this dtype are in 16 bytes, and in 128?"
        return Wrong("the product is better aligned than that", why=why, next=then)
    return Wrong("a side breaks the rule", why=why, next="all three sides count, and the element's size")


def _wrong_padding(case: Any, mine: list[int], right: list[int]) -> Wrong:
    shape, per_wide = case["shape"], 1024 // case["bits"]
    why = f"{shape} became {mine} in {case['dtype']}"
    if mine == shape:
        return Wrong("leaving it as it is takes longer", why=why, next="try every rule, and compare work / rate")
    if all(side % per_wide == 0 for side in mine):
        then = "the largest rule is not always the best: the added work is paid for"
        return Wrong("more was padded than pays", why=why, next=then)
    if right == shape:
        return Wrong("the padding costs more than it gains", why=why, next="not padding is one of the choices")
    if close(mine[0] * mine[1] * mine[2], right[0] * right[1] * right[2]):
        return Wrong("the same work, padded at another side", why=why, next="keep the order m, k, n")
    step = next(step for step in (per_wide, per_wide // 8, 1) if all(side % step == 0 for side in mine))
    if any(mine_side >= side + step for mine_side, side in zip(mine, shape, strict=True)):
        then = "the product is as fast as the weakest of its three sides allows"
        return Wrong("a side was padded further than the others let it pay", why=why, next=then)
    return Wrong("another padding takes less time", why=why, next="padded m·k·n over the rate of what it obeys then")
