"""The cases of group_int4: weights whose integers hang on no rounding, packed ones of any bytes, and known mistakes."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source
from edl_labs.exercises.slip_digests import digest

_STEPS = 15  # between sixteen integers
_CLEAR = 5e-3  # of a step: how far w / scale is from where it rounds the other way
_TRIES = 20_000  # one draw in ten of the widest groups is clear
# rows, columns, group: whole groups, a ragged last one, an odd number of columns, groups wider than the row
_SIZES = ((3, 32, 8), (4, 21, 8), (2, 27, 16), (3, 10, 16))


@case_source("group_int4")
def weights(rng: Any) -> list[Case]:
    return [_case(rng, *size, shifted=bool(number % 2)) for number, size in enumerate(_SIZES)]


def _case(rng: Any, rows: int, columns: int, group: int, *, shifted: bool) -> Case:
    import numpy as np

    groups = -(-columns // group)
    widths = [min(group, columns - at * group) for at in range(groups)]
    weight = np.concatenate(
        [np.stack([_group(rng, width, shifted=shifted) for _ in range(rows)]) for width in widths], axis=1
    )
    if shifted:
        weight[0, : widths[0]] = _edge_group(rng, widths[0])
    stored = {
        "packed": rng.integers(0, 256, (rows, -(-columns // 2))).tolist(),
        "scale": np.float16(rng.uniform(0.01, 0.2, (rows, groups))).astype(float).tolist(),
        "zero": rng.integers(0, 16, (rows, groups)).tolist(),
    }
    if columns % 2:  # the last high nibble holds nothing
        stored["packed"] = [[*row[:-1], row[-1] & 15] for row in stored["packed"]]
    formats = [[128, 16, 16], [128, 16, 4], [int(rng.choice([32, 64])), int(rng.choice([16, 32])), 8]]
    given = {
        "weight": weight.tolist(),
        "x": np.float32(rng.normal(size=(2, columns))).astype(float).tolist(),
        "group": group,
        "columns": columns,
        "stored": stored,
        "formats": formats,
    }
    return Case(given=given, hidden={"slips": _slips(given)})


def _group(rng: Any, width: int, *, shifted: bool) -> Any:
    """Weights of one group, as fp32 numbers of four decimals; some groups are all above 0, or all below."""
    import numpy as np

    for _ in range(_TRIES):
        level = float(rng.choice([0.0, 0.0, 1.0, -1.0])) if shifted else 0.0
        drawn = np.round(rng.normal(level, 0.3, width) * 10 ** rng.uniform(-0.5, 0.5), 4)
        scale, zero = _grid(drawn)
        places = np.concatenate([drawn / scale, [-min(drawn.min(), 0) / scale]])
        if np.all(np.abs(places - np.floor(places) - 0.5) > _CLEAR) and drawn.any() and zero <= _STEPS:
            return np.float32(drawn).astype(float)
    raise AssertionError("every group of weights hangs on a rounding; draw others")


def _edge_group(rng: Any, width: int) -> Any:
    """Weights whose range is a little over 15 rounded scales: the largest is cut off at 15, and a scale that was not
    rounded gives another integer."""
    import numpy as np

    scale = float(np.float16(2.0 ** -int(rng.integers(3, 6)) * (1 + int(rng.integers(1, 20)) * 2.0**-10)))
    places = np.full(width, 0.2)
    # Both ends round up; their sum, 15.006, is less than half a digit of fp16 above 15.
    places[:3] = [-7.5045, 7.5015, 6.5015]
    return np.float32(places[rng.permutation(width)] * scale).astype(float)


def _grid(values: Any) -> tuple[float, int]:
    """(scale, zero point) of a group that contains 0."""
    import numpy as np

    low, high = min(float(values.min()), 0.0), max(float(values.max()), 0.0)
    scale = float(np.float16((high - low) / _STEPS)) or 1.0
    return scale, int(np.clip(np.rint(-low / scale), 0, _STEPS))


def _slips(given: Any) -> dict[str, dict[str, str]]:
    """Digests of what each known mistake gives, by part of the evidence."""
    import numpy as np

    weight, group = np.array(given["weight"]), given["group"]
    right = _quantized(weight, group)
    scales = {
        "whole_row": _scales(weight, group, _of_row),
        "whole_tensor": _scales(weight, group, lambda weight, row, part: weight),
        "of_sixteen": _scales(weight, group, _of_group, steps=16),
        "largest_alone": _scales(weight, group, _of_group, symmetric=True),
        "without_zero": _scales(weight, group, _of_group, has_zero=False),
    }
    packed = {
        "high_first": _packed(right, high_first=True),
        "rounded_down": _packed(_quantized(weight, group, rounding=np.floor)),
    }
    found = {
        "scale": scales,
        "packed": packed,
        "zero": {"rounded_down": _zeros(weight, group, np.floor)},
        "dequantized": {name: _dequantized(given, name) for name in _READINGS},
    }
    x = np.array(given["x"])
    found["product"] = {name: x @ value.T for name, value in found["dequantized"].items()}
    return {
        part: {name: digest(float(one) for one in np.asarray(value).reshape(-1)) for name, value in some.items()}
        for part, some in found.items()
    }


def _of_group(weight: Any, row: int, part: slice) -> Any:
    return weight[row, part]


def _of_row(weight: Any, row: int, part: slice) -> Any:
    return weight[row]


def _parts(columns: int, group: int) -> list[slice]:
    return [slice(first, min(first + group, columns)) for first in range(0, columns, group)]


def _scales(
    weight: Any, group: int, values: Any, *, steps: int = _STEPS, symmetric: bool = False, has_zero: bool = True
) -> Any:
    import numpy as np

    def scale(of: Any) -> float:
        if symmetric:
            return float(np.float16(2 * np.abs(of).max() / steps))
        low, high = float(of.min()), float(of.max())
        if has_zero:
            low, high = min(low, 0.0), max(high, 0.0)
        return float(np.float16((high - low) / steps))

    parts = _parts(weight.shape[1], group)
    return [[scale(values(weight, row, part)) for part in parts] for row in range(len(weight))]


def _zeros(weight: Any, group: int, rounding: Any) -> Any:
    parts = _parts(weight.shape[1], group)
    grids = [[(weight[row, part], _grid(weight[row, part])[0]) for part in parts] for row in range(len(weight))]
    return [[float(rounding(-min(values.min(), 0) / scale)) for values, scale in row] for row in grids]


def _quantized(weight: Any, group: int, *, rounding: Any = None) -> Any:
    import numpy as np

    codes = np.zeros(weight.shape)
    for row in range(len(weight)):
        for part in _parts(weight.shape[1], group):
            scale, zero = _grid(weight[row, part])
            codes[row, part] = np.clip((rounding or np.rint)(weight[row, part] / scale) + zero, 0, _STEPS)
    return codes


def _packed(codes: Any, *, high_first: bool = False) -> Any:
    import numpy as np

    even = np.pad(codes, ((0, 0), (0, codes.shape[1] % 2)))
    low, high = (even[:, 1::2], even[:, ::2]) if high_first else (even[:, ::2], even[:, 1::2])
    return low + 16 * high


_READINGS = ("high_first", "signed", "no_zero_point", "one_group", "zero_scaled_twice")


def _dequantized(given: Any, slip: str) -> Any:
    """The judge's packed weights as a known mistake reads them."""
    import numpy as np

    packed = np.array(given["stored"]["packed"])
    scale, zero = (np.array(given["stored"][name], dtype=float) for name in ("scale", "zero"))
    low, high = packed & 15, packed >> 4
    pair = (high, low) if slip == "high_first" else (low, high)
    codes = np.stack(pair, axis=-1).reshape(len(packed), -1)[:, : given["columns"]].astype(float)
    if slip == "signed":
        codes = np.where(codes > 7, codes - 16, codes)
    at = np.arange(given["columns"]) // given["group"] * (slip != "one_group")
    if slip == "no_zero_point":
        return codes * scale[:, at]
    if slip == "zero_scaled_twice":
        return codes * scale[:, at] - zero[:, at]
    return (codes - zero[:, at]) * scale[:, at]
