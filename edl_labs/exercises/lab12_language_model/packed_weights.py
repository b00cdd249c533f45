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
                why = f"it has the type {got['types'][name]}, expected {want['types'][name]}"
                raise Wrong(f"{name} has another type.", why=why, next=f"end with .to(torch.{want['types'][name]})")
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
                why = f"groups of {group}, {scale_bits} bits of scale, {zero_bits} of zero point: {mine:.5g} came back"
                then = "half a byte for the weight, and the group's scale and zero point shared by its weights"
                raise Wrong("The bytes of a weight are wrong.", why=f"{why}, {right:.5g} is right", next=then)

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
        return "; ".join(f"{name} begins {got[name][0][:4]}" for name in _ANSWERS if got[name])


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
    why = f"it is {shapes[0][0]} × {shapes[0][1]}; expected {shapes[1][0]} × {shapes[1][1]}"
    if name in ("scale", "zero") and shapes[0][1] < shapes[1][1]:
        then = "each group of a row has its own, and the last group counts where it is shorter than the others"
        raise Wrong(f"{name} has too few columns.", why=why, next=then)
    if name == "packed" and shapes[0][1] > shapes[1][1]:
        raise Wrong("Each weight has a byte of its own.", why=why, next="put two integers into a byte: low | high << 4")
    raise Wrong(f"{name} has the wrong shape.", why=why, next="rows × columns, as the text lists them")


def _judge_scale(case: Any, got: Any, want: Any) -> None:
    off = [(a, b) for a, b in _pairs(got["scale"], want["scale"]) if not abs(a - b) <= _SCALE_OFF * abs(b)]
    if off:
        mine, right = off[0]
        raise _named(case, "scale", got) or Wrong(
            "A scale is another one.",
            why=f"{mine:.6g} came back, and {right:.6g} is right",
            next="(highest - lowest) / 15 of the group, where 0 is among the values",
        )


def _judge_codes(case: Any, got: Any, want: Any) -> None:
    """Zero points and packed integers."""
    for name, then in (("zero", "round(-lowest / scale)"), ("packed", "round(w / scale) + zero, from 0 to 15")):
        for row, (mine, right) in enumerate(zip(got[name], want[name], strict=True)):
            at = next((i for i, (a, b) in enumerate(zip(mine, right, strict=True)) if a != b), None)
            if at is not None:
                seen = f"row {row}, column {at}: {mine[at]:g} came back, and {right[at]:g} is right"
                raise _named(case, name, got) or Wrong(f"{name} has another integer.", why=seen, next=then)


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
    what = {"dequantized": "dequantize gives other weights.", "product": "product gives other values."}[name]
    then = "(integer - zero) * scale of its group" if name == "dequantized" else "x @ dequantized.T: rows are outputs"
    return Wrong(what, why=f"{mine:.6g} came back, and {right:.6g} is right", next=then)


_SAID: dict[str, Sentence] = {
    "high_first": (
        "The nibbles of a byte are exchanged.",
        "column 0 is in the low four bits, column 1 in the high ones",
        "low = byte & 15, high = byte >> 4",
    ),
    "whole_row": (
        "One scale serves a whole row.",
        "each group has its own highest and lowest value",
        "take them over the group's columns",
    ),
    "whole_tensor": (
        "One scale serves the whole tensor.",
        "each group of a row has its own highest and lowest value",
        "take them over the group's columns",
    ),
    "of_sixteen": ("The range is divided by 16.", "sixteen integers have 15 steps between them", "divide by 15"),
    "largest_alone": (
        "The scale is that of a symmetric grid.",
        "the group's lowest and highest value have the integers 0 and 15",
        "(highest - lowest) / 15",
    ),
    "without_zero": (
        "The group's values need not contain 0, and the grid must.",
        "0 has an integer of its own in every group, so that it stays exact",
        "lowest = min(lowest, 0), highest = max(highest, 0)",
    ),
    "rounded_down": ("Integers are rounded down.", "each is below or at the right one", "torch.round, not a cast"),
    "signed": (
        "The integers are read as signed.",
        "from 8 on they became negative",
        "they go from 0 to 15, and the zero point is subtracted",
    ),
    "no_zero_point": ("The zero point is not subtracted.", "each weight is off by zero · scale", "(integer - zero)"),
    "one_group": (
        "The first group's scale and zero point serve all.",
        "column c belongs to group c // group",
        "repeat each group's scale over its columns",
    ),
    "zero_scaled_twice": (
        "The zero point is added to the scaled weight.",
        "a zero point is an integer of the grid",
        "subtract it before you multiply by the scale",
    ),
}
