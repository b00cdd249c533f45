"""Whether two functions compute the same: their results are compared before their times are."""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from edl_labs.errors import EdlError, UsageError

_TOLERANCE = {
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
            f"equal={equal!r}", why="it says how outputs are compared", next="give a function of two, or False"
        )
    judge = equal if callable(equal) else outputs_equal
    (first, call), *others = calls.items()
    with same_random_numbers() as again:
        expected = call()
        for name, other in others:
            again()
            actual = other()
            if _agree(judge, expected, actual):
                continue
            again()
            if not _agree(judge, expected, call()):
                return f"not compared: {first} gives another result each time"
            raise _different(first, name, expected, actual)
    return "equal"


def outputs_equal(expected: Any, actual: Any) -> bool:
    """Whether two results are equal: containers item by item, floats and arrays within the tolerance of their dtype.

    >>> outputs_equal([1.0, {"a": 2}], [1.0 + 1e-12, {"a": 2}]), outputs_equal((1,), (2,))
    (True, False)
    """
    if _is_array(expected) or _is_array(actual):
        return _is_array(expected) and _is_array(actual) and _arrays_equal(expected, actual)
    if isinstance(expected, dict):
        return (
            isinstance(actual, dict)
            and expected.keys() == actual.keys()
            and all(outputs_equal(expected[key], actual[key]) for key in expected)
        )
    if isinstance(expected, (list, tuple)):
        same = isinstance(actual, (list, tuple)) and len(expected) == len(actual)
        return same and all(outputs_equal(a, b) for a, b in zip(expected, actual, strict=True))
    if isinstance(expected, float) and isinstance(actual, (int, float)):
        return math.isclose(expected, actual, rel_tol=1e-9, abs_tol=1e-12) or (
            expected != expected and actual != actual
        )
    if type(expected).__eq__ is object.__eq__:
        return type(expected) is type(actual)  # no notion of equality of its own, a module or a generator for instance
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


def _agree(judge: Callable[[Any, Any], Any], expected: Any, actual: Any) -> bool:
    return bool(judge(expected, actual))


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


def _arrays_equal(expected: Any, actual: Any) -> bool:
    if tuple(expected.shape) != tuple(actual.shape) or str(expected.dtype) != str(actual.dtype):
        return False
    tolerance = _TOLERANCE.get(str(expected.dtype).rpartition(".")[2], 0.0)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(expected, torch.Tensor):
        scale = float(expected.detach().abs().max()) if tolerance and expected.numel() else 0.0
        other = actual.to(expected.device) if isinstance(actual, torch.Tensor) else torch.as_tensor(actual)
        if not tolerance:
            return bool(torch.equal(expected, other))
        return bool(torch.allclose(expected, other, rtol=tolerance, atol=tolerance * scale, equal_nan=True))
    import numpy as np

    if not tolerance:
        return bool(np.array_equal(expected, actual))
    scale = float(np.max(np.abs(expected), initial=0.0))
    return bool(np.allclose(expected, actual, rtol=tolerance, atol=tolerance * scale, equal_nan=True))


def _different(first: str, name: str, expected: Any, actual: Any) -> DifferentOutputs:
    return DifferentOutputs(
        f"{name} and {first} give different results",
        why=f"{_short(actual)} instead of {_short(expected)}",
        next="mend the one that is wrong; or say with equal= what counts as equal, or equal=False for times alone",
    )


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else text[:78] + " …"
