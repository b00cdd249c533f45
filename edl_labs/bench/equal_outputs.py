"""Whether two functions compute the same: their results are compared before their times are."""

from __future__ import annotations

import cmath
import random
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any

from edl_labs.errors import EdlError, UsageError

_TOLERANCE = {
    "float128": 1e-9,
    "complex256": 1e-9,
    "float64": 1e-9,
    "complex128": 1e-9,
    "float32": 1e-4,
    "complex64": 1e-4,
    "float16": 1e-2,
    "bfloat16": 5e-2,
}


class DifferentOutputs(EdlError):
    """Functions that were to be compared compute different results: comparing their times would say nothing."""


def compare_outputs(calls: dict[str, Callable[[], Any]], equal: Any) -> str:
    """How the outputs of `calls` were compared, in words; DifferentOutputs when they differ from those of the first.

    `equal` is None (nested numbers and arrays within a tolerance of their dtype), a function of two results, or False.
    Each call sees the same random numbers. A function whose own result changes from call to call is not compared.
    """
    if equal is False:
        return "not compared (equal=False)"
    if equal is not None and not callable(equal):
        raise UsageError(
            f"equal= cannot be {equal!r}",
            why="equal= defines how outputs are compared",
            next="pass a function of two results, or False",
        )
    judge = equal if callable(equal) else outputs_equal
    (first, call), *others = calls.items()
    told = True
    with same_random_numbers() as again:
        expected = call()
        for name, other in others:
            again()
            actual = other()
            same = _verdict(judge, expected, actual)
            if same is not False:
                told = told and same is True
                continue
            again()
            if _verdict(judge, expected, call()) is False:
                return f"not compared: {first} returns a different result each time"
            raise _different(first, name, expected, actual)
    return "equal" if told else "not compared: these results define no equality (you can pass one as equal=)"


def outputs_equal(expected: Any, actual: Any) -> bool | None:
    """Whether two results are equal: containers item by item, floats and arrays within the tolerance of their dtype.

    A value of no dimension is a number, whichever library made it. None where nothing differs but something has no
    equality: a generator or another iterator, an object that is only equal to itself.

    >>> outputs_equal([1.0, {"a": 2}], [1.0 + 1e-12, {"a": 2}]), outputs_equal((1,), (2,))
    (True, False)
    """
    if expected is actual:
        return True
    if _is_array(expected) and _is_array(actual) and _same_type(expected, actual):
        return _arrays_equal(expected, actual)
    tolerance = max(_tolerance(expected), _tolerance(actual))
    expected, actual = _scalar(expected), _scalar(actual)
    if _is_array(expected) or _is_array(actual):
        return False
    if isinstance(expected, dict):
        if not isinstance(actual, dict) or expected.keys() != actual.keys():
            return False
        return _all(outputs_equal(expected[key], actual[key]) for key in expected)
    if isinstance(expected, (list, tuple)):
        if not isinstance(actual, (list, tuple)) or len(expected) != len(actual):
            return False
        return _all(outputs_equal(a, b) for a, b in zip(expected, actual, strict=True))
    if _is_number(expected) and _is_number(actual):
        return _numbers_equal(expected, actual, tolerance)
    if type(expected).__eq__ is object.__eq__ and not isinstance(expected, (type, Enum)):
        return None if type(expected) is type(actual) else False
    return bool(expected == actual)


@contextmanager
def same_random_numbers() -> Iterator[Callable[[], None]]:
    """Gives a function that sets Python's, numpy's and torch's random numbers back; they are as before afterwards."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    python_state = random.getstate()
    numpy_state = numpy.random.get_state() if numpy is not None else None
    torch_state = torch.random.get_rng_state() if torch is not None else None
    device_states = torch.cuda.get_rng_state_all() if torch is not None and torch.cuda.is_initialized() else None

    def again() -> None:
        random.setstate(python_state)
        if numpy is not None:
            numpy.random.set_state(numpy_state)
        if torch is not None:
            torch.random.set_rng_state(torch_state)
            if device_states is not None:
                torch.cuda.set_rng_state_all(device_states)

    try:
        yield again
    finally:
        again()


def _verdict(judge: Callable[[Any, Any], Any], expected: Any, actual: Any) -> bool | None:
    said = judge(expected, actual)
    return None if said is None and judge is outputs_equal else bool(said)


def _all(parts: Iterable[bool | None]) -> bool | None:
    found = list(parts)
    return False if False in found else None if None in found else True


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


def _same_type(expected: Any, actual: Any) -> bool:
    return tuple(expected.shape) == tuple(actual.shape) and str(expected.dtype) == str(actual.dtype)


def _scalar(value: Any) -> Any:
    return value.item() if _is_array(value) and hasattr(value, "item") and tuple(value.shape) == () else value


def _tolerance(value: Any) -> float:
    if _is_array(value):
        return _TOLERANCE.get(str(value.dtype).rpartition(".")[2], 0.0)
    return 1e-9 if isinstance(value, (float, complex)) else 0.0


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, complex))


def _numbers_equal(expected: Any, actual: Any, tolerance: float) -> bool:
    if not tolerance:
        return bool(expected == actual)
    if cmath.isnan(expected) or cmath.isnan(actual):
        return cmath.isnan(expected) and cmath.isnan(actual)
    return cmath.isclose(expected, actual, rel_tol=tolerance, abs_tol=1e-12)


def _arrays_equal(expected: Any, actual: Any) -> bool:
    tolerance = _tolerance(expected)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(expected, torch.Tensor):
        expected = expected.detach()
        other = actual.to(expected.device) if isinstance(actual, torch.Tensor) else torch.as_tensor(actual)
        if not tolerance:
            return bool(torch.equal(expected, other))
        # An infinity among the values (masked logits) must not widen the tolerance of the others.
        finite = expected[torch.isfinite(expected)]
        scale = float(finite.abs().max()) if finite.numel() else 0.0
        return bool(torch.allclose(expected, other, rtol=tolerance, atol=tolerance * scale, equal_nan=True))
    import numpy as np

    if not tolerance:
        return bool(np.array_equal(expected, actual))
    values = np.asarray(expected)
    scale = float(np.max(np.abs(values[np.isfinite(values)]), initial=0.0))
    return bool(np.allclose(values, actual, rtol=tolerance, atol=tolerance * scale, equal_nan=True))


def _different(first: str, name: str, expected: Any, actual: Any) -> DifferentOutputs:
    return DifferentOutputs(
        f"{name} and {first} return different results",
        why=f"got {_short(actual)} instead of {_short(expected)}",
        next="fix the wrong function, define equality with equal=, or pass equal=False to compare only times",
    )


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else text[:78] + " …"
