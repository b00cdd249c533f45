"""The form of evidence, and how a case is shown to a student."""

from __future__ import annotations

import math
import pprint
from collections.abc import Callable, Iterable
from typing import Any

from edl_labs.checks.plain_data import MAX_NODES

MAX_SHOWN = 1500  # characters: about half a screen
_MOST_KEYS = 8  # in a message
_MAX_ANSWER = 500  # characters: some five lines below the case
_EXACT_WHOLE = 1 << 53  # up to here every whole number is a double
_ARRAYS = ("an array", "a tensor")
_AS_THEY_ARE = frozenset({bool, int, float, str})  # lists of one of them, which are long, fit without a look at each


class Misfit(Exception):
    """A value does not have the expected form. Its text says how."""


def fitted(got: Any, want: Any, key: str = "") -> Any:
    """`got` in the form of `want`, where it is right but for its form; Misfit, in words, where it is not.

    An array or tensor without dimensions passes for a number, one with dimensions for a list, a whole float for an
    int, an int for a float. Dicts must have the same keys, arrays the same number of dimensions. List lengths may
    differ: how many is for `compare` to say. docs/grading.md has the table. `key` is that of the dict around it.

    >>> fitted({"a": 1, "n": 3.0}, {"a": 2.0, "n": 4})
    {'a': 1, 'n': 3}
    """
    got = unpacked(got, want)
    if kind_of(got) != kind_of(want):
        raise Misfit(f"{_at(key)}expected {kind_of(want)}, got {kind_of(got)}")
    if isinstance(want, dict):
        return _fitted_dict(got, want)
    if isinstance(want, list) and want:
        return _fitted_list(got, want, key)
    if kind_of(want) in _ARRAYS and got.ndim != want.ndim:
        raise Misfit(f"{_at(key)}expected {kind_of(got)} of shape {_shape(want)}, got shape {_shape(got)}")
    return int(got) if type(want) is int and type(got) is float and _is_whole(got) else got


def plain_lists(got: Any) -> Any:
    """`got` with lists and numbers instead of arrays and tensors, for a `compare` that looks at the form itself."""
    if isinstance(got, dict):
        return {key: plain_lists(value) for key, value in got.items()}
    if isinstance(got, list):
        return [plain_lists(value) for value in got]
    return _listed(got) if kind_of(got) in _ARRAYS else got


def _listed(got: Any) -> Any:
    size = math.prod(got.shape)
    if size > MAX_NODES:
        raise Misfit(
            f"the answer has an array of {size:,} numbers, but at most {MAX_NODES:,} can be compared one by one"
        )
    return got.tolist()


def unpacked(got: Any, want: Any) -> Any:
    """An array or tensor as the number, the bool or the list that is expected; `want` is an example of it."""
    if kind_of(got) not in _ARRAYS:
        return got
    asked = list if got.ndim else (bool, int, float)
    return _listed(got) if isinstance(want, asked) else got


def keys_differ(got: Iterable[Any], want: Iterable[Any]) -> Misfit:
    """What is said of a dict whose keys are not the expected ones."""
    return Misfit(f"expected a dict with {_names(want)}, got {_names(got)}")


def _names(keys: Iterable[Any]) -> str:
    texts = [repr(key) for key in keys]
    shown = f"{', '.join(texts[:_MOST_KEYS])}{', …' if len(texts) > _MOST_KEYS else ''}"
    return f"the {'key' if len(texts) == 1 else 'keys'} {shown}" if texts else "no keys"


def _shape(value: Any) -> tuple[int, ...]:
    return tuple(map(int, value.shape))


def _is_whole(value: float) -> bool:
    return value.is_integer() and abs(value) <= _EXACT_WHOLE


def _at(key: str) -> str:
    """Where in a dict something is. No place in a list: which it is says how evidence was gathered, to no student."""
    return f"for `{key}`, " if key else ""


def _fitted_dict(got: dict[str, Any], want: dict[str, Any]) -> dict[str, Any]:
    if got.keys() != want.keys():
        raise keys_differ(got, want)
    fits = {key: fitted(got[key], want[key], key) for key in want}
    return {key: fits[key] for key in got}


def _fitted_list(got: list[Any], want: list[Any], key: str) -> list[Any]:
    kinds, wanted = set(map(type, got)), set(map(type, want))
    if len(wanted) == 1 and wanted <= _AS_THEY_ARE and kinds <= (wanted | {int} if wanted == {float} else wanted):
        return list(got)
    compared = len(got) if len({kind_of(item) for item in want}) == 1 else min(len(got), len(want))
    fits = [fitted(got[i], want[min(i, len(want) - 1)], key) for i in range(compared)]
    return fits + got[compared:]


def kind_of(value: Any) -> str:
    """What a value is, in words for a student."""
    if value is None:
        return "None"
    if isinstance(value, bool):
        return "True or False"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, str):
        return "text"
    if isinstance(value, (list, tuple)):
        return "a list or a tuple"
    if isinstance(value, dict):
        return "a dict"
    if not hasattr(value, "ndim"):
        return f"an object of type {type(value).__name__}"
    return "an array" if type(value).__module__ == "numpy" else "a tensor"


def yours(format_answer: Callable[[Any, Any], str], case: Any, record: Any) -> str:
    """What the student's code gave for a case, as text that stands below it; empty where there is nothing to read."""
    if not isinstance(record, dict) or "value" not in record:
        return ""
    try:
        text = format_answer(case, record["value"])
    except Exception:  # evidence can be anything; what is wrong with it has been said
        return ""
    return f"yours: {text}" if text else ""


def answer_text(value: Any) -> str:
    """An answer as its student would write it, its floats at seven digits, cut to a few lines.

    >>> answer_text([1 / 3, 4])
    '[0.3333333, 4]'
    """
    text = pprint.pformat(_short(value), compact=True, width=92, sort_dicts=False)
    return text if len(text) <= _MAX_ANSWER else f"{text[:_MAX_ANSWER]} …"


def _short(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.7g}")
    if isinstance(value, list):
        return [_short(item) for item in value]
    return {key: _short(item) for key, item in value.items()} if isinstance(value, dict) else value


def shown(case: Any, format_case: Callable[[Any], str]) -> str:
    """A case's inputs as text, cut to a length that a person reads."""
    try:
        text = format_case(case)
    except Exception:
        text = repr(case)
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 2] + " …"


def case_lines(case: Any) -> str:
    """A case as text: a line for each of its entries."""
    if isinstance(case, dict):
        return "\n".join(f"{key} = {pprint.pformat(value, compact=True, width=100)}" for key, value in case.items())
    return pprint.pformat(case, compact=True, width=100)
