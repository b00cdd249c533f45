"""What other threads keep is not the call's: the rate of false alarms, on scripted time and scripted noise."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest
import torch
from scripted_clock import ScriptedClock

from edl_labs.bench.detectors import Detection, changing_calls

RUNS = 400


class Process:
    """The objects of a process whose other threads keep `rate` a second, and now and then `step` at once."""

    def __init__(self, seed: int, *, rate: float, step: int, every_s: float) -> None:
        self.chance, self.rate, self.step, self.every_s = random.Random(seed), rate, step, every_s
        self.now_s = self.objects = 0.0

    def goes_on(self, duration_s: float) -> None:
        self.now_s += duration_s
        self.objects += self.rate * duration_s
        until_s = self.chance.expovariate(1 / self.every_s)
        while until_s < duration_s:
            self.objects += self.step * self.chance.choice((1, 1, -1))
            until_s += self.chance.expovariate(1 / self.every_s)


def grown(monkeypatch: pytest.MonkeyPatch, process: Process, *, keeps: int, threads: int = 2) -> float:
    """What is told of 2 ms calls, 16 in a batch, each of which keeps so many objects."""
    seen = {"getallocatedblocks": lambda: int(process.objects), "_current_frames": lambda: range(threads)}
    time = {"perf_counter": lambda: process.now_s, "sleep": process.goes_on}
    garbage = {"collect": int, "freeze": int, "unfreeze": int, "get_freeze_count": int}
    for name, stand_in in (("sys", seen), ("time", time), ("gc", garbage)):
        monkeypatch.setattr(changing_calls, name, SimpleNamespace(**stand_in))

    def call() -> None:
        process.goes_on(2e-3)
        process.objects += keeps

    return changing_calls.grows(call, calls=16)


@pytest.mark.parametrize(
    ("rate", "step", "every_s"), [(1e4, 0, 1.0), (0.0, 300, 5e-3), (0.0, 3000, 20e-3), (1e4, 50, 3e-4)]
)
def test_one_in_256_at_most_is_told_for_what_other_threads_keep(
    monkeypatch: pytest.MonkeyPatch, rate: float, step: int, every_s: float
) -> None:
    noises = (Process(seed, rate=rate, step=step, every_s=every_s) for seed in range(RUNS))
    told = sum(grown(monkeypatch, noise, keeps=0) > 0 for noise in noises)

    assert told <= RUNS / 2**8


@pytest.mark.parametrize("rate", [0.0, 1e3, 1e6])
def test_what_a_call_keeps_is_told_beside_threads_that_keep_something_all_the_time(
    monkeypatch: pytest.MonkeyPatch, rate: float
) -> None:
    assert 3 == round(grown(monkeypatch, Process(0, rate=rate, step=0, every_s=1.0), keeps=3))


def test_alone_in_the_process_nothing_is_compared_with_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the simulation itself could fail: the same noise is told where no other thread can be its cause."""
    assert grown(monkeypatch, Process(0, rate=1e4, step=0, every_s=1.0), keeps=0, threads=1) > 0


def test_what_the_compiler_keeps_of_each_call_is_not_told_as_the_calls_growth_too(monkeypatch: pytest.MonkeyPatch):
    """Else one more mistake was told whenever a call happened to be quick enough for a look at its memory."""
    monkeypatch.setattr(changing_calls, "_call_s", lambda look, call: 1e-5)
    x = torch.ones(4)
    fn = lambda: torch.compile(torch.sin, backend="eager")(x)  # noqa: E731  (the compiler is called by its code)
    session = Detection(fn, feed=None, clock=ScriptedClock(), enabled=True, cold=False, budget_s=0.4)
    session.before()

    assert ["compile_inside"] == [item.kind for item in session.so_far]
    assert "compiler" in session.off["allocator_growing"]


def test_one_call_that_waited_for_a_processor_does_not_end_the_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first call that is timed takes a second; the others take no time, and each keeps two objects."""
    kept: list[object] = []
    took = iter([1.0])
    monkeypatch.setattr(changing_calls, "_call_s", lambda look, call: next(took, 1e-5))
    fn = lambda: kept.append([object()])  # noqa: E731  (what is timed is a function of one line)
    session = Detection(fn, feed=None, clock=ScriptedClock(), enabled=True, cold=False, budget_s=0.4)
    session.before()

    assert ["allocator_growing"] == [item.kind for item in session.so_far]
