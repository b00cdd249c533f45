"""What a value is at heart: the plain kind behind a subclass, a lazy sequence, or an unusual number or array.

Read beside the student's code, where anything may be evaluated. Subclasses are read by their base's own slots, so that
what they override is never asked. docs/grading.md has the table of what passes for what.
"""

from __future__ import annotations

import array
import sys
from collections import deque
from collections.abc import ItemsView, Iterator, KeysView, ValuesView
from itertools import islice
from typing import Any

_BASES = (
    (str, str.__str__),
    (int, int.__int__),
    (float, float.__float__),
    (list, list.copy),
    (tuple, lambda value: tuple.__getitem__(value, slice(None))),
    (dict, lambda value: dict(dict.items(value))),
)
_LAZY = (Iterator, range, deque, KeysView, ValuesView, ItemsView, array.array)
_WHOLE = 1 << 53  # up to here every whole number is a double


def plain_form(value: Any, *, most: int) -> Any:
    """`value` as exactly a str, int, float, list, dict, numpy array or tensor; `value` itself where it is none of them.

    Lazy sequences are evaluated, `most` items of them at most.
    """
    for base, read in _BASES:
        if issubclass(type(value), base):
            return read(value)
    if isinstance(value, _LAZY):
        return list(islice(iter(value), most))
    return _rational(_of_numpy(_of_torch(value)))


def _rational(value: Any) -> Any:
    """A Fraction or Decimal as a number: an int where it is whole."""
    types = [
        getattr(sys.modules.get(of), name, None) for of, name in (("fractions", "Fraction"), ("decimal", "Decimal"))
    ]
    if type(value) not in types:
        return value
    return int(value) if abs(value) <= _WHOLE and value == int(value) else float(value)


def _of_numpy(value: Any) -> Any:
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, (numpy.generic, numpy.ndarray)):
        return value
    if isinstance(value, numpy.generic):
        return float(value) if value.dtype.kind == "f" else value.item() if value.dtype.kind in "biuc" else value
    base = value if type(value) is numpy.ndarray else numpy.ndarray.view(value, numpy.ndarray)
    if base.dtype.kind in "UO":
        return base.tolist()
    return base.astype(numpy.float64) if base.dtype == numpy.longdouble else base


def _of_torch(value: Any) -> Any:
    """A subclass of a tensor as the tensor that it is; its own `__torch_function__` is not asked."""
    torch = sys.modules.get("torch")
    if torch is None or type(value) is torch.Tensor or not isinstance(value, torch.Tensor):
        return value
    with torch._C.DisableTorchFunctionSubclass():
        return value.detach().as_subclass(torch.Tensor)
