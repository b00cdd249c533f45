"""Calls to a reference that lives in a process of the judge: what travels is plain data, never code or text of its own.

In the student's process a `RemoteFunction` replaces a function; the judge's process answers its calls with
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
_HEAD = 8  # bytes of a message's length
_RAISED = "the reference solution raises this for these arguments"
_STOPPED = "the reference solution has reached its limit on calls"
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
    """The kernel's end: requests are written to a descriptor, and each waits for its answer."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._number = descriptor, 0

    def call(self, name: str, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        """What the reference's function `name` returns, or raises."""
        self._number += 1
        call = {"number": self._number, "name": name, "given": _packed([list(arguments), dict(named)])}
        try:
            request = plain_data.encode(call, max_bytes=CALL_BYTES)
        except PlainDataError as error:
            raise TypeError(f"{name} accepts only plain data here: {error.what}") from None
        result = self._asked(request)
        if "value" in result:
            return _unpacked(result["value"])
        raised = getattr(builtins, str(result.get("raised", "")), None)
        if isinstance(raised, type) and issubclass(raised, _TOLD):
            raise raised(_RAISED)
        raise RuntimeError(_STOPPED)

    def _asked(self, request: bytes) -> dict[str, Any]:
        self._write(len(request).to_bytes(_HEAD, "little") + request)
        answer = self._answer()
        while answer.get("number") != self._number:  # an interrupted call's answer is still on its way
            answer = self._answer()
        return dict(answer["result"])

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
        answer = {"number": int(asked["number"]), "result": _result(asked["name"], asked["given"], functions)}
        return plain_data.encode(answer, max_bytes=CALL_BYTES)
    except Exception:
        return stopped(request)


def stopped(request: bytes) -> bytes:
    """The answer to a request that is not carried out."""
    try:
        number = int(plain_data.decode(request, max_bytes=CALL_BYTES)["number"])
    except Exception:
        number = 0
    return plain_data.encode({"number": number, "result": {}})


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
