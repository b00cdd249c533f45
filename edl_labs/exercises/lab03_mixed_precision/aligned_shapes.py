"""aligned_shapes: matrix products of drawn layers, the alignment they have, and padding that pays."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import close, exercise
from edl_labs.errors import Wrong

BITS = {"fp64": 64, "tf32": 32, "fp16": 16, "bf16": 16, "int8": 8}
_ANSWERS = ("none", "16 B", "128 B")


@exercise("aligned_shapes")
class AlignedShapes:
    """How well a matrix product is aligned, and the padding that makes it fastest.

    `student.alignment(shape, bits)` names the rule that a product obeys; `student.best_padding(...)` pads it.
    """

    def cases(self, rng: Any) -> list[Any]:
        deck = [_ask(rng, shape, "fp16") for shape in ([64, 1024, 512], [5120, 1024, 33708])]
        drawn = [_ask(rng, _shape(rng, BITS[dtype], rule), dtype) for dtype in BITS for rule in (0, 16, 128)]
        padded = [_pad(rng, str(rng.choice(["tf32", "fp16", "bf16", "int8"])), kind) for kind in _KINDS * 2]
        return deck + drawn + padded

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


_KINDS = ("leave", "near", "aligned", "small")


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
    return Wrong("another padding takes less time", why=why, next="padded m·k·n over the rate of what it obeys then")


def _ask(rng: Any, shape: list[int], dtype: str) -> dict[str, Any]:
    return {"ask": "alignment", "dtype": dtype, "bits": BITS[dtype], "shape": [int(side) for side in shape]}


def _shape(rng: Any, bits: int, rule: int) -> list[int]:
    """Three sides that obey the rule of so many bytes (0: none) and nothing stricter."""
    narrow, sides = 128 // bits, [int(side) * 1024 // bits for side in rng.integers(2, 60, size=3)]
    odd = 2 * int(rng.integers(1, 30)) + 1
    if rule < 128:
        # Half of the narrow rule is where one who forgets the element's size is caught.
        sides[int(rng.integers(3))] = odd * (narrow if rule else int(rng.choice([1, max(1, narrow // 2)])))
    return sides


def _pad(rng: Any, dtype: str, kind: str) -> dict[str, Any]:
    wide, narrow = 1024 // BITS[dtype], 128 // BITS[dtype]
    sides = [int(side) * wide for side in rng.integers(6, 40, size=3)]
    # Of one side: just above a rule, just below one, on the smaller rule only, just above a small multiple.
    odd = {"leave": wide + 1, "near": 9 * wide - 1, "aligned": 2 * wide + narrow, "small": wide + narrow - 1}[kind]
    sides[int(rng.integers(3))] = odd
    slow, middle = {
        "leave": (rng.uniform(0.93, 0.98), 0.99),
        "near": (rng.uniform(0.3, 0.6), rng.uniform(0.7, 0.9)),
        "aligned": (rng.uniform(0.3, 0.6), rng.uniform(0.5, 0.98)),
        "small": (rng.uniform(0.3, 0.6), rng.uniform(0.8, 0.95)),
    }[kind]
    peak = float(rng.integers(100, 900)) * 1e12
    rates = {"none": float(slow) * peak, "16 B": float(middle) * peak, "128 B": peak}
    return {"ask": "padding", "dtype": dtype, "bits": BITS[dtype], "shape": sides, "rates": rates}
