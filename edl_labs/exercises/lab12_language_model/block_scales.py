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
    "tensor": "nvfp4_scales, the tensor's scale",
    "scales": "nvfp4_scales, the blocks' scales",
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
                raise Wrong(f"{called}: another shape.", why=shapes(mine, right), next=_SHAPES[name])
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
        return "; ".join(f"{name} begins {got[name]['values'][:3]}" for name in _PARTS)


def _tensors(given: Any) -> Any:
    import torch

    x, block_scales = torch.tensor(given["x"]), torch.tensor(given["block_scales"])
    return x, torch.tensor(given["exponents"], dtype=torch.int32), block_scales


_OF_32, _OF_16, _OF_X = "one column for each 32", "one column for each 16", "rows × columns, as x"
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
            then = "the elements pass through .to(torch.float8_e4m3fn), or e2m1"
            return Wrong("Elements are not rounded.", why="nearly all are those of x, digit by digit", next=then)
    elif name == "scales" and any(abs(E4M3FN.round(one) - one) > 0 for one in answers):
        then = "the blocks' scales pass through .to(torch.float8_e4m3fn)"
        return Wrong("A block's scale is not rounded to e4m3.", why="a byte holds no other numbers", next=then)
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
        return Wrong(f"{called}: no number came back.", why="the tensor has one scale", next="return it first")
    mine, right = pairs[at]
    what, then = f"{called}: another number.", "work out this block with pencil and paper: amax first"
    if name in ("saturating", "unsaturated"):
        block = case["x"][at // -(-len(case["x"][0]) // 32)][at % -(-len(case["x"][0]) // 32) * 32 :][:32]
        amax = max(map(abs, block))
        if amax == 0:
            what, then = "A block of zeros has another exponent.", "log2 of 0 is minus infinity: return -127 for it"
        elif right == -127:
            what, then = "An exponent is below the smallest.", "a byte holds exponents from -127 on: clamp"
        why = f"amax is {amax:.6g}: the exponent {mine:g} came back, and {right:g} is right"
        return Wrong(what, why=why, next=then)
    return Wrong(what, why=f"number {at}: {mine:.6g} came back, and {right:.6g} is right", next=then)


_SAID: dict[str, Sentence] = {
    "of_448": (
        "The exponent is that of amax / 448.",
        "the standard divides two powers of two: that of amax and that of the format, 256",
        "floor(log2(amax)) - 8",
    ),
    "no_offset": (
        "The scale is as large as the block's values.",
        "elements reach up to 448, so that most of their range stays unused",
        "the last exponent of e4m3 is 8: subtract it",
    ),
    "rounded_up": ("log2(amax) is rounded up.", "the scale is a power too large", "torch.floor, or the exponent bits"),
    "nearest": ("log2(amax) is rounded to nearest.", "some scales are a power too large", "round down"),
    "of_row": ("One exponent serves a whole row.", "each block of 32 has its own amax", "take amax over each block"),
    "signed": (
        "Negative values do not count.",
        "amax is the largest magnitude, and -8 is larger than 5 in magnitude",
        "take abs() before the maximum",
    ),
    "other_rule": (
        "The two rules of mx_exponents are exchanged.",
        "`saturating` means the standard's rule; without it nothing may become 448 that is above",
        "look at a block whose amax is between 448 and 512 times a power of two",
    ),
    "same_rule": (
        "Both rules give the same exponents.",
        "without `saturating` no value of a block may be above 448 times the scale",
        "raise the exponent by one where amax is above 448 times the scale",
    ),
    "always_one_more": (
        "Every exponent is one more than the standard's.",
        "most blocks saturate nothing with the standard's scale",
        "raise the exponent by one only where amax is above 448 times the scale",
    ),
    "one_more_at_448": (
        "an amax of exactly 448 times the scale counts as too large.",
        "448 is a number of e4m3, so that it does not saturate",
        "raise the exponent by one only above it",
    ),
    "mx_stored": (
        "mx_values returns what is stored.",
        "the elements are not multiplied by their scale",
        "multiply the rounded elements by the scale again",
    ),
    "mx_first_block": (
        "The first block's exponent serves the whole row.",
        "column c belongs to block c // 32",
        "repeat each block's exponent over its columns",
    ),
    "without_448": (
        "The tensor's scale forgets how large block scales can be.",
        "then no block's scale is above 1, and small blocks have none left",
        "amax / (448 * 6): the largest block scale times the largest element",
    ),
    "without_6": (
        "The tensor's scale forgets how large elements can be.",
        "then no block's scale is above 75",
        "amax / (448 * 6): the largest block scale times the largest element",
    ),
    "absolute": (
        "The blocks' scales are not relative to the tensor's.",
        "an element is multiplied by both, so that amax / 6 is their product",
        "amax / 6 / tensor scale",
    ),
    "by_448": (
        "A block's scale is divided by 448.",
        "its largest element is 6, the largest number of e2m1",
        "amax / 6 / tensor scale",
    ),
    "fp4_stored": (
        "nvfp4_values returns the elements alone.",
        "they are not multiplied by their scales",
        "e2m1 of the quotient, times the block's scale and the tensor's",
    ),
    "fp4_first_block": (
        "The first block's scale in NVFP4 serves the whole row.",
        "column c belongs to block c // 16",
        "repeat each block's scale over its columns",
    ),
    "without_tensor": (
        "The values leave out the tensor's scale.",
        "a value is element * block scale * tensor scale",
        "divide by both, multiply by both",
    ),
    "below_smallest": (
        "A block's scale is below 2⁻⁶.",
        "small blocks, and those of zeros, have the smallest scale",
        "clamp before you round",
    ),
}
