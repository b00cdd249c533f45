"""smooth_outliers: SmoothQuant's scales, int8 rows of activations and weights, their product, and the folded norm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from edl_labs.checks import Exercise, close, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.lab12_language_model.plain_tables import have_one_shape, plain_table, shapes

_SAME = 2e-6  # relatively: a few roundings of fp32, in any order
_CALLED = {
    "scales": "smoothing_scales",
    "integers": "int8_rows (the integers)",
    "row_scales": "int8_rows (the scales)",
    "product": "w8a8_product",
    "norm_weight": "folded (the norm's weight)",
    "norm_bias": "folded (the norm's bias)",
    "weight": "folded (the linear weight)",
}
_NEXT = {
    "scales": "for this column, compute the largest magnitudes in x and in the weight, then both powers",
    "integers": "divide this value by its row's scale with pencil and paper, then round",
    "row_scales": "divide the row's largest magnitude by 127, and use 1 for a row of zeros",
    "product": "add up the products of integers in 32 bits, then multiply by both scales",
    "norm_weight": "which output of the norm must become smaller, and by which factor?",
    "norm_bias": "divide the bias as well: it is a part of the norm's output",
    "weight": "in column j of the weight, undo the division of channel j",
}


@exercise("smooth_outliers")
class SmoothOutliers(Exercise):
    """`smoothing_scales`, `int8_rows`, `w8a8_product` and `folded`, each with tensors that the judge drew."""

    answers = "all"

    returns: ClassVar[Mapping[str, Any]] = {"int8_rows": tuple[Any, Any], "folded": tuple[Any, Any, Any]}

    def probe(self, student: Any, given: Any) -> Any:
        drawn = _tensors(given)
        integers, row_scales = student.int8_rows(drawn["table"])
        folded = [_tensors(given)[name] for name in _FOLDED]
        student.folded(*folded)
        norm_weight, norm_bias, weight = student.folded(*folded)  # a second call shows whether the first modified them
        parts = {
            "scales": student.smoothing_scales(drawn["x"], drawn["weight"], given["alpha"]),
            "integers": integers,
            "row_scales": row_scales,
            "product": student.w8a8_product(*(drawn[name] for name in _FACTORS)),
            "norm_weight": norm_weight,
            "norm_bias": norm_bias,
            "weight": weight,
        }
        return {"parts": {name: plain_table(value) for name, value in parts.items()}, "type": _type(integers)}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        for name, called in _CALLED.items():
            mine, right = got["parts"][name], want["parts"][name]
            if not have_one_shape(mine, right):
                raise Wrong(f"Got the wrong shape from {called}.", why=shapes(mine, right), next=_NEXT[name])
            atol = _SAME * max(map(abs, right["values"])) if name == "product" else 0.0
            pairs = zip(mine["values"], right["values"], strict=True)
            at = next((i for i, pair in enumerate(pairs) if not close(*pair, rtol=_SAME, atol=atol)), None)
            if at is not None:
                found, wanted = mine["values"][at], right["values"][at]
                seen = f"number {at}, counted row by row from 0, is {found:.6g}, expected {wanted:.6g}"
                raise Wrong(
                    f"Got a wrong number from {called}.", why=f"{seen}{_known_of(case, name, at)}", next=_NEXT[name]
                )
        if got["type"] != want["type"]:
            why = f"got {got['type']}, expected {want['type']}"
            raise Wrong("`int8_rows` returns integers of the wrong type.", why=why, next="end with .to(torch.int8)")

    def student_inputs(self, case: Any) -> Any:
        """Tensors and alpha by the parameters' names; `factors` are what `w8a8_product` gets."""
        drawn = _tensors(case)
        factors = tuple(drawn.pop(name) for name in _FACTORS)
        return {**drawn, "alpha": case["alpha"], "factors": factors}

    def format_case(self, case: Any) -> str:
        """Sizes, alpha, and the largest magnitude of each channel."""
        largest = ", ".join(f"{max(map(abs, column)):.4g}" for column in zip(*case["x"], strict=True))
        sizes = f"x {len(case['x'])} × {len(case['x'][0])}, alpha {case['alpha']:g}"
        return f"{sizes}; largest magnitudes of x by channel: {largest}"

    def format_answer(self, case: Any, got: Any) -> str:
        """The beginning of each part."""
        return "; ".join(f"{name} begins with {table['values'][:3]}" for name, table in got["parts"].items())


_FACTORS = ("left", "left_scales", "right", "right_scales")
_FOLDED = ("norm_weight", "norm_bias", "weight", "channel_scales")


def _tensors(given: Any) -> dict[str, Any]:
    import torch

    floats = ("x", "table", "left_scales", "right_scales", *_FOLDED)
    integers = {name: torch.tensor(given[name], dtype=torch.int8) for name in ("left", "right")}
    return {name: torch.tensor(given[name]) for name in floats} | integers


def _type(value: Any) -> str:
    return str(getattr(value, "dtype", type(value).__name__)).removeprefix("torch.")


def _known_of(case: Any, name: str, at: int) -> str:
    """The numbers from which this one follows."""
    if name == "scales":
        most = [max(abs(row[at]) for row in case[table]) for table in ("x", "weight")]
        return f"; the largest magnitudes of column {at} are {most[0]:g} in x and {most[1]:g} in the weight"
    if name == "row_scales":
        return f"; the row's largest magnitude is {max(map(abs, case['table'][at])):g}"
    if name == "integers":
        row = case["table"][at // len(case["table"][0])]
        return f"; the value is {row[at % len(row)]:g}, and the largest magnitude of its row is {max(map(abs, row)):g}"
    return ""
