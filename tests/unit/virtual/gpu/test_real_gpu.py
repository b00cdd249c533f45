"""The real device behind VirtualGPU's interface: what it asks of torch, on a stand-in that counts."""

from __future__ import annotations

import contextlib

import pytest

from edl_labs.errors import UsageError
from tools import real_gpu
from tools.real_gpu import RealGPU

torch = pytest.importorskip("torch", reason="torch is not installed")

CYCLES_PER_S = 2e9


class FakeClock:
    """Advances a millisecond a reading."""

    def __init__(self, device):
        self.device, self.waited, self.readings = "cuda:0", 0, 0

    def now_s(self):
        self.readings += 1
        return self.readings * 1e-3

    def synchronize(self):
        self.waited += 1


class FakeEvent:
    """Its time is the cycles slept so far."""

    def __init__(self, cuda):
        self._cuda = cuda

    def record(self):
        self.ms = sum(self._cuda.slept) / CYCLES_PER_S * 1e3

    def elapsed_time(self, end):
        return end.ms - self.ms


class FakeCuda:
    """Notes sleeps with the stream they go to."""

    def __init__(self):
        self.slept, self.streams, self.current = [], [], None

    def _sleep(self, cycles):
        self.slept.append(cycles)
        self.streams.append(self.current)

    @contextlib.contextmanager
    def stream(self, stream):
        before, self.current = self.current, stream
        yield
        self.current = before

    def Event(self, *, enable_timing):  # noqa: N802
        return FakeEvent(self)


@pytest.fixture
def cuda(monkeypatch):
    fake = FakeCuda()
    monkeypatch.setattr(real_gpu, "AcceleratorClock", FakeClock)
    for name in ("_sleep", "stream", "Event"):
        monkeypatch.setattr(torch.cuda, name, getattr(fake, name))
    return fake


def test_a_kernel_of_a_stated_duration_sleeps_as_many_cycles_as_the_device_counts_in_it(cuda):
    gpu = RealGPU()
    gpu.launch("kernel", duration_s=100e-6)

    assert pytest.approx(100e-6 * CYCLES_PER_S, rel=1e-6) == cuda.slept[-1]


def test_work_goes_to_the_stream_that_is_named(cuda):
    gpu = RealGPU()
    gpu.launch("kernel", duration_s=1e-6, stream="side")

    assert ["side"] == cuda.streams[-1:]
    assert cuda.streams[0] is None


def test_copies_and_numbers_are_torchs_own(cuda):
    gpu = RealGPU()
    source, target = gpu.host_empty(8), torch.zeros(8, dtype=torch.uint8)
    gpu.copy(target[2:4], source[2:4], non_blocking=True)

    assert [0, 0, 1, 1, 0, 0, 0, 0] == target.tolist()
    assert 1 == gpu.item(target[2:4])


def test_synchronising_and_time_are_the_clocks(cuda):
    gpu = RealGPU()
    before = gpu.clock.waited
    gpu.synchronize()
    first_s = gpu.now_s()
    gpu.host_work(0.0035)

    assert 1 == gpu.clock.waited - before
    assert gpu.now_s() - first_s >= 0.0035


def test_another_device_than_cuda_is_refused(cuda):
    with pytest.raises(UsageError) as caught:
        RealGPU("mps")

    assert "mps is not a CUDA device" == caught.value.what
    assert isinstance(caught.value.next, str)
