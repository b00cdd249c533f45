"""Clocks state their resolution and cost, and only an accelerator's clock waits for a device."""

from __future__ import annotations

import itertools
import subprocess
import sys

import pytest

from edl_labs.clock import (
    AcceleratorClock,
    Clock,
    EventClock,
    HostClock,
    clock_for,
    device_behind,
    is_asynchronous,
    is_modelled,
    is_processor_time,
    mean_cost_s,
    smallest_step_s,
)
from edl_labs.errors import UsageError


def ticking(step_s, *, reads_per_tick=1):
    """A clock function that moves on by `step_s` after every `reads_per_tick` readings."""
    counter = itertools.count()
    return lambda: (next(counter) // reads_per_tick) * step_s


def test_the_host_clock_is_a_clock():
    assert isinstance(HostClock(), Clock)


def test_what_lacks_a_reading_is_no_clock():
    class Stopped:
        name = "stopped"
        resolution_s = read_cost_s = 0.0

    assert not isinstance(Stopped(), Clock)


class OfOthers:
    """A clock from before clocks said what they are."""

    name = "another's"
    resolution_s = read_cost_s = 0.0

    def now_s(self):
        return 0.0

    def synchronize(self):
        return None


class Draining(HostClock):
    """A clock made from the processor's that waits for something."""

    def synchronize(self):
        return None


def test_each_clock_says_what_it_is():
    from edl_labs.virtual import VirtualGPU, VirtualWorkers

    _, by_events = device_events()
    clocks = [HostClock(), Draining(), by_events, VirtualGPU().clock, VirtualWorkers().clock, OfOthers()]

    assert [False, True, True, True, True, True] == list(map(is_asynchronous, clocks))
    assert [False, False, False, True, True, False] == list(map(is_modelled, clocks))
    assert [True, False, False, False, False, False] == list(map(is_processor_time, clocks))
    assert [""] * 6 == list(map(device_behind, clocks))


def test_events_of_a_modelled_device_can_say_so():
    assert is_modelled(EventClock(lambda: VirtualEvent(), modelled=True))


class VirtualEvent:
    def record(self):
        pass

    def synchronize(self):
        pass


def test_the_host_clock_never_runs_backwards():
    clock = HostClock()
    readings = [clock.now_s() for _ in range(1000)]

    assert sorted(readings) == readings


def test_the_host_clock_states_a_positive_resolution_and_cost():
    clock = HostClock()

    assert 0 < clock.resolution_s < 1e-3
    assert 0 < clock.read_cost_s < 1e-3


@pytest.mark.parametrize("reads_per_tick", [1, 7])
def test_the_smallest_step_of_a_coarse_clock_is_its_tick(reads_per_tick):
    assert 0.25 == smallest_step_s(ticking(0.25, reads_per_tick=reads_per_tick), steps=3)


def test_the_cost_of_a_reading_is_its_share_of_a_run():
    # 100 readings and the closing one lie between the two ends of a run.
    assert pytest.approx(0.5 * 101 / 100) == mean_cost_s(ticking(0.5), reads=100, runs=2)


def test_the_cpu_is_timed_with_the_host_clock():
    assert "host" == clock_for("cpu").name
    assert type(clock_for("cpu")) is HostClock


class FakeAccelerator:
    """Stands in for torch.accelerator, and counts the waits."""

    def __init__(self, torch, kind):
        self._torch, self._kind, self.waited = torch, kind, []

    def current_accelerator(self, *, check_available):
        return self._kind and self._torch.device(self._kind)

    def current_device_index(self):
        return 0

    def synchronize(self, device):
        self.waited.append(str(device))


@pytest.fixture
def accelerator(monkeypatch):
    torch = pytest.importorskip("torch", reason="torch is not installed")

    def install(kind):
        fake = FakeAccelerator(torch, kind)
        monkeypatch.setattr(torch, "accelerator", fake)
        return fake

    return install


def test_an_accelerators_clock_waits_for_its_device(accelerator):
    fake = accelerator("cuda")
    clock = AcceleratorClock()
    clock.now_s()
    assert [] == fake.waited
    clock.synchronize()
    clock_for("cuda:1").synchronize()

    assert ["cuda:0", "cuda:1"] == fake.waited
    assert isinstance(clock, Clock)
    assert "host with cuda:0" == clock.name


def test_a_clock_of_an_accelerator_names_its_device(accelerator, monkeypatch):
    accelerator("cuda")
    import torch

    made = []
    event = type("Event", (), {"record": lambda _: None, "synchronize": lambda _: None})
    monkeypatch.setattr(torch, "Event", lambda device, enable_timing: made.append(str(device)) or event())
    clocks = [EventClock.of("cuda:1"), EventClock.of(), AcceleratorClock("cuda:1"), EventClock(event), HostClock()]

    assert ["cuda:1", "cuda:0", "cuda:1", "", ""] == list(map(device_behind, clocks))
    assert ["cuda:1", "cuda:0"] == made


def test_without_an_accelerator_its_clock_says_what_to_use(accelerator):
    accelerator(None)
    with pytest.raises(UsageError) as caught:
        AcceleratorClock()

    assert "there is no accelerator to time" == caught.value.what
    assert "VirtualGPU" in caught.value.next


def test_another_kind_of_device_than_the_one_here_is_refused(accelerator):
    accelerator("mps")
    with pytest.raises(UsageError) as caught:
        AcceleratorClock("cuda")

    assert "cuda cannot be timed here" == caught.value.what


def test_without_torch_the_host_clock_works_and_the_other_says_so():
    script = """
import sys
sys.modules["torch"] = None
from edl_labs.clock import AcceleratorClock, HostClock
HostClock().synchronize()
try:
    AcceleratorClock()
except Exception as error:
    print(type(error).__name__, error.what, sep=": ")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert "UsageError: timing an accelerator needs torch\n" == done.stdout


def device_events():
    from edl_labs.virtual import VirtualGPU

    gpu = VirtualGPU("A100-80GB").machine.warm()
    gpu = VirtualGPU(gpu)
    return gpu, EventClock(lambda: gpu.Event(enable_timing=True))


def test_the_clock_of_events_is_a_clock_that_measures_the_device():
    gpu, clock = device_events()
    start = clock.now_s()
    gpu.launch("k", duration_s=3e-3)
    took = clock.now_s() - start

    assert isinstance(clock, Clock)
    assert 3e-3 == pytest.approx(took, rel=0.01)


def test_the_clock_of_events_goes_on_past_the_reach_of_its_anchor():
    gpu, clock = device_events()
    start = clock.now_s()
    for _ in range(7):
        gpu.launch("k", duration_s=0.15)
        clock.synchronize()
        clock.now_s()

    assert 7 * 0.15 == pytest.approx(clock.now_s() - start, rel=0.01)


def test_the_clock_of_events_of_a_missing_accelerator_says_so(monkeypatch):
    import torch

    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda check_available=False: None)
    with pytest.raises(UsageError, match="no accelerator"):
        EventClock.of()
