"""A function in another process: what its caller sees, and what it never sees."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from edl_labs.checks import plain_data
from edl_labs.checks.reference_calls import Channel, RemoteFunction, answered

Function = Callable[..., Any]


class Served:
    """The judge's end of a channel, in a thread, with the requests that came."""

    def __init__(self, **functions: Function) -> None:
        self.requests: list[bytes] = []
        self.functions = functions
        ours, theirs = socket.socketpair()
        self.caller, self.socket = ours, theirs
        self.channel = Channel(ours.fileno())
        threading.Thread(target=self._serve, daemon=True).start()

    def function(self, name: str) -> RemoteFunction:
        return RemoteFunction(name, self.channel)

    def _serve(self) -> None:
        with self.socket.makefile("rb") as incoming:
            while head := incoming.read(8):
                self.requests.append(incoming.read(int.from_bytes(head, "little")))
                answer = answered(self.requests[-1], self.functions)
                self.socket.sendall(len(answer).to_bytes(8, "little") + answer)


def echo(*arguments: Any, **named: Any) -> Any:
    return arguments, named


def secret_raise(kind: Any) -> None:
    raise {"value": ValueError, "key": KeyError, "stub": NotImplementedError, "exit": SystemError}[kind]("the secret")


def square(n: int, *, of: str) -> int:
    return n * n


@pytest.fixture
def served() -> Iterator[Served]:
    made = Served(echo=echo, secret_raise=secret_raise, square=square, opaque=lambda: object())
    yield made
    made.caller.close()


def test_tuples_sets_and_dicts_with_any_keys_arrive_as_what_they_were(served: Served):
    given = ((1, 2.5), [None, "x"], {("a", "b"): {3, 4}, 5: {"6": (7,)}})

    assert (given, {"named": {1: 2}}) == served.function("echo")(*given, named={1: 2})


@pytest.mark.parametrize(
    ("kind", "expected"), [("value", ValueError), ("key", KeyError), ("stub", RuntimeError), ("exit", RuntimeError)]
)
def test_what_the_reference_raises_comes_without_its_words(served: Served, kind: str, expected: type[Exception]):
    with pytest.raises(expected) as raised:
        served.function("secret_raise")(kind)

    assert expected is raised.type
    assert "secret" not in str(raised.value)


def test_what_cannot_travel_stops_the_call_alone(served: Served):
    with pytest.raises(RuntimeError, match="limit on calls"):
        served.function("opaque")()
    with pytest.raises(KeyError):
        served.function("unknown")()
    with pytest.raises(TypeError, match="plain data"):
        served.function("echo")(object())

    assert 9 == served.function("square")(3, of="x")


def test_each_call_is_asked_by_itself(served: Served):
    square_of = served.function("square")

    assert [n * n for n in range(3, 100)] == [square_of(n, of="x") for n in range(3, 100)]
    assert 97 == len(served.requests)


@pytest.mark.parametrize(
    "request_bytes", [b"", b"hello", plain_data.encode(5), plain_data.encode({"number": 3, "name": "echo"})]
)
def test_bytes_that_are_no_request_get_an_empty_answer(request_bytes: bytes):
    assert {} == plain_data.decode(answered(request_bytes, {"echo": echo}))["result"]


def test_an_answer_that_comes_late_is_passed_over(served: Served):
    late = plain_data.encode({"number": 0, "result": {"value": "late"}})
    served.socket.sendall(len(late).to_bytes(8, "little") + late)

    assert 4 == served.function("square")(2, of="x")


def test_a_judge_that_is_gone_ends_a_call(served: Served):
    served.socket.shutdown(socket.SHUT_RDWR)

    with pytest.raises((RuntimeError, OSError)):
        served.function("square")(2, of="x")
    os.fstat(served.caller.fileno())
