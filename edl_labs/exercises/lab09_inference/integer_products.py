"""int8_product: a layer on integers, asked one property at a time: sums, zero points, bias, rounding, ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from edl_labs.checks import Exercise, close, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.input_guard import InputGuard, asked_twice, explained_by_changes

_SAME = 1e-7  # of a multiplier: float32 will do
_BEFORE = ("ahead of bias", "ahead of zero points", "ahead of both", "multiplier")
# What brings the sums of each into int8, and none of small whole numbers to a tie.
_MULTIPLIERS = {
    "sums of bytes": 0.00391,
    "large sums": 1.53e-5,
    "weight zeros": 4.9e-4,
    "out zero": 0.2603,
    "rounding": 0.2903,
}
_DURING = (  # in the order of judging: what is asked later takes for granted what was asked before
    *("small sums", "rounding", "sums of bytes", "large sums", "offset", "out zero", "ends", "weight zeros", "relu"),
)


@exercise("int8_product")
class Int8Product(Exercise):
    """What a layer needs ahead of its inputs, and its int8 outputs.

    The evidence has what `ahead` and `int8_product` give for a drawn layer with all but one property taken out
    (no zero points, no bias, a multiplier of 1), then for the layer as it is. All are integers but the multipliers.
    """

    answers = ("before", "during", "layer", "shape", "dtype")

    returns: ClassVar[Mapping[str, Any]] = {"ahead": tuple[Any, Any]}

    def probe(self, student: Any, given: Any) -> Any:
        def ask(guard: InputGuard) -> dict[str, Any]:
            before = {name: _ahead(student, given, name, guard) for name in _BEFORE}
            during = {name: _product(student, given, name, guard) for name in _DURING}
            return {"before": before, "during": during, **_whole(student, given, guard)}

        found, changed = asked_twice(ask)
        return {**found, "changed": changed}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        with explained_by_changes(got["changed"]):
            self._judge_parts(case, got, want)

    def _judge_parts(self, case: Any, got: Any, want: Any) -> None:
        if got["shape"] != want["shape"]:
            why = f"got the shape {got['shape']}, expected {want['shape']} (rows × columns)"
            then = "return one row for each row of x, and one column for each column of weight"
            raise Wrong("your outputs have the wrong shape", why=why, next=then)
        _judge_before(case, got["before"], want["before"])
        for name in _DURING:
            found, right = got["during"][name], want["during"][name]
            if found != right:
                raise _told(name, case, found, right)
        if got["layer"] != want["layer"]:
            off = _first_off(got["layer"], want["layer"])
            if _come_round(got["layer"], want["layer"]):
                then = "clamp after you add the output's zero point, and before you convert to int8"
                raise Wrong("your outputs wrap around when a zero point is added", why=off, next=then)
            then = "each part is right when tested alone: which of zero points, bias and relu does this layer combine?"
            raise Wrong(
                "each part of your code works when tested alone, but the complete layer is wrong", why=off, next=then
            )
        if got["dtype"] != want["dtype"]:
            why = f"all numbers are right, but their type is {got['dtype']}"
            then = "convert them with .to(torch.int8) after rounding and clamping"
            raise Wrong("your outputs are not int8", why=why, next=then)

    def student_inputs(self, case: Any) -> Any:
        """The layer's tensors and numbers, by the parameters' names."""
        import torch

        values = _values(case)
        given = {**_given(case), **_row(case, "layer")}
        given.pop("offset"), given.pop("multiplier")
        return {
            "x": values["x"],
            "weight": values["weight"],
            "bias": torch.tensor(values["bias"], dtype=torch.float64),
            **given,
        }

    def format_answer(self, case: Any, got: Any) -> str:
        """Offsets and the first outputs."""
        offset, multiplier = got["before"]["ahead of both"], got["before"]["multiplier"]
        return f"offset {_few(offset)}; multiplier {_few(multiplier)}; outputs of the layer {_few(got['layer'])}"

    def format_case(self, case: Any) -> str:
        """Sizes and grids."""
        given = _given(case)
        scales = ", ".join(f"{one:.3g}" for one in case["weight_scale"])
        return (
            f"x {case['rows']}×{case['depth']} (scale {given['x_scale']:.3g}, zero point {given['x_zero']}), weight "
            f"{case['depth']}×{len(case['weight_scale'])} (scales {scales}; zero points {case['weight_zero']}), out "
            f"(scale {case['out_scale']:.3g}, zero point {case['out_zero']}){', relu' if case['relu'] else ''}"
        )


def _few(values: list[float]) -> str:
    more = ", …" if len(values) > 4 else ""
    return f"[{', '.join(f'{one:.6g}' for one in values[:4])}{more}]"


def _values(case: Any) -> dict[str, Any]:
    import torch

    drawn = torch.Generator().manual_seed(case["seed"])
    columns = len(case["weight_scale"])
    x = torch.randint(-128, 128, (case["rows"], case["depth"]), generator=drawn, dtype=torch.int8)
    weight = torch.randint(-127, 128, (case["depth"], columns), generator=drawn, dtype=torch.int8)
    return {"x": x, "weight": weight, "bias": case["bias"]}


def _given(case: Any) -> dict[str, Any]:
    return {name: case[name] for name in ("x_scale", "x_zero", "weight_scale", "weight_zero", "out_scale")}


def _ahead(student: Any, case: Any, name: str, guard: InputGuard, *, both: bool = False) -> Any:
    """The offsets for a layer with some of its properties, as whole numbers; or its multipliers."""
    import torch

    given, columns = _given(case), len(case["weight_scale"])
    bias = [0.0] * columns if name == "ahead of zero points" else case["bias"]
    if name in ("ahead of bias", "multiplier"):
        given |= {"x_zero": 0, "weight_zero": [0] * columns}
    given |= {key: guard(key, given[key]) for key in ("weight_scale", "weight_zero")}
    weight, added = guard("weight", _values(case)["weight"]), guard("bias", torch.tensor(bias, dtype=torch.float64))
    offset, multiplier = student.ahead(weight, added, **given)
    if both:
        return offset, multiplier
    return _numbers(multiplier if name == "multiplier" else offset)


def _row(case: Any, name: str) -> dict[str, Any]:
    """The parameters of a product in which one property counts, and the others change nothing."""
    import torch

    columns = len(case["weight_scale"])
    row: dict[str, Any] = {
        "offset": torch.zeros(columns, dtype=torch.int32),
        "multiplier": torch.ones(columns, dtype=torch.float64),
        "weight_zero": [0] * columns,
        "out_zero": 0,
        "relu": False,
    }
    row["multiplier"] *= _MULTIPLIERS.get(name, 1.0)
    if name == "weight zeros":
        row |= {"weight_zero": list(case["weight_zero"])}
    elif name == "offset":
        row["offset"] += torch.arange(columns, dtype=torch.int32) * 3 - 5
    elif name == "out zero":
        row["out_zero"] = case["out_zero"]
    elif name == "relu":
        row |= {"relu": True, "out_zero": case["out_zero"]}
    return row if name != "layer" else {**row, "out_zero": case["out_zero"], "relu": case["relu"]}


def _product(student: Any, case: Any, name: str, guard: InputGuard) -> list[float]:
    x, weight = _tensors(case, name)
    row = {key: guard(key, value) for key, value in _row(case, name).items()}
    x, weight = guard("x", x), guard("weight", weight)
    return _numbers(student.int8_product(x, weight, row.pop("offset"), row.pop("multiplier"), **row))


def _tensors(case: Any, name: str) -> tuple[Any, Any]:
    """Input and weight (int8) of the product in which one property counts."""
    import torch

    drawn, columns = torch.Generator().manual_seed(case["seed"] + 7), len(case["weight_scale"])
    if name in ("large sums", "weight zeros"):
        values = _values(case)
        x, weight = values["x"], values["weight"]
        if name == "large sums":  # of one sign, so that sums leave 16 bits in every column
            x, weight = x.clamp(min=90), weight.clamp(min=90)
    else:
        most = {"sums of bytes": 70, "rounding": 6, "ends": 7, "out zero": 4}.get(name, 3)
        x = torch.randint(-most, most + 1, (3, 5), generator=drawn, dtype=torch.int8)
        weight = torch.randint(-most, most + 1, (5, columns), generator=drawn, dtype=torch.int8)
        if name == "ends":
            x, weight = (x.abs() + 1) * torch.tensor([[1], [-1], [1]], dtype=torch.int8), weight.abs() + 4
        elif name == "relu":  # the first column is far below any zero point
            x, weight[:, 0] = x.abs() + 3, -9 - weight[:, 0].abs()
    return x, weight


def _whole(student: Any, case: Any, guard: InputGuard) -> dict[str, Any]:
    import torch

    values, row = _values(case), _row(case, "layer")
    offset, multiplier = _ahead(student, case, "whole", guard, both=True)
    row |= {"weight_zero": list(case["weight_zero"])}
    del row["offset"], row["multiplier"]
    x, weight = guard("x", values["x"]), guard("weight", values["weight"])
    given = student.int8_product(x, weight, offset, multiplier, **row)
    dtype = str(given.dtype).removeprefix("torch.") if hasattr(given, "dtype") else "int8"  # a list has no type
    return {"layer": _numbers(given), "shape": list(torch.as_tensor(given).shape), "dtype": dtype}


def _numbers(given: Any) -> list[float]:
    import torch

    if not hasattr(given, "shape"):
        given = torch.tensor([float(one) for one in given], dtype=torch.float64)
    return [float(one) for one in torch.as_tensor(given).to(torch.float64).flatten().tolist()]


def _come_round(found: list[float], right: list[float]) -> bool:
    """Whether all that differ lie in int8, and on the other side of 0."""
    off = [(a, b) for a, b in zip(found, right, strict=True) if a != b]
    return bool(off) and all(-128 <= a <= 127 and (a < 0) != (b < 0) for a, b in off)


def _first_off(found: list[float], right: list[float]) -> str:
    if len(found) != len(right):
        return f"got {len(found)} numbers, expected {len(right)}"
    off = [(a, b) for a, b in zip(found, right, strict=True) if not close(a, b, rtol=_SAME)]
    return f"got {off[0][0]:.6g}, expected {off[0][1]:.6g}; {len(off)} of {len(right)} numbers differ"


def _judge_before(case: Any, got: Any, want: Any) -> None:
    found, right = got["multiplier"], want["multiplier"]
    if len(found) != len(right) or not all(close(a, b, rtol=_SAME) for a, b in zip(found, right, strict=True)):
        raise _told_multiplier(case, found, right)
    found, right = got["ahead of bias"], want["ahead of bias"]
    if found != right:
        raise _told_bias(case, found, right)
    found, right = got["ahead of zero points"], want["ahead of zero points"]
    if found != right:
        raise _told_zeros(case, found, right)
    if got["ahead of both"] != want["ahead of both"]:
        why = _first_off(got["ahead of both"], want["ahead of both"])
        then = "add the bias and the terms of the zero points"
        raise Wrong("your offset is not the sum of its parts", why=why, next=then)


def _told_multiplier(case: Any, found: list[float], right: list[float]) -> Wrong:
    why = _first_off(found, right)
    if len(found) == len(right):
        if all(close(a * b, 1.0) for a, b in zip(found, right, strict=True)):
            then = "how many steps of the output's grid is one unit of the sums?"
            return Wrong("your multiplier is the inverse of the right one", why=why, next=then)
        if all(close(a, b * case["out_scale"]) for a, b in zip(found, right, strict=True)):
            return Wrong("your multiplier does not contain the output's scale", why=why, next="divide by `out_scale`")
        if len({f"{one:.9g}" for one in found}) < len({f"{one:.9g}" for one in right}):
            then = "use the entry of `weight_scale` that belongs to each column"
            return Wrong("in your answer, several columns have the same multiplier", why=why, next=then)
    then = "multiply the scale of x by the scale of the column, and divide by `out_scale`"
    return Wrong("your multiplier is wrong", why=why, next=then)


def _told_bias(case: Any, found: list[float], right: list[float]) -> Wrong:
    what, why = "your bias is not in the same unit as the sums", _first_off(found, right)
    if any(one != round(one) for one in found):
        return Wrong("your offset is not an integer, but it is added to integers", why=why, next="round the offset")
    if not any(found):
        then = "add the bias to the sums before they are scaled"
        return Wrong("your offset does not contain the bias", why=why, next=then)
    if all(abs(a - b) <= 1 for a, b in zip(found, right, strict=True)):
        return Wrong(
            "your code does not round the bias to the nearest integer",
            why=why,
            next="round the bias after you convert its unit",
        )
    steps = {
        "in steps of x": case["x_scale"],
        "in steps of the output": case["out_scale"],
        "to integers": 1.0,
    }
    for name, step in steps.items():
        if found == [float(round(value / step)) for value in case["bias"]]:
            what = f"your code rounds the bias {name}, not in units of the sums"
            then = "which real number does one unit of a sum stand for?"
            return Wrong(what, why=f"{why}; this mistake gives exactly your result", next=then)
    return Wrong(what, why=why, next="which real number does one unit of a sum stand for, in each column?")


def _told_zeros(case: Any, found: list[float], right: list[float]) -> Wrong:
    why = f"without a bias, {_first_off(found, right)}"
    sums = [float(case["x_zero"] * sum(column)) for column in zip(*_values(case)["weight"].tolist(), strict=True)]
    square = [float(case["depth"] * case["x_zero"] * zero) for zero in case["weight_zero"]]
    if not any(found):
        return Wrong("your code does not subtract the input's zero point", why=why, next="expand (x - x_zero) * w")
    if len(found) == len(sums):
        if found == [-one for one in sums]:
            then = "which of the four terms of (x - a)(w - b) are known before x?"
            return Wrong("your offset lacks the product of both zero points", why=why, next=then)
        if found == [-one - other for one, other in zip(sums, square, strict=True)] or found == [
            one + other for one, other in zip(sums, square, strict=True)
        ]:
            return Wrong(
                "in your offset, a term of the zero points has the wrong sign", why=why, next="expand (x - a)(w - b)"
            )
        if found == [a - b for a, b in zip(sums, square, strict=True)]:
            return Wrong(
                "in your offset, both zero-point terms have the wrong sign", why=why, next="expand (x - a)(w - b)"
            )
        table = _values(case)["weight"].tolist()
        rows = [float(case["x_zero"] * sum(row)) for row in table[: len(sums)]]
        if found == [b - a for a, b in zip(rows, square, strict=True)]:
            then = "sum over the inputs, so that each output has its own sum"
            return Wrong("your code sums the rows of the weight instead of its columns", why=why, next=then)
        once = [float(case["x_zero"] * zero) for zero in case["weight_zero"]]
        times = {(mine + a) / b for mine, a, b in zip(found, sums, once, strict=True) if b}
        rest = all(mine == -a for mine, a, b in zip(found, sums, once, strict=True) if not b)
        if len(times) == 1 and rest:
            factor = times.pop()
            why = f"{why}; your offset contains {factor:g} * x_zero * w_zero, but a sum has {case['depth']} products"
            what = "your code counts the product of both zero points the wrong number of times"
            return Wrong(what, why=why, next="count x_zero * w_zero once for each product")
    then = "is x_zero multiplied by the sum of a column or of a row? How many times does x_zero * w_zero occur?"
    return Wrong("the zero-point terms of your offset are wrong", why=why, next=then)


def _told(name: str, case: Any, found: list[float], right: list[float]) -> Wrong:
    why = _first_off(found, right)
    whole = all(one == round(one) for one in found)
    if name == "small sums":
        if not whole:
            return Wrong("your outputs are not integers", why=why, next="round them")
        then = "start with offset 0 and multiplier 1: the result must be a plain matrix product"
        return Wrong("your sums are wrong, even small ones", why=why, next=then)
    if name == "sums of bytes" or name == "large sums":
        then = "how large can a sum of int8 products be? Which dtype does the product of two int8 tensors have?"
        bits, what = _WRAPS[name]
        if found == _with_wrapped_sums(case, name, bits):
            return Wrong(what, why=f"{why}; sums in {bits} bits give exactly your result", next=then)
        return Wrong("your large sums are wrong, but small ones are right", why=why, next=then)
    what, then = _SAYS[name]
    if name == "rounding" and not whole:
        return Wrong("your outputs are not integers", why=why, next="round them")
    if name == "rounding" and found == _floored(case):
        then = "round to the nearest integer: -3.2 becomes -3, not -4"
        return Wrong("your code rounds the outputs down", why=why, next=then)
    if name == "ends" and _come_round(found, right):
        return Wrong(
            "your outputs wrap around beyond the range of int8", why=why, next="clamp before you convert to int8"
        )
    if name == "ends" and found == [max(one, -127.0) for one in right]:
        then = "clamp to -128 and 127: the output's grid has 256 numbers"
        return Wrong("your code clamps the outputs at -127 instead of -128", why=why, next=then)
    if name == "weight zeros" and found != _with_row_sums(case, 0):
        if found == _with_row_sums(case, 8):
            then = "widen x first, or give the sum a wider dtype: the sum of a row of x does not fit into int8"
            return Wrong("your sums of the rows of x wrap around", why=why, next=then)
        then = "multiply each zero point by the sum of a row of x"
        return Wrong("your code does not subtract the weights' zero points correctly", why=why, next=then)
    if name == "relu" and len(found) == len(right) and min(found) >= 0:
        then = "which integer represents the number 0 on the output's grid?"
        return Wrong("your relu cuts at the integer 0, which is not the number 0 on this grid", why=why, next=then)
    return Wrong(what, why=why, next=then)


def _with_wrapped_sums(case: Any, name: str, bits: int) -> list[float]:
    """The outputs where sums of products come round at so many bits."""
    import torch

    x, weight = _tensors(case, name)
    half = 2**bits // 2
    sums = (x.long() @ weight.long() + half) % 2**bits - half
    return _numbers(torch.round(sums * _MULTIPLIERS[name]).clamp(-128, 127))


def _floored(case: Any) -> list[float]:
    """The outputs of "rounding" where each is rounded down."""
    import torch

    x, weight = _tensors(case, "rounding")
    return _numbers(torch.floor(x.long() @ weight.long() * _MULTIPLIERS["rounding"]).clamp(-128, 127))


def _with_row_sums(case: Any, bits: int) -> list[float]:
    """The outputs of "weight zeros" where sums of rows come round at so many bits; with 0 bits they are left out."""
    import torch

    values, zeros = _values(case), torch.tensor(case["weight_zero"])
    x, half = values["x"].long(), 2**bits // 2
    rows = (x.sum(1, keepdim=True) + half) % 2**bits - half
    out = (x @ values["weight"].long() - rows * zeros) * _MULTIPLIERS["weight zeros"]
    return _numbers(torch.round(out).clamp(-128, 127))


_WRAPS = {
    "sums of bytes": (8, "your sums are int8 and wrap around beyond 127"),
    "large sums": (16, "your sums have 16 bits and wrap around beyond 32767"),
}
_SAYS = {
    "weight zeros": (
        "your code does not subtract the weights' zero points",
        "multiply each zero point by the sum of a row of x, which is known only when x is known",
    ),
    "offset": (
        "your code does not add the offset before scaling",
        "add the offset to the sum, multiply, and only then add the output's zero point",
    ),
    "out zero": (
        "your code does not add the output's zero point at the end",
        "scale the sums, then add the zero point: it counts steps of the output's grid",
    ),
    "rounding": (
        "your code does not round the outputs to the nearest integer",
        "round before you convert: .to(torch.int8) drops the digits after the decimal point",
    ),
    "ends": ("your code does not clamp the outputs to -128 … 127", "clamp the outputs before you convert them"),
    "relu": (
        "your relu is missing, or cuts at the wrong integer",
        "raise every output to at least the integer that stands for 0",
    ),
}
