"""A function in a process of its own: its value, or None where it took too much."""

from __future__ import annotations

import time

from edl_labs.course.grade.bounded_call import CPU_S, MEMORY_BYTES, bounded_call


def doubled(value: list[int]) -> list[int]:
    return value * 2


def endless(_: int) -> int:
    while True:
        pass


def large(_: int) -> int:
    return len(b"x" * MEMORY_BYTES)


def test_a_value_comes_back():
    assert [1, 2, 1, 2] == bounded_call(doubled, [1, 2])


def test_half_a_letter_of_a_students_arrives():
    assert ["\ud800", "\ud800"] == bounded_call(doubled, ["\ud800"])


def test_one_that_does_not_end_is_ended():
    began_s = time.process_time()

    assert bounded_call(endless, 0) is None
    assert time.process_time() - began_s < CPU_S


def test_one_that_takes_too_much_memory_is_ended():
    assert bounded_call(large, 0) is None
