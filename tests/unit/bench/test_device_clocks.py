"""A clock of device events counts as its device's: cache, stamp, watch and graphs; without one it is as any clock."""

from __future__ import annotations

import gc
import weakref
from types import SimpleNamespace

import pytest
import torch

from edl_labs import device
from edl_labs.bench import State, measure
from edl_labs.bench.timing import cache_flush, cuda_graph, processor_state
from edl_labs.clock import AcceleratorClock, EventClock, HostClock
from edl_labs.device import describe
from edl_labs.errors import UsageError

PROPERTIES = SimpleNamespace(L2_cache_size=40 << 20, uuid="of-device-1")


class Scripted:
    """The time of this test: each reading moves it by a tenth of a microsecond."""

    t = 0.0

    def now_s(self):
        self.t += 1e-7
        return self.t


TIME = Scripted()


class BesideDevice(AcceleratorClock):
    resolution_s = read_cost_s = 1e-7

    def now_s(self):
        return TIME.now_s()


class Event:
    """A timing event in scripted time."""

    def record(self):
        self.t = TIME.now_s()

    def synchronize(self):
        pass

    def elapsed_time(self, end):
        return 1e3 * (end.t - self.t)


def no_properties(device):
    raise AssertionError(f"asked for {device!r}, and the clock is of cuda:1")


@pytest.fixture(params=[EventClock, BesideDevice])
def clock(request, monkeypatch):
    monkeypatch.setattr(
        torch.cuda, "get_device_properties", lambda d: PROPERTIES if d == "cuda:1" else no_properties(d)
    )
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda check_available=False: torch.device("cuda"))
    monkeypatch.setattr(torch.accelerator, "synchronize", lambda device: None)
    monkeypatch.setattr(torch, "Event", lambda device, enable_timing: Event())
    return request.param.of("cuda:1") if request.param is EventClock else BesideDevice("cuda:1")


def test_the_cache_to_clear_is_that_of_the_device(clock, monkeypatch):
    made = []
    ones = torch.ones
    monkeypatch.setattr(torch, "ones", lambda n, dtype, device: made.append((4 * n, device)) or ones(8, dtype=dtype))
    cache_flush.make_flush(clock)()

    assert 40 << 20 == cache_flush.llc_bytes(clock)
    assert [(80 << 20, "cuda:1")] == made


def test_the_stamp_is_that_of_the_device(clock, monkeypatch):
    monkeypatch.setattr(device, "describe", lambda device, load_torch: SimpleNamespace(device=device))

    assert "cuda:1" == device.stamp_for(clock).device


def test_the_device_that_is_watched_is_that_of_the_clock(clock, monkeypatch):
    monkeypatch.setattr(processor_state, "NvmlWatch", lambda uuid: uuid)

    assert "GPU-of-device-1" == processor_state.watch_for(clock)


@pytest.mark.parametrize("feed", [None, SimpleNamespace(pool=[(1,), (2,)])])
def test_a_captured_graph_keeps_the_memory_that_it_uses(clock, monkeypatch, feed):
    replayed = []
    monkeypatch.setattr(
        cuda_graph, "_capture", lambda torch, fn, given: SimpleNamespace(replay=lambda: replayed.append(given))
    )
    buffer = torch.ones(1)
    alive = weakref.ref(buffer)
    replay = cuda_graph.captured(lambda *given, buffer=buffer: buffer, feed, clock)
    del buffer
    gc.collect()
    for _ in range(2):
        replay()

    assert alive() is not None
    assert sorted(feed.pool if feed else [(), ()]) == sorted(replayed)


def test_a_cold_measurement_clears_the_devices_cache_and_drops_throttled_blocks(clock, monkeypatch):
    flushed = []
    monkeypatch.setattr(cache_flush, "_device_flush", lambda device, clock: lambda: flushed.append(device))
    monkeypatch.setattr(
        processor_state,
        "NvmlWatch",
        lambda uuid: SimpleNamespace(read=lambda: State(1e9, 1e9, throttled=bool(flushed))),
    )
    here = describe("cpu")
    monkeypatch.setattr(device, "describe", lambda device, load_torch: here)

    def work():
        TIME.t += 1e-4

    m = measure(work, clock=clock, cold=True, budget_s=0.05)

    assert {"cuda:1"} == set(flushed)
    assert m.dropped > 0


def test_events_of_no_known_device_are_as_any_clock():
    clock = EventClock(Event)
    with pytest.raises(UsageError, match="needs a CUDA device"):
        cuda_graph.captured(len, None, clock)

    assert cache_flush.llc_bytes(HostClock()) == cache_flush.llc_bytes(clock)
    assert ("cpu", None) == (device.stamp_for(clock).device, processor_state.watch_for(clock))
