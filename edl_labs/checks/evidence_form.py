"""The form of evidence, and how a case is shown to a student."""

from __future__ import annotations

import pprint
from collections.abc import Callable
from typing import Any

from edl_labs.units import counted

MAX_SHOWN = 1500  # characters: about half a screen


def difference(got: Any, want: Any, where: str = "it") -> str:
    """How the form of `got` differs from that of `want`, in words; empty when it does not.

    Kinds must match (an int passes for a float), dicts must have the same keys, arrays the same number of dimensions.
    List lengths may differ: how many is for `compare` to say.

    >>> difference({"a": 1}, {"a": 2.0}), difference([1, "x"], [2])
    ('', 'it[1] is text; a number is expected')
    """
    if _kind(got) != _kind(want):
        return f"{where} is {_kind(got)}; {_kind(want)} is expected"
    if isinstance(want, dict):
        return _dict_difference(got, want, where)
    if isinstance(want, list) and want:
        return _list_difference(got, want, where)
    if _kind(want) in ("an array", "a tensor") and got.ndim != want.ndim:
        return f"{where} has {counted(got.ndim, 'dimension')}, not {want.ndim}"
    return ""


def _dict_difference(got: dict[str, Any], want: dict[str, Any], where: str) -> str:
    for key in want:
        if key not in got:
            return f"{where} has no {key!r}"
    extra = sorted(set(got) - set(want))
    if extra:
        return f"{where} has {extra[0]!r}, which is not asked for"
    for key, value in want.items():
        found = difference(got[key], value, key if where == "it" else f"{where}[{key!r}]")
        if found:
            return found
    return ""


def _list_difference(got: list[Any], want: list[Any], where: str) -> str:
    uniform = len({_kind(item) for item in want}) == 1
    for i, item in enumerate(got):
        if i >= len(want) and not uniform:
            break
        found = difference(item, want[min(i, len(want) - 1)], f"{where}[{i}]")
        if found:
            return found
    return ""


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
