"""The form of evidence, and how a case is shown to a student."""

from __future__ import annotations

import math
import pprint
from collections.abc import Callable
from typing import Any

from edl_labs.checks.plain_data import MAX_NODES
from edl_labs.units import counted

MAX_SHOWN = 1500  # characters: about half a screen
_EXACT_WHOLE = 1 << 53  # up to here every whole number is a double
_ARRAYS = ("an array", "a tensor")


class Misfit(Exception):
    """A value has another form than the one asked for. Its text says how."""


def fitted(got: Any, want: Any, where: str = "it") -> Any:
    """`got` in the form of `want`, where it is right but for its form; Misfit, in words, where it is not.

    An array or tensor without dimensions passes for a number, one with dimensions for a list, a whole float for an
    int, an int for a float. Dicts must have the same keys, arrays the same number of dimensions. List lengths may
    differ: how many is for `compare` to say. docs/grading.md has the table.

    >>> fitted({"a": 1, "n": 3.0}, {"a": 2.0, "n": 4})
    {'a': 1, 'n': 3}
    """
    got = _unpacked(got, want)
    if _kind(got) != _kind(want):
        came = "a list or a tuple" if isinstance(got, list) else _kind(got)
        raise Misfit(f"{where} is {came}; {_kind(want)} is expected")
    if isinstance(want, dict):
        return _fitted_dict(got, want, where)
    if isinstance(want, list) and want:
        return _fitted_list(got, want, where)
    if _kind(want) in _ARRAYS and got.ndim != want.ndim:
        raise Misfit(f"{where} has {counted(got.ndim, 'dimension')}, not {want.ndim}")
    return int(got) if type(want) is int and type(got) is float and _is_whole(got) else got


def plain_lists(got: Any) -> Any:
    """`got` with lists and numbers in place of arrays and tensors, for a `compare` that looks at the form itself."""
    if isinstance(got, dict):
        return {key: plain_lists(value) for key, value in got.items()}
    if isinstance(got, list):
        return [plain_lists(value) for value in got]
    return _listed(got) if _kind(got) in _ARRAYS else got


def _listed(got: Any) -> Any:
    size = math.prod(got.shape)
    if size > MAX_NODES:
        raise Misfit(f"it has an array of {size:,} numbers; at most {MAX_NODES:,} are compared one by one")
    return got.tolist()


def _unpacked(got: Any, want: Any) -> Any:
    """An array or tensor as the number, the bool or the list that is asked for."""
    if _kind(got) not in _ARRAYS:
        return got
    asked = list if got.ndim else (bool, int, float)
    return _listed(got) if isinstance(want, asked) else got


def _is_whole(value: float) -> bool:
    return value.is_integer() and abs(value) <= _EXACT_WHOLE


def _fitted_dict(got: dict[str, Any], want: dict[str, Any], where: str) -> dict[str, Any]:
    for key in want:
        if key not in got:
            raise Misfit(f"{where} has no {key!r}")
    extra = sorted(set(got) - set(want))
    if extra:
        raise Misfit(f"{where} has {extra[0]!r}, which is not asked for")
    fits = {key: fitted(got[key], want[key], key if where == "it" else f"{where}[{key!r}]") for key in want}
    return {key: fits[key] for key in got}


def _fitted_list(got: list[Any], want: list[Any], where: str) -> list[Any]:
    compared = len(got) if len({_kind(item) for item in want}) == 1 else min(len(got), len(want))
    fits = [fitted(got[i], want[min(i, len(want) - 1)], _item(where, i)) for i in range(compared)]
    return fits + got[compared:]


def _item(where: str, place: int) -> str:
    return f"item {place} of it" if where == "it" else f"{where}[{place}]"


def _kind(value: Any) -> str:
    if value is None:
        return "None"
    if isinstance(value, bool):
        return "True or False"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, str):
        return "text"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, dict):
        return "a dict"
    return "an array" if type(value).__module__ == "numpy" else "a tensor"


def shown(case: Any, show: Callable[[Any], str] | None = None) -> str:
    """A case's inputs as text, cut to a length that a person reads."""
    try:
        text = show(case) if show is not None else _lines(case)
    except Exception:
        text = repr(case)
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 2] + " …"


def _lines(case: Any) -> str:
    if isinstance(case, dict):
        return "\n".join(f"{key} = {pprint.pformat(value, compact=True, width=100)}" for key, value in case.items())
    return pprint.pformat(case, compact=True, width=100)
