"""The border between a student's answers and everything that reads them: the plain kind of an unusual value.

Read next to the student's code, where anything may be evaluated. Subclasses are read by their base's own slots, so that
what they override is never called. docs/grading.md has the table of what passes for what.
"""

from __future__ import annotations

import array
import dataclasses
import sys
from collections import UserString
from collections.abc import ItemsView, Iterator, KeysView, Mapping, Sequence, ValuesView
from itertools import islice
from operator import is_
from typing import Any

_BASES = (
    (str, str.__str__),
    (int, int.__int__),
    (float, float.__float__),
    (list, list.copy),
    (tuple, lambda value: tuple.__getitem__(value, slice(None))),
    (dict, lambda value: dict(dict.items(value))),
)
_SCALARS = frozenset({type(None), bool, int, float, str})
_READ_ONCE = (Iterator, KeysView, ValuesView, ItemsView)
_NOT_LISTS = (bytes, bytearray, memoryview)
_LARGEST = 1 << 1024  # the exponents of a double: larger whole numbers do not travel
_MOST_ITEMS = 1_000_000  # of a sequence: as many as evidence may have parts
_MOST_DEPTH = 8  # of an answer; the deepest of the labs has 4 levels


def plain_form(value: Any, *, most: int) -> Any:
    """`value` as exactly a str, int, float, list, dict, numpy array or tensor; `value` itself where it is none of them.

    Lazy sequences are evaluated, `most` items of them at most.
    """
    form = _unwrapped(value, most=most)
    if form is not value:
        return form
    if isinstance(value, _READ_ONCE):
        return list(islice(iter(value), most))
    return fields_of(_of_array(_of_torch(value)))


def unboxed(value: Any, *, depth: int = _MOST_DEPTH) -> Any:
    """`value` with plain lists, tuples, dicts, text and numbers for all that acts as one of them, at any depth.

    Iterators are left unread; arrays, tensors, and what the library itself makes, are left as they are. What is plain
    already comes back itself, not a copy.
    """
    kind = type(value)
    if kind in _SCALARS or depth == 0:
        return value
    if kind is list or kind is tuple:
        if _SCALARS.issuperset(map(type, value)):
            return value
        items = [unboxed(item, depth=depth - 1) for item in value]
        return value if all(map(is_, items, value)) else kind(items)
    if kind is dict:
        pairs = [(unboxed(key, depth=depth - 1), unboxed(item, depth=depth - 1)) for key, item in value.items()]
        same = all(key is own and item is value[own] for (key, item), own in zip(pairs, value, strict=True))
        return value if same else dict(pairs)
    if kind.__module__.startswith("edl_labs."):
        return value
    form = _unwrapped(value, most=_MOST_ITEMS)
    return value if form is value else unboxed(form, depth=depth - 1)


def whole(value: Any) -> Any:
    """Whole floats as ints, in a list or dict too, where an answer that goes on as an argument counts things."""
    if type(value) is dict:
        return {key: whole(item) for key, item in value.items()}
    if type(value) in (list, tuple):  # a named tuple stays: the library's own objects are some
        return [whole(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def fields_of(value: Any) -> Any:
    """A dataclass of the student's as a dict of its fields; what the library made is itself."""
    if isinstance(value, type) or not dataclasses.is_dataclass(value) or type(value).__module__.startswith("edl_labs."):
        return value
    return {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}


def _unwrapped(value: Any, *, most: int) -> Any:
    """A subclass as its base, and what is a sequence, a mapping, a text or a number by its protocol as that."""
    for base, read in _BASES:
        if issubclass(type(value), base):
            return read(value)
    if type(value).__module__.startswith("edl_labs."):  # a case is a mapping, and nothing may send it whole
        return value
    if isinstance(value, Mapping):
        return dict(islice(value.items(), most))
    if isinstance(value, (Sequence, array.array)) and not isinstance(value, _NOT_LISTS):
        return str(value) if isinstance(value, UserString) else list(islice(iter(value), most))
    return _rational(_of_numpy(value))


def _rational(value: Any) -> Any:
    """A Fraction or Decimal as a number: an int where it is whole, but for zero, which may have a sign."""
    named = (("fractions", "Fraction"), ("decimal", "Decimal"))
    if not isinstance(value, tuple(getattr(sys.modules[of], name) for of, name in named if of in sys.modules)):
        return value
    number: Any = value
    if not getattr(number, "is_finite", lambda: True)():
        return float("nan") if number.is_nan() else float(number)
    if abs(number) >= _LARGEST:
        return float("inf") if number > 0 else float("-inf")
    return int(number) if number and number == int(number) else float(number)


def _of_numpy(value: Any) -> Any:
    """A number of numpy's as Python's."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, numpy.generic):
        return value
    return float(value) if value.dtype.kind == "f" else value.item() if value.dtype.kind in "biuc" else value


def _of_array(value: Any) -> Any:
    """A subclass of an array as the array that it is; one of text or of objects as a list."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, numpy.ndarray):
        return value
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
