"""Calls to a reference that lives in a process of the judge: what travels is plain data, never code or text of its own.

Beside the student's code a `RemoteFunction` takes the place of a function; the judge's process answers its calls with
`answered`. Tuples, sets and dicts with any keys arrive as what they were.
"""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable, Mapping
from typing import Any

from edl_labs.checks import plain_data
from edl_labs.errors import PlainDataError

CALL_BYTES = 8 << 20  # one request or its answer; the largest argument of the labs, a step's timeline, has 50 kB
_ROW = 256  # calls in one request: a hundredth of the time of so many requests
_SMALL = 40  # leaves of arguments that are looked through for a row; timelines and batches have more
_HEAD = 8  # bytes of a message's length
_RAISED = "the right version raises this for these arguments"
_STOPPED = "the right version that stands in here answers no more calls"
# NotImplementedError would look like a stub, and what ends a process is no answer.
_TOLD = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


class RemoteFunction:
    """A function of the judge's reference. What it raises has the reference's type, if that is a common one."""

    def __init__(self, name: str, channel: Channel) -> None:
        self.__name__ = self.__qualname__ = name
        self._channel = channel

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._channel.call(self.__name__, arguments, named)


class Channel:
    """The kernel's end: requests are written to a descriptor, and each waits for its answer.

    A loop over a range asks ahead: when two calls in a row differed from the one before by the same step of one whole
    number, the next calls of that row travel in one request, which costs no more than one call.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._number = descriptor, 0
        self._last: list[Any] = []
        self._step: tuple[int, int] | None = None
        self._goes_on = False
        self._row = 1
        self._ready: dict[bytes, Any] = {}

    def call(self, name: str, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        """What the reference's function `name` returns, or raises."""
        given = [name, _packed([list(arguments), dict(named)])]
        try:
            key = plain_data.encode(given, max_bytes=CALL_BYTES)
        except PlainDataError as error:
            raise TypeError(f"{name} takes plain data here: {error.what}") from None
        self._look_at(given)
        if key not in self._ready:
            row = self._foreseen(given)
            self._ready = dict(zip([key, *map(plain_data.encode, row)], self._asked([given, *row]), strict=False))
        result = self._ready[key]
        if "value" in result:
            return _unpacked(result["value"])
        raised = getattr(builtins, str(result.get("raised", "")), None)
        if isinstance(raised, type) and issubclass(raised, _TOLD):
            raise raised(_RAISED)
        raise RuntimeError(_STOPPED)

    def _look_at(self, given: list[Any]) -> None:
        """Whether this call differs from the last one by a step, and by the same one as that from the one before."""
        before, now = _leaves(self._last), _leaves(given)
        self._last = given
        changed = [i for i, pair in enumerate(zip(before, now, strict=False)) if pair[0] is not pair[1]]
        changed = [i for i in changed if type(before[i]) is not type(now[i]) or bool(before[i] != now[i])]
        step = None
        if len(before) == len(now) <= _SMALL and len(changed) == 1 and type(now[changed[0]]) is int:
            step = (changed[0], now[changed[0]] - before[changed[0]])
        self._goes_on = step is not None and step == self._step
        self._step = step

    def _foreseen(self, given: list[Any]) -> list[list[Any]]:
        """The calls that come next if the last ones go on as they began: twice as many each time."""
        if not self._goes_on or self._step is None:
            self._row = 1
            return []
        self._row = min(2 * self._row, _ROW)
        at, by = self._step
        now = _leaves(given)[at]
        return [_with_leaf(given, at, now + by * ahead) for ahead in range(1, self._row)]

    def _asked(self, calls: list[list[Any]]) -> list[Any]:
        self._number += 1
        request = plain_data.encode({"number": self._number, "calls": calls})
        self._write(len(request).to_bytes(_HEAD, "little") + request)
        answer = self._answer()
        while answer.get("number") != self._number:  # an interrupted call's answer is still on its way
            answer = self._answer()
        return [*answer["results"], *[{}] * (len(calls) - len(answer["results"]))]

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[os.write(self._descriptor, left) :]

    def _answer(self) -> dict[str, Any]:
        size = int.from_bytes(self._exactly(_HEAD), "little")
        return dict(plain_data.decode(self._exactly(size), max_bytes=CALL_BYTES))

    def _exactly(self, size: int) -> bytes:
        parts: list[bytes] = []
        while size > 0:
            piece = os.read(self._descriptor, min(size, 1 << 20))
            if not piece:
                raise RuntimeError(_STOPPED)
            parts.append(piece)
            size -= len(piece)
        return b"".join(parts)


def answered(request: bytes, functions: Mapping[str, Callable[..., Any]]) -> bytes:
    """The judge's answer to a request of a `Channel`. It never raises: what goes wrong is a call without a result."""
    try:
        asked = plain_data.decode(request, max_bytes=CALL_BYTES)
        results = [_result(name, given, functions) for name, given in asked["calls"]]
        return plain_data.encode({"number": int(asked["number"]), "results": results}, max_bytes=CALL_BYTES)
    except Exception:
        return stopped(request)


def stopped(request: bytes) -> bytes:
    """The answer to a request that is not carried out."""
    try:
        number = int(plain_data.decode(request, max_bytes=CALL_BYTES)["number"])
    except Exception:
        number = 0
    return plain_data.encode({"number": number, "results": []})


def _result(name: str, given: Any, functions: Mapping[str, Callable[..., Any]]) -> dict[str, Any]:
    """The result of one call as it travels; empty where there is none that could."""
    try:
        arguments, named = _unpacked(given)
        value = _packed(functions[name](*arguments, **named))
        plain_data.encode(value, max_bytes=CALL_BYTES)
        return {"value": value}
    except PlainDataError:
        return {}
    except _TOLD as error:
        common = next(kind for kind in type(error).__mro__ if kind.__module__ == "builtins")
        return {"raised": common.__name__} if common is not NotImplementedError else {}
    except Exception:
        return {}


def _packed(value: Any) -> Any:
    """`value` with tuples, sets and dicts tagged, so that plain data carries them."""
    if isinstance(value, list):
        return [_packed(item) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [_packed(item) for item in value]}
    if isinstance(value, (set, frozenset)):
        return {"set": [_packed(item) for item in value]}
    if isinstance(value, Mapping):
        return {"dict": [[_packed(key), _packed(item)] for key, item in value.items()]}
    return value


def _unpacked(value: Any) -> Any:
    if isinstance(value, list):
        return [_unpacked(item) for item in value]
    if not isinstance(value, dict):
        return value
    ((tag, body),) = value.items()
    items = [_unpacked(item) for item in body]
    return {"tuple": tuple, "set": set, "dict": dict}[tag](items)


def _leaves(value: Any) -> list[Any]:
    """The parts of packed data that have no parts, in order; cut off where there are more than a few."""
    if isinstance(value, dict):
        return _leaves(list(value.values()))
    if not isinstance(value, list):
        return [value]
    found: list[Any] = []
    for item in value:
        found += _leaves(item)
        if len(found) > _SMALL:
            break
    return found


def _with_leaf(value: Any, at: int, leaf: int) -> Any:
    """A copy of packed data with `leaf` in the place `at` of its leaves."""
    places = iter(range(_SMALL + 1))

    def copied(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: copied(item) for key, item in part.items()}
        if isinstance(part, list):
            return [copied(item) for item in part]
        return leaf if next(places) == at else part

    return copied(value)
