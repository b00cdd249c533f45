"""group_int4: weights in groups of four-bit integers, two in a byte, and the product with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from edl_labs.checks import Exercise, close, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.slip_digests import Sentence, digest

_SAME = 1e-5  # of the largest value: fp32, in another order of sums
_SCALE_OFF = 2e-3  # fp16 has 11 bits: the next number is 1e-3 away, and another formula further
_ANSWERS = ("packed", "scale", "zero", "dequantized", "product")


@exercise("group_int4")
class GroupInt4(Exercise):
    """`quantize`, `dequantize`, `product` and `bytes_per_weight` for groups of a row's weights.

    The last two of the matrix functions get packed weights that the judge drew.
    """

    answers = "all"

    returns: ClassVar[Mapping[str, Any]] = {"quantize": tuple[Any, Any, Any], "bytes_per_weight": float}

    def probe(self, student: Any, given: Any) -> Any:
        import torch

        packed, scale, zero = student.quantize(torch.tensor(given["weight"]), given["group"])
        stored = [_stored(given, name) for name in ("packed", "scale", "zero")]
        sizes = {"columns": given["columns"], "group": given["group"]}
        dequantized = student.dequantize(*stored, **sizes)
        product = student.product(torch.tensor(given["x"]), *[_stored(given, n) for n in _STORED], **sizes)
        made = dict(zip(_ANSWERS, (packed, scale, zero, dequantized, product), strict=True))
        return {
            **{name: _rows(value) for name, value in made.items()},
            "types": {name: _type(made[name]) for name in _STORED},
            "bytes": [float(student.bytes_per_weight(*one)) for one in given["formats"]],
        }

    def compare(self, case: Any, got: Any, want: Any) -> None:
        for name in _ANSWERS:
            _require_shape(name, got[name], want[name])
        for name in _STORED:
            if got["types"][name] != want["types"][name]:
                why = f"got {got['types'][name]}, expected {want['types'][name]}"
                raise Wrong(f"`{name}` has the wrong type.", why=why, next=f"end with .to(torch.{want['types'][name]})")
        _judge_scale(case, got, want)
        _judge_codes(case, got, want)
        for name in ("dequantized", "product"):
            most = max(abs(one) for row in want[name] for one in row)
            if not all(close(a, b, atol=_SAME * most) for a, b in _pairs(got[name], want[name])):
                raise _named(case, name, got) or _first_off(name, got[name], want[name])
        for (group, scale_bits, zero_bits), mine, right in zip(
            case["formats"], got["bytes"], want["bytes"], strict=True
        ):
            if not close(mine, right):
                of = f"for groups of {group}, a scale of {scale_bits} bits and a zero point of {zero_bits} bits"
                then = "add half a byte and the weight's share of the group's scale and zero point"
                why = f"{of}, got {mine:.5g}, expected {right:.5g}"
                raise Wrong("Your bytes per weight are wrong.", why=why, next=then)

    def student_inputs(self, case: Any) -> Any:
        """Tensors and numbers by the parameters' names."""
        import torch

        stored = {name: _stored(case, name) for name in _STORED}
        numbers = {name: case[name] for name in ("group", "columns", "formats")}
        return {"weight": torch.tensor(case["weight"]), "x": torch.tensor(case["x"]), **stored, **numbers}

    def format_case(self, case: Any) -> str:
        """Sizes, and the first weights."""
        first = ", ".join(f"{one:.4g}" for one in case["weight"][0][:6])
        return f"{len(case['weight'])} rows of {case['columns']} weights in groups of {case['group']}: {first} …"

    def format_answer(self, case: Any, got: Any) -> str:
        """The beginning of each part."""
        return "; ".join(f"{name} begins with {got[name][0][:4]}" for name in _ANSWERS if got[name])


_STORED = ("packed", "scale", "zero")


def _stored(given: Any, name: str) -> Any:
    import torch

    dtypes = {"packed": torch.uint8, "scale": torch.float16, "zero": torch.uint8}
    return torch.tensor(given["stored"][name], dtype=dtypes[name])


def _rows(value: Any) -> list[list[float]]:
    import torch

    table = torch.as_tensor(value).detach().to(torch.float64)
    return [[float(one) for one in row] for row in (table if table.ndim == 2 else table.reshape(1, -1))]


def _type(value: Any) -> str:
    return str(getattr(value, "dtype", type(value).__name__)).removeprefix("torch.")


def _pairs(got: Any, want: Any) -> list[tuple[float, float]]:
    return [pair for mine, right in zip(got, want, strict=True) for pair in zip(mine, right, strict=True)]


def _require_shape(name: str, got: Any, want: Any) -> None:
    shapes = [[len(one), len(one[0]) if one else 0] for one in (got, want)]
    if shapes[0] == shapes[1]:
        return
    why = f"got {shapes[0][0]} × {shapes[0][1]}, expected {shapes[1][0]} × {shapes[1][1]}"
    if name in ("scale", "zero") and shapes[0][1] < shapes[1][1]:
        then = "return one column for each group, including a last group that is shorter"
        raise Wrong(f"`{name}` has too few columns.", why=why, next=then)
    if name == "packed" and shapes[0][1] > shapes[1][1]:
        raise Wrong(
            "Your function stores each weight in its own byte.",
            why=why,
            next="pack two integers into a byte: low | high << 4",
        )
    raise Wrong(f"`{name}` has the wrong shape.", why=why, next="use the rows and columns that the text lists")


def _judge_scale(case: Any, got: Any, want: Any) -> None:
    off = [(a, b) for a, b in _pairs(got["scale"], want["scale"]) if not abs(a - b) <= _SCALE_OFF * abs(b)]
    if off:
        mine, right = off[0]
        raise _named(case, "scale", got) or Wrong(
            "One of your scales is wrong.",
            why=f"got {mine:.6g}, expected {right:.6g}",
            next="compute (highest - lowest) / 15 for each group, with 0 among the values",
        )


def _judge_codes(case: Any, got: Any, want: Any) -> None:
    """Zero points and packed integers."""
    for name, then in (("zero", "compute round(-lowest / scale)"), ("packed", _INTEGER)):
        for row, (mine, right) in enumerate(zip(got[name], want[name], strict=True)):
            at = next((i for i, (a, b) in enumerate(zip(mine, right, strict=True)) if a != b), None)
            if at is not None:
                seen = f"in row {row}, column {at}, got {mine[at]:g}, expected {right[at]:g}"
                raise _named(case, name, got) or Wrong(f"`{name}` contains a wrong integer.", why=seen, next=then)


_INTEGER = "compute round(w / scale) + zero, limited to 0 to 15"


def _named(case: Any, name: str, got: Any) -> Wrong | None:
    """The known mistake that gives this part."""
    mine = digest(one for row in got[name] for one in row)
    for slip, (what, why, then) in _SAID.items():
        if case["slips"].get(name, {}).get(slip) == mine:
            return Wrong(what, why=why, next=then)
    return None


def _first_off(name: str, got: Any, want: Any) -> Wrong:
    most = max(abs(one) for row in want for one in row)
    mine, right = next((a, b) for a, b in _pairs(got, want) if not close(a, b, atol=_SAME * most))
    what = {"dequantized": "`dequantize` returns wrong weights.", "product": "`product` returns wrong values."}[name]
    of_weight = "compute (integer - zero) * scale, with the scale of its group"
    then = of_weight if name == "dequantized" else "compute x @ dequantized.T: rows of the weight are outputs"
    return Wrong(what, why=f"got {mine:.6g}, expected {right:.6g}", next=then)


_SAID: dict[str, Sentence] = {
    "high_first": (
        "Your function exchanges the two halves of a byte.",
        "column 0 is in the low four bits, column 1 in the high four bits",
        "use low = byte & 15 and high = byte >> 4",
    ),
    "whole_row": (
        "Your function uses one scale for a whole row.",
        "each group has its own highest and lowest value",
        "compute both values over the columns of the group",
    ),
    "whole_tensor": (
        "Your function uses one scale for the whole tensor.",
        "each group of a row has its own highest and lowest value",
        "compute both values over the columns of the group",
    ),
    "of_sixteen": (
        "Your function divides the range by 16.",
        "sixteen integers have 15 steps between them",
        "divide by 15",
    ),
    "largest_alone": (
        "Your function computes the scale of a symmetric grid.",
        "the lowest and the highest value of a group must get the integers 0 and 15",
        "compute (highest - lowest) / 15",
    ),
    "without_zero": (
        "Your grid does not contain 0 if all values of a group have the same sign.",
        "in every group, one of the integers must represent exactly 0",
        "use lowest = min(lowest, 0) and highest = max(highest, 0)",
    ),
    "rounded_down": (
        "Your function rounds the integers down.",
        "each integer is the right one or too small",
        "use torch.round instead of a cast",
    ),
    "signed": (
        "Your function reads the integers as signed.",
        "integers of 8 and above became negative",
        "read the integers as 0 to 15, then subtract the zero point",
    ),
    "no_zero_point": (
        "Your function does not subtract the zero point.",
        "each weight is too large by zero · scale",
        "compute (integer - zero) * scale",
    ),
    "one_group": (
        "Your function uses the first group's scale and zero point for all groups.",
        "column c belongs to group c // group",
        "repeat each group's scale and zero point over its columns",
    ),
    "zero_scaled_twice": (
        "Your function adds the zero point to the scaled weight.",
        "a zero point is an integer of the grid, not a weight",
        "subtract the zero point from the integer before you multiply by the scale",
    ),
}
