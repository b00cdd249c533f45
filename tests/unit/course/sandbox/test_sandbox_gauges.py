"""What kernels take is counted without waiting for them."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from edl_labs.course.sandbox.gauges import FamilyGauge, Gauge, GaugeReading
from edl_labs.course.sandbox.limits import MIB, Limits
from edl_labs.course.sandbox.pss_sampler import UNKNOWN, PssSampler

HOLDS = "held = bytearray(b'x' * ({mib} << 20)); print('ready', flush=True); input()"


@pytest.fixture
def holder():
    started = []

    def start(code: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-S", "-c", code]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        )
        started.append(process)
        assert process.stdout.readline()
        return process

    yield start
    for process in started:
        process.communicate(b"\n")


def test_memory_that_a_process_holds_is_counted(holder):
    gauge = FamilyGauge(holder(HOLDS.format(mib=64)).pid)

    assert 64 * MIB <= gauge.read().least_bytes <= gauge.read().most_bytes < 200 * MIB
    assert 64 * MIB <= gauge.measure_pss() < 200 * MIB


def test_what_a_child_shares_is_in_the_upper_bound_twice_and_weighed_once(holder):
    code = "import os\nheld = bytearray(b'x' * (64 << 20))\nos.fork() or input()\nprint('ready', flush=True)\ninput()"
    gauge = FamilyGauge(holder(code.replace("os.fork() or input()", "pid = os.fork()")).pid)
    usage = gauge.read()

    assert usage.most_bytes >= 128 * MIB > usage.least_bytes
    assert gauge.measure_pss() < 128 * MIB


def test_a_listing_that_a_killed_weighing_left_half_read_loses_no_process():
    """A fork shares the position in a folder that was open before it."""
    proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY)
    os.lseek(proc, 1 << 30, os.SEEK_SET)

    assert os.getpid() in Gauge(proc).pids()
    os.close(proc)


@pytest.mark.slow
def test_orphans_of_the_session_are_counted(holder):
    code = (
        "import os, time\nif os.fork() == 0:\n    if os.fork() == 0: time.sleep(5); os._exit(0)\n    os._exit(0)\n"
        "os.wait(); print('ready', flush=True); input()"
    )

    assert 2 == len(FamilyGauge(holder(code).pid).pids())


def test_who_shares_a_core_waits_for_it(holder):
    core = min(os.sched_getaffinity(0))
    pinned = f"import os\nos.sched_setaffinity(0, {{{core}}})\nprint('ready', flush=True)\n"
    spinning = [holder(pinned + "while True: pass") for _ in range(3)]
    asleep = FamilyGauge(holder("print('ready', flush=True); input()").pid)
    gauges = [FamilyGauge(process.pid) for process in spinning]
    while sum(gauge.read().cpu_s for gauge in gauges) < 0.6:
        time.sleep(0.01)
    waited_s = [gauge.waited_s() for gauge in gauges]
    for process in spinning:
        process.kill()

    assert all(seconds > asleep.waited_s() for seconds in waited_s)
    assert sum(waited_s) > 0.6  # two of three wait at any time


def test_a_process_that_is_gone_takes_nothing():
    process = subprocess.Popen(["true"])
    process.wait()
    gauge = FamilyGauge(process.pid)
    usage = gauge.read()

    assert (0, 0, 0) == (usage.least_bytes, usage.most_bytes, usage.processes)
    assert 0 == gauge.waited_s()


@pytest.mark.parametrize(
    ("usage", "over"),
    [
        (GaugeReading(10, 10, 0.0, 1, 10), ""),
        (GaugeReading(101, 200, 0.0, 1, 10), "memory"),
        (GaugeReading(99, 200, 0.0, 1, 10), ""),
        (GaugeReading(10, 10, 0.0, 26, 10), "processes"),
        (GaugeReading(10, 10, 0.0, 1, 11), "files"),
        (GaugeReading(10, 10, 0.0, 1, 10, sockets=2049), "sockets"),
        (GaugeReading(10, 10, 0.0, 1, 10, locks=1001), "locks"),
    ],
)
def test_only_what_is_sure_is_over_a_limit(usage, over):
    assert over == usage.over(Limits(memory_bytes=100, processes=100, inodes=10))


class Fixed(Gauge):
    def __init__(self, measure_pss):
        super().__init__(os.open("/proc", os.O_RDONLY))
        self.measure_pss = measure_pss


def weighed(scale: PssSampler) -> int:
    import time

    while (weight_bytes := scale.weight_bytes()) is None:
        time.sleep(0.01)
    return weight_bytes


def test_a_weighing_gives_its_result_in_a_process_of_its_own():
    assert 123 == weighed(PssSampler.start(Fixed(lambda: 123)))


def test_a_weighing_that_is_kept_waiting_is_given_up(monkeypatch):
    import time

    monkeypatch.setattr("edl_labs.course.sandbox.pss_sampler._WEIGHED_S", 0.1)

    assert UNKNOWN == weighed(PssSampler.start(Fixed(lambda: time.sleep(60))))
