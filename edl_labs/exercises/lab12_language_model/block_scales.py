"""block_scales: the scales of MXFP8 and NVFP4, and what these formats leave of a tensor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from edl_labs.checks import Exercise, close, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.lab12_language_model.plain_tables import have_one_shape, plain_table, shapes
from edl_labs.exercises.slip_digests import Sentence, digest

_SAME = 2e-6  # relatively: a few roundings of fp32, in any order
_NEARLY_ALL = 0.8  # some are above 448 scales; of rounded values a tenth may be as they were
_PARTS = {
    "saturating": "mx_exponents(x, True)",
    "unsaturated": "mx_exponents(x, False)",
    "mx": "mx_values",
    "tensor": "nvfp4_scales (the tensor's scale)",
    "scales": "nvfp4_scales (the blocks' scales)",
    "nvfp4": "nvfp4_values",
}


@exercise("block_scales")
class BlockScales(Exercise):
    """`mx_exponents`, `mx_values`, `nvfp4_scales` and `nvfp4_values`; the values with scales that the judge has."""

    answers = "all"

    returns: ClassVar[Mapping[str, Any]] = {"nvfp4_scales": tuple[Any, Any]}

    def probe(self, student: Any, given: Any) -> Any:
        x, exponents, block_scales = _tensors(given)
        of_tensor, of_blocks = student.nvfp4_scales(x.clone())
        made = {
            "saturating": student.mx_exponents(x.clone(), True),
            "unsaturated": student.mx_exponents(x.clone(), False),
            "mx": student.mx_values(x.clone(), exponents.clone()),
            "tensor": of_tensor,
            "scales": of_blocks,
            "nvfp4": student.nvfp4_values(x.clone(), given["tensor_scale"], block_scales.clone()),
        }
        return {name: plain_table(value) for name, value in made.items()}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        for name, called in _PARTS.items():
            mine, right = got[name], want[name]
            if name != "tensor" and not have_one_shape(mine, right):
                raise Wrong(f"Got the wrong shape from {called}.", why=shapes(mine, right), next=_SHAPES[name])
            pairs = list(zip(mine["values"], right["values"], strict=False))
            at = next((i for i, pair in enumerate(pairs) if not close(*pair, rtol=_SAME)), None)
            if at is not None or not pairs:
                known = _not_rounded(case, name, mine["values"]) or _named(case, name, mine["values"])
                raise known or _other(case, called, name, pairs, at)

    def student_inputs(self, case: Any) -> Any:
        """Tensors and numbers by the parameters' names."""
        x, exponents, block_scales = _tensors(case)
        numbers = {"saturating": True, "tensor_scale": case["tensor_scale"]}
        return {"x": x, "exponents": exponents, "block_scales": block_scales, **numbers}

    def format_case(self, case: Any) -> str:
        """Sizes, and the first values."""
        first = ", ".join(f"{one:.4g}" for one in case["x"][0][:6])
        return f"{len(case['x'])} rows of {len(case['x'][0])} values: {first} …"

    def format_answer(self, case: Any, got: Any) -> str:
        """The beginning of each part."""
        return "; ".join(f"{name} begins with {got[name]['values'][:3]}" for name in _PARTS)


def _tensors(given: Any) -> Any:
    import torch

    x, block_scales = torch.tensor(given["x"]), torch.tensor(given["block_scales"])
    return x, torch.tensor(given["exponents"], dtype=torch.int32), block_scales


_OF_32, _OF_16, _OF_X = (
    "return one column for each block of 32",
    "return one column for each block of 16",
    "return rows × columns, like x",
)
_SHORT = ", and one for a shorter last block"
_SHAPES = {
    "saturating": _OF_32 + _SHORT,
    "unsaturated": _OF_32 + _SHORT,
    "mx": _OF_X,
    "scales": _OF_16 + _SHORT,
    "nvfp4": _OF_X,
}


def _not_rounded(case: Any, name: str, answers: Any) -> Wrong | None:
    """What is said of scales that are no numbers of e4m3, and of values that are nearly all those of x."""
    from edl_labs.numerics import E4M3FN

    if name in ("mx", "nvfp4"):
        x = [one for row in case["x"] for one in row]
        kept = sum(close(mine, one) for mine, one in zip(answers, x, strict=True))
        if kept > _NEARLY_ALL * len(x):
            then = "round the elements with .to(torch.float8_e4m3fn), or with e2m1"
            why = "nearly all of your values are exactly those of x"
            return Wrong("Your function does not round the elements.", why=why, next=then)
    elif name == "scales" and any(abs(E4M3FN.round(one) - one) > 0 for one in answers):
        then = "round the scales of the blocks with .to(torch.float8_e4m3fn)"
        why = "the scale of a block is stored in one byte, as a number in e4m3"
        return Wrong("Your function does not round a block's scale to e4m3.", why=why, next=then)
    return None


def _named(case: Any, name: str, answers: Any) -> Wrong | None:
    """The known mistake that gives this part."""
    mine = digest(answers)
    for slip, (what, why, then) in _SAID.items():
        if case["slips"][name].get(slip) == mine:
            return Wrong(what, why=why, next=then)
    return None


def _other(case: Any, called: str, name: str, pairs: Any, at: int | None) -> Wrong:
    if at is None:
        then = "return the scale of the tensor as the first value"
        return Wrong(
            f"Got no number from {called}.", why="expected one number, the scale of the whole tensor", next=then
        )
    mine, right = pairs[at]
    what, then = f"Got a wrong number from {called}.", "compute its block with pencil and paper, starting with amax"
    if name in ("saturating", "unsaturated"):
        block = case["x"][at // -(-len(case["x"][0]) // 32)][at % -(-len(case["x"][0]) // 32) * 32 :][:32]
        amax = max(map(abs, block))
        if amax == 0:
            what, then = (
                "Your exponent of a block of zeros is wrong.",
                "return -127 for such a block: log2 of 0 is -inf",
            )
        elif right == -127:
            what, then = (
                "One of your exponents is too small.",
                "clamp it to at least -127, the smallest exponent that a byte can store",
            )
        why = f"for a block with amax {amax:.6g}, got the exponent {mine:g}, expected {right:g}"
        return Wrong(what, why=why, next=then)
    return Wrong(what, why=f"number {at}, counted row by row from 0, is {mine:.6g}, expected {right:.6g}", next=then)


_SAID: dict[str, Sentence] = {
    "of_448": (
        "Your function computes the exponent of amax / 448.",
        "the standard divides the power of two in amax by 256, the power of two in 448",
        "compute floor(log2(amax)) - 8",
    ),
    "no_offset": (
        "Your scale is as large as the block's values.",
        "elements can be as large as 448, so most of their range stays unused",
        "subtract 8, the largest exponent of e4m3",
    ),
    "rounded_up": (
        "Your function rounds log2(amax) up.",
        "this makes your scale too large by a factor of two",
        "round down, with torch.floor or with the exponent bits",
    ),
    "nearest": (
        "Your function rounds log2(amax) to nearest.",
        "this makes some of your scales too large by a factor of two",
        "round down",
    ),
    "of_row": (
        "Your function uses one exponent for a whole row.",
        "each block of 32 has its own amax",
        "take amax over each block",
    ),
    "signed": (
        "Your function ignores negative values.",
        "amax is the largest magnitude, and -8 is larger in magnitude than 5",
        "take abs() before the maximum",
    ),
    "other_rule": (
        "Your function exchanges the two rules of `mx_exponents`.",
        "if `saturating` is true, the standard's rule applies; otherwise no value may saturate at 448",
        "compute both exponents of a block whose amax is between 448 and 512 times a power of two",
    ),
    "same_rule": (
        "Both rules of your function give the same exponents.",
        "if `saturating` is false, no value of a block may be above 448 times the scale",
        "raise the exponent by one where amax is above 448 times the scale",
    ),
    "always_one_more": (
        "Your function adds one to every exponent.",
        "with the standard's scale, most blocks have no value that saturates",
        "raise the exponent by one only where amax is above 448 times the scale",
    ),
    "one_more_at_448": (
        "Your function treats an amax of exactly 448 times the scale as too large.",
        "448 is a number in e4m3, so it does not saturate",
        "raise the exponent by one only for a larger amax",
    ),
    "mx_stored": (
        "`mx_values` returns the stored elements.",
        "your function does not multiply the elements by their scale",
        "multiply the rounded elements by their scale again",
    ),
    "mx_first_block": (
        "Your function uses the first block's exponent for the whole row.",
        "column c belongs to block c // 32",
        "repeat each block's exponent over its columns",
    ),
    "without_448": (
        "Your tensor scale leaves out how large block scales can be.",
        "then no block's scale is above 1, and those of small blocks are too small for e4m3",
        "compute amax / (448 * 6): divide by the largest block scale times the largest element",
    ),
    "without_6": (
        "Your tensor scale leaves out how large elements can be.",
        "then no block's scale is above 75, although a scale can be as large as 448",
        "compute amax / (448 * 6): divide by the largest block scale times the largest element",
    ),
    "absolute": (
        "Your block scales are not relative to the tensor's scale.",
        "an element is multiplied by both scales, so their product must be amax / 6",
        "compute amax / 6 / tensor scale",
    ),
    "by_448": (
        "Your function divides a block's amax by 448.",
        "elements are numbers of e2m1, and the largest of them is 6",
        "compute amax / 6 / tensor scale",
    ),
    "fp4_stored": (
        "`nvfp4_values` returns only the elements.",
        "your function does not multiply the elements by their scales",
        "multiply e2m1 of the quotient by the block's scale and by the tensor's scale",
    ),
    "fp4_first_block": (
        "In NVFP4, your function uses the first block's scale for the whole row.",
        "column c belongs to block c // 16",
        "repeat each block's scale over its columns",
    ),
    "without_tensor": (
        "Your values leave out the tensor's scale.",
        "a value is element * block scale * tensor scale",
        "divide by both scales, round, then multiply by both",
    ),
    "below_smallest": (
        "Your function returns a block scale below 2⁻⁶.",
        "small blocks and blocks of zeros must have the smallest scale",
        "clamp the scale before you round it",
    ),
}
