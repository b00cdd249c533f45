"""Calls of what stands in have the time that the reference computes, not what it waits for a core."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from edl_labs.checks import plain_data
from edl_labs.checks.worker import WorkerGone
from edl_labs.course.grade import reference_process
from edl_labs.course.grade.reference_process import ServedCalls
from edl_labs.course.sandbox.limits import Limits

CALL = plain_data.encode({"number": 1, "name": "f", "given": []})
NONE = plain_data.encode({"number": 1, "result": {}})


class Reference:
    """A reference whose calls take what the test says, on the clock and of a core."""

    limits = Limits(calls_s=60.0)

    def __init__(self, *, wall_s: float, cpu_s: float) -> None:
        self.now_s, self.cpu_s, self.each = 100.0, 7.0, SimpleNamespace(wall_s=wall_s, cpu_s=cpu_s)

    def start(self) -> None:
        pass

    def computed_s(self) -> float:
        return self.cpu_s

    def call(self, request: bytes, *, left_s: Callable[[], float]) -> bytes:
        self.now_s += self.each.wall_s
        self.cpu_s += self.each.cpu_s
        if left_s() <= 0:
            raise WorkerGone("took too long", late=True)
        return b"answered"


@pytest.mark.parametrize(
    ("wall_s", "cpu_s", "answered"),
    [
        (25.0, 25.0, 2),
        (100.0, 25.0, 2),  # a quarter of a core
        (70.0, 7.0, 8),  # a tenth: ten times as long on the clock ends it, in the ninth call
        (25.0, 50.0, 2),  # two threads on two cores
    ],
)
def test_what_counts_of_a_calls_time_is_what_the_reference_computes(
    monkeypatch: pytest.MonkeyPatch, wall_s: float, cpu_s: float, answered: int
):
    monkeypatch.setattr(reference_process, "usable_cores", lambda: 2)
    reference: Any = Reference(wall_s=wall_s, cpu_s=cpu_s)
    serve = ServedCalls(reference, frozenset({"f"}), clock=lambda: reference.now_s)

    assert [b"answered"] * answered + [NONE] == [serve(CALL) for _ in range(answered + 1)]
    assert NONE == serve(CALL)
    assert serve.over
