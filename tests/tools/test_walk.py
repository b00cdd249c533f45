"""What a walk is: files in order, each once while it is not left, and how often one is come back to."""

from __future__ import annotations

from edl_labs.units import counted, seconds
from tools.walk import Walk, returns, stays


def test_stays_and_returns_are_counted_in_each_thread() -> None:
    threads = [["a", "a", "b", "a", "c", "b"], ["a", "b"]]

    assert ["a", "b", "a", "c", "b"] == stays(threads[0])
    assert 2 == returns(threads)


def walked(times: int) -> list[str]:
    walk = Walk()
    walk.follow()
    for _ in range(times):
        counted(2, "file")
        seconds(0.001)
    walk.stop()
    return [name for thread in walk.entered.values() for name in thread]


def test_a_function_counts_when_it_is_entered_first() -> None:
    once = walked(1)

    assert {"units.py"} == set(once)
    assert once == walked(3)
