"""The line to blame is one's own, and many small operators are overhead."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

import pytest

from edl_labs.trace import TorchLoop, attribute, read_trace
from edl_labs.trace.samplers import LineSampler


def busy(seconds: float) -> None:
    """Code of one's own, without an operator."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def logs(lines: int) -> None:
    """The standard library at work for a line of one's own."""
    logger = logging.Logger("quiet")
    logger.addHandler(logging.NullHandler())
    for number in range(lines):
        logger.warning("step %s of %s", number, lines)


# Long enough for dozens of looks a step: Python hands its lock over every 5 ms at most.
HOST_LOOPS: dict[str, tuple[Callable[[], None], str]] = {
    "own code": (lambda: busy(0.1), "busy"),
    "logging": (lambda: logs(20_000), "logs"),
}


@pytest.mark.parametrize(("step", "function"), HOST_LOOPS.values(), ids=HOST_LOOPS)
def test_a_host_bound_loop_has_a_line_without_stacks(step: Callable[[], None], function: str) -> None:
    found = attribute(TorchLoop(step, warm_up=1).record(5), skip=1)

    assert "host" == found.dominant
    assert found.blames["host"][0].line.startswith("test_blame.py(")
    assert found.blames["host"][0].line.endswith(f": {function}")


def test_the_sampler_sees_no_line_of_a_library() -> None:
    with LineSampler() as sampler:
        busy(0.01)
        logs(2000)

    assert sampler.lines
    assert {"test_blame.py"} == {line.partition("(")[0] for _, line in sampler.lines}


def frames(*around: tuple[str, float, float]) -> list[dict[str, Any]]:
    """A step of 100 µs with Python frames in it."""
    step = {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#0", "pid": 1, "tid": 1, "ts": 0.0, "dur": 100.0}
    return [
        step,
        *(
            {"ph": "X", "cat": "python_function", "name": name, "pid": 1, "tid": 1, "ts": start, "dur": taken}
            for name, start, taken in around
        ),
    ]


@pytest.mark.parametrize(
    "library", ["logging/__init__.py(1489): info", "threading.py(300): wait", "json/encoder.py(3): f"]
)
def test_the_standard_library_is_a_library(library: str) -> None:
    trace = read_trace(frames(("train.py(12): step", 1.0, 98.0), (library, 2.0, 96.0)))

    assert "train.py(12): step" == attribute(trace).blames["host"][0].line


def conversions(
    count: int, *, part_s: float, gap_s: float, steps: int = 1, interrupted: tuple[int, ...] = ()
) -> list[dict[str, Any]]:
    """Steps of so many conversions of a number, each of three operators, as PyTorch records them.

    The processor is away for 5 ms in the midst of the conversions `interrupted`, counted over all steps.
    """
    events: list[dict[str, Any]] = []
    now = 0.0
    for step in range(steps):
        begun = now
        for number in range(count):
            away = 5e-3 if step * count + number in interrupted else 0.0
            for depth, name in enumerate(("aten::to", "aten::_to_copy", "aten::copy_")):
                start, taken = now + depth * part_s, (4 - depth) * part_s - depth * part_s + away
                events.append({"cat": "cpu_op", "name": name, "ts": start * 1e6, "dur": taken * 1e6})
            now += 4 * part_s + away + gap_s
        mark = {"cat": "user_annotation", "name": f"ProfilerStep#{step}"}
        events.append({**mark, "ts": begun * 1e6, "dur": (now - begun) * 1e6})
    return [{"ph": "X", "pid": 1, "tid": 1, **event} for event in events]


@pytest.mark.parametrize("part_s", [1e-6, 4e-6, 6e-6])
def test_six_thousand_conversions_of_numbers_are_overhead(part_s: float) -> None:
    found = attribute(read_trace(conversions(6000, part_s=part_s, gap_s=3e-6)))

    assert 0.95 < found.shares["launch"]


def test_a_processor_that_is_away_makes_no_copy_of_a_small_operator() -> None:
    events = conversions(600, part_s=1e-6, gap_s=3e-6, steps=4, interrupted=(100, 500, 900, 1300, 2100))
    found = attribute(read_trace(events))

    assert 0.95 < found.shares["launch"]


def test_what_is_long_in_each_step_stays_what_it_is() -> None:
    events = conversions(600, part_s=1e-6, gap_s=3e-6, steps=4, interrupted=(100, 700, 1300, 1900))
    found = attribute(read_trace(events))

    assert "copy" == found.dominant


def test_conversions_of_much_data_are_copies() -> None:
    found = attribute(read_trace(conversions(20, part_s=200e-6, gap_s=3e-6)))

    assert 0.9 < found.shares["copy"]
