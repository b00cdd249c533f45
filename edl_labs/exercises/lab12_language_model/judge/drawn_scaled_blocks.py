"""The cases of block_scales: blocks of many sizes whose elements hang on no rounding, and known mistakes."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source
from edl_labs.exercises.slip_digests import digest
from edl_labs.numerics import E2M1FN, E4M3FN

_CLEAR = 1e-5  # relatively: how far scales and elements are from where they round the other way; fp32 errs by 1e-7
_TRIES = 2000  # one draw in two is clear
# Rows and columns: whole blocks, a ragged one, fewer values than a block; and one block's power of two.
_ZEROS, _TINY = -999, -126  # it is 0, or its exponent is below the smallest
_SIZES = ((2, 96, _ZEROS), (3, 40, _ZEROS), (2, 21, None), (3, 64, _TINY))
_PLACES = 1024  # values are n / 1024 of a power of two, exact in fp32
# The largest of 1024 at which a block's amax lies: on a power of two, at 448 scales, below and above it.
_AMAX = {"power": (1024, 1025), "at_448": (1792, 1793), "below": (1100, 1700), "above": (1830, 2000)}
# That of the largest block is 2688 times 1, 3, 5 or 7 and a power of two: then the tensor's scale has three bits, and
# all products with it are exact in fp32.
_LARGEST = (1344, 2016, 1680, 1176)


@case_source("block_scales")
def blocks(rng: Any) -> list[Case]:
    return [_case(rng, *size) for size in _SIZES]


def _case(rng: Any, rows: int, columns: int, odd: int | None) -> Case:
    for _ in range(_TRIES):
        x = _values(rng, rows, columns, odd)
        of_tensor, scales = _nvfp4_scales(x)
        if _is_clear(x, of_tensor, scales):
            break
    else:
        raise AssertionError("every tensor hangs on a rounding; draw others")
    exponents = _exponents(x)
    up = rng.random(exponents.shape) < 0.5
    given = {
        "x": x.tolist(),
        "exponents": (exponents + up * _is_above(x, exponents)).astype(int).tolist(),
        "tensor_scale": of_tensor,
        "block_scales": scales.tolist(),
    }
    return Case(given=given, hidden={"slips": _slips(x, given)})


def _values(rng: Any, rows: int, columns: int, odd: int | None) -> Any:
    """Rows of blocks, in any order: one with the tensor's amax, and of the others at least one of each kind."""
    import numpy as np

    count = -(-columns // 32)
    x = np.zeros((rows, 32 * count))
    # Two blocks alone are one in which nothing saturates, and one in which something does.
    kinds = iter([*rng.permutation([*_AMAX]), *rng.choice([*_AMAX], rows * count)] if odd else ["above"])
    for row, block in np.ndindex(rows, count):
        power, amax = int(rng.integers(-6, 6)), 0
        if (row, block) == (0, 0):
            power, amax = 6, int(rng.choice(_LARGEST if odd else _LARGEST[::2]))
        elif (row, block) == (0, count - 1) and odd:
            power = odd
        elif (row, block) == (rows - 1, 0) and odd:
            power = -13  # its scale in NVFP4 would be subnormal in e4m3
        amax = amax or int(rng.integers(*_AMAX[next(kinds) if power != odd else "power"]))
        size = min(32, columns - 32 * block)
        x[row, 32 * block :][:32] = np.ldexp(_block(rng, amax, size) / _PLACES, power) * (power != _ZEROS)
    return rng.permutation(np.float32(x[:, :columns]).astype(float))


def _block(rng: Any, amax: int, size: int) -> Any:
    """32 whole numbers, of which one half is smaller and a negative one among the first `size` is the largest."""
    drawn = rng.integers(1 - amax, amax, size=32)
    drawn[16 * int(rng.integers(2)) :][:16] //= int(rng.integers(2, 6))
    drawn[int(rng.integers(size))] = -amax
    drawn[drawn > amax / 2] //= 2
    return drawn


def _is_clear(x: Any, of_tensor: float, scales: Any) -> bool:
    import numpy as np

    elements = x / (of_tensor * _over(scales, x, 16))
    return all(
        np.array_equal(fmt.round(values * (1 - _CLEAR), saturate=True), fmt.round(values * (1 + _CLEAR), saturate=True))
        for fmt, values in ((E4M3FN, _amax(x, 16) / 6 / of_tensor), (E2M1FN, elements))
    )


def _amax(x: Any, size: int, *, signed: bool = False) -> Any:
    import numpy as np

    padded = np.pad(x, ((0, 0), (0, -x.shape[1] % size))).reshape(len(x), -1, size)
    return (padded if signed else np.abs(padded)).max(axis=2)


def _over(scales: Any, x: Any, size: int) -> Any:
    return scales.repeat(size, axis=1)[:, : x.shape[1]]


def _power(amax: Any, rounding: Any = None) -> Any:
    import numpy as np

    found = (rounding or np.floor)(np.log2(np.where(amax > 0, amax, 1.0)))
    return np.where(amax > 0, found, -np.inf)


def _exponents(x: Any) -> Any:
    return (_power(_amax(x, 32)) - 8).clip(-127)


def _is_above(x: Any, exponents: Any) -> Any:
    return _amax(x, 32) > 448 * 2.0**exponents


def _mx(x: Any, exponents: Any) -> Any:
    scale = 2.0 ** _over(exponents, x, 32)
    return E4M3FN.round(x / scale, saturate=True) * scale


def _nvfp4_scales(x: Any) -> tuple[float, Any]:
    import numpy as np

    of_tensor = float(np.float32(abs(x).max() / 2688))
    return of_tensor, E4M3FN.round((_amax(x, 16) / 6 / of_tensor).clip(2.0**-6))


def _slips(x: Any, given: Any) -> dict[str, dict[str, str]]:
    """Digests of what each known mistake gives, by part of the evidence."""
    import numpy as np

    right = {"saturating": _exponents(x)}
    right["unsaturated"] = right["saturating"] + _is_above(x, right["saturating"])
    found = {
        "saturating": {**_exponent_slips(x), "other_rule": right["unsaturated"]},
        "unsaturated": {**_unsaturated_slips(x, right["saturating"]), "same_rule": right["saturating"]},
        "mx": _mx_slips(x, np.array(given["exponents"], dtype=float)),
        "tensor": {"without_448": abs(x).max() / 6, "without_6": abs(x).max() / 448, "signed": x.max() / 2688},
        "scales": _scale_slips(x, given["tensor_scale"]),
        "nvfp4": _nvfp4_slips(x, given["tensor_scale"], np.array(given["block_scales"])),
    }
    return {
        part: {name: digest(float(one) for one in np.asarray(value).reshape(-1)) for name, value in some.items()}
        for part, some in found.items()
    }


def _exponent_slips(x: Any) -> dict[str, Any]:
    import numpy as np

    amax = _amax(x, 32)
    powers = {
        "of_448": _power(amax / 448),
        "no_offset": _power(amax),
        "rounded_up": _power(amax, np.ceil) - 8,
        "nearest": _power(amax, np.rint) - 8,
        "of_row": np.broadcast_to(_power(amax.max(axis=1, keepdims=True)) - 8, amax.shape),
        "signed": _power(_amax(x, 32, signed=True)) - 8,
    }
    return {name: value.clip(-127) for name, value in powers.items()}


def _unsaturated_slips(x: Any, saturating: Any) -> dict[str, Any]:
    amax = _amax(x, 32)
    return {
        "always_one_more": (_power(amax) - 7).clip(-127),
        "one_more_at_448": saturating + (amax >= 448 * 2.0**saturating),
    }


def _mx_slips(x: Any, exponents: Any) -> dict[str, Any]:
    first = exponents[:, :1].repeat(exponents.shape[1], axis=1)
    scale = 2.0 ** _over(exponents, x, 32)
    return {
        "mx_stored": _mx(x, exponents) / scale,
        "mx_first_block": _mx(x, first),
    }


def _scale_slips(x: Any, of_tensor: float) -> dict[str, Any]:
    amax = _amax(x, 16)
    return {
        "by_448": E4M3FN.round((amax / 448 / of_tensor).clip(2.0**-6)),
        "absolute": E4M3FN.round((amax / 6).clip(2.0**-6), saturate=True),
        "below_smallest": E4M3FN.round(amax / 6 / of_tensor),
        "signed": E4M3FN.round((_amax(x, 16, signed=True) / 6 / of_tensor).clip(2.0**-6)),
    }


def _nvfp4_slips(x: Any, of_tensor: float, scales: Any) -> dict[str, Any]:
    over = _over(scales, x, 16)
    first = of_tensor * scales[:, :1]
    elements = E2M1FN.round(x / (over * of_tensor), saturate=True)
    return {
        "fp4_stored": elements,
        "fp4_first_block": E2M1FN.round(x / first, saturate=True) * first,
        "without_tensor": E2M1FN.round(x / over, saturate=True) * over,
    }
