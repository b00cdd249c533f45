"""VirtualWorkers: what a loader, its disks, its cache and its cores do, and that its recordings replay."""

from __future__ import annotations

import copy
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edl_labs.errors import EdlError
from edl_labs.virtual import (
    HDD,
    Disk,
    LoaderMachine,
    ReplayDisagreement,
    ReplayError,
    VirtualWorkers,
    VirtualWorkersError,
    replay_workers,
)


def makespan_s(
    batches: list[Any], *, step_s: float = 0.0, threads: int = 0, machine: Any = None, **loader: Any
) -> float:
    vw = VirtualWorkers(machine)
    for _ in vw.loader(batches, **loader):
        vw.step(step_s, threads=threads)
    return vw.now_s()


def decode(seconds: float = 4e-3) -> list[Any]:
    return [("cpu", "decode", seconds)]


@pytest.mark.parametrize(("workers", "expected_s"), [(0, 0.080), (1, 0.064), (2, 0.032), (4, 0.024), (8, 0.021)])
def test_workers_divide_the_loading_until_the_step_is_the_slower(workers: int, expected_s: float) -> None:
    took_s = makespan_s([decode()] * 16, step_s=1e-3, workers=workers, machine={"cores": 16})

    # Each: the loader's time until the last batch, and the step on it; or the first batch and then every step.
    first, rounds = 4e-3, 16 / max(workers, 1)
    bound_s = max(first * rounds, 16e-3) if workers else 16 * 5e-3
    assert bound_s <= took_s <= bound_s + 6e-3
    assert expected_s == pytest.approx(took_s, abs=4e-3)


def test_more_workers_than_cores_add_nothing() -> None:
    machine = {"cores": 2}

    assert makespan_s([decode()] * 24, workers=2, machine=machine) == makespan_s(
        [decode()] * 24, workers=6, machine=machine
    )


def test_contention_slows_every_busy_core() -> None:
    alone_s = makespan_s([decode()] * 8, workers=4, machine={"cores": 4})

    assert 1.3 * alone_s == pytest.approx(
        makespan_s([decode()] * 8, workers=4, machine={"cores": 4, "contention": 0.1}), rel=1e-9
    )


def test_a_step_on_the_cores_slows_the_workers_that_share_them_and_a_device_step_does_not() -> None:
    machine = {"cores": 2}
    on_device_s = makespan_s([decode()] * 40, step_s=4e-3, workers=2, machine=machine)
    on_cores_s = makespan_s([decode()] * 40, step_s=4e-3, threads=2, workers=2, machine=machine)

    assert 0.164 == pytest.approx(on_device_s)
    # 40 batches of 4 ms and 40 steps of 2 x 4 ms on two cores: 240 ms, whatever the order.
    assert 0.24 == pytest.approx(on_cores_s, rel=0.03)


def test_the_queue_is_bounded_by_prefetch() -> None:
    vw = VirtualWorkers(cores=8)
    loader = vw.loader([decode(1e-3)] * 100, workers=2, prefetch=3)
    vw.work("the main process does something else", 1.0)
    line_end_s = max(span.end_s for span in vw.timeline.spans if span.row.startswith("worker"))

    assert 0.003 == line_end_s
    assert 100 == len(list(loader))


def test_batches_come_in_order_unless_asked_otherwise() -> None:
    slow_first = [decode(10e-3), decode(1e-3), decode(1e-3), decode(1e-3)]
    vw = VirtualWorkers()

    assert [0, 1, 2, 3] == list(vw.loader(slow_first, workers=2))
    assert [1, 3, 0, 2] == list(vw.loader(slow_first, workers=2, in_order=False))


def test_a_disk_charges_a_seek_for_each_jump_and_pages_for_bytes() -> None:
    vw = VirtualWorkers(disks=(HDD,), page_bytes=4096)
    file = vw.file(1_000_000)
    for offset in (0, 4096, 8192, 409_600, 0):
        vw.read(file, offset=offset, nbytes=4096)
    result = replay_workers(vw.program, vw.machine)

    assert (3, 5, 5 * 4096) == (result.seeks, result.requests, result.disk_bytes)
    assert HDD.read_s(5 * 4096, seeks=3) == pytest.approx(result.makespan_s, rel=1e-6)


def test_a_warm_read_touches_no_disk_until_the_cache_is_dropped() -> None:
    vw = VirtualWorkers(disks=(HDD,), cache_bytes=10**6)
    file = vw.file(100_000)
    resident = [vw.resident_bytes(file)]
    vw.read(file)
    resident.append(vw.resident_bytes(file))
    vw.read(file)
    vw.drop_cache()
    resident.append(vw.resident_bytes(file))
    vw.read(file)
    result = replay_workers(vw.program, vw.machine)

    assert [0, 100_000, 0] == resident
    assert (200_000, 100_000) == (result.disk_bytes, result.cached_bytes)


def test_a_cache_smaller_than_the_file_never_helps_a_second_pass() -> None:
    vw = VirtualWorkers(disks=(HDD,), cache_bytes=50_000)
    file = vw.file(100_000)
    for _ in range(2):
        for offset in range(0, 100_000, 10_000):
            vw.read(file, offset=offset, nbytes=10_000)
    result = replay_workers(vw.program, vw.machine)

    # Only the page that two neighbouring reads share is found again.
    assert result.cached_bytes < 0.25 * result.asked_bytes


def test_channels_of_a_disk_serve_several_workers_at_once() -> None:
    batches = [[("read", 0, 1_000_000 * number, 4096)] for number in range(32)]

    def took_s(channels: int) -> float:
        vw = VirtualWorkers(disks=(Disk(seek_s=1e-3, read_byte_per_s=1e9, channels=channels),))
        vw.file(10**9)
        for _ in vw.loader(batches, workers=8):
            pass
        return vw.now_s()

    assert 8 == pytest.approx(took_s(1) / took_s(8), rel=0.1)


def test_starting_workers_takes_the_main_process_time_for_each() -> None:
    assert 0.404 == pytest.approx(makespan_s([decode()], workers=4, machine={"worker_start_s": 0.1}))


def test_unblocked_device_steps_are_waited_for_by_synchronize() -> None:
    vw = VirtualWorkers()
    for _ in range(3):
        vw.step(1e-3, blocking=False)
    before_s = vw.now_s()
    vw.synchronize()

    assert (0.0, 0.003) == (before_s, vw.now_s())


def test_a_million_actions_without_time_do_not_exhaust_the_stack() -> None:
    vw = VirtualWorkers()

    assert 1 == len(list(vw.loader([[("cpu", "nothing", 0)] * 20_000], workers=1)))


@given(
    st.lists(st.lists(st.sampled_from([1e-3, 2.5e-3, 7e-4]), max_size=4), max_size=12),
    st.integers(0, 4),
    st.integers(1, 3),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_whatever_was_recorded_replays_to_the_same_readings(
    seconds: list[list[float]], workers: int, prefetch: int, in_order: bool
) -> None:
    vw = VirtualWorkers(cores=2, contention=0.05, disks=(HDD,), cache_bytes=20_000, clock_read_cost_s=1e-7)
    file = vw.file(200_000)
    batches = [[("read", file, 1000 * n, 5000), *(("cpu", "work", s) for s in row)] for n, row in enumerate(seconds)]
    seen = []
    for number in vw.loader(batches, workers=workers, prefetch=prefetch, in_order=in_order):
        seen.append(number)
        vw.step(1e-3, threads=1)
        vw.now_s()
    result = replay_workers(vw.program, vw.machine.to_dict())

    assert sorted(seen) == list(range(len(seconds)))
    assert vw.now_s() - 1e-7 == pytest.approx(result.host_s, abs=1e-12)
    assert sum(map(sum, seconds)) == pytest.approx(result.stage_s.get("work", 0.0))


def recorded() -> list[dict[str, Any]]:
    vw = VirtualWorkers(cores=2)
    vw.read(vw.file(10_000), nbytes=10)
    for _ in vw.loader([decode(), decode()], workers=1):
        vw.step(1e-3)
    vw.now_s()
    return vw.program


def test_a_forged_reading_is_refused() -> None:
    program = recorded()
    program[-1]["value"] *= 0.5

    with pytest.raises(ReplayDisagreement):
        replay_workers(program, {"cores": 2})


@pytest.mark.parametrize(
    "forge",
    [
        lambda p: None,
        lambda p: "program",
        lambda p: [*p, 7],
        lambda p: [*p, {"op": "fly"}],
        lambda p: [*p, {"op": ["now"]}],
        lambda p: [*p, {"op": "now"}],
        lambda p: [*p, {"op": "now", "value": 0, "more": 1}],
        lambda p: [*p, {"op": "read", "file": 9, "offset": 0, "bytes": 1}],
        lambda p: [*p, {"op": "read", "file": 0, "offset": -1, "bytes": 1}],
        lambda p: [*p, {"op": "read", "file": 0, "offset": 0, "bytes": 10**30}],
        lambda p: [*p, {"op": "read", "file": 0, "offset": float("nan"), "bytes": 1}],
        lambda p: [*p, {"op": "next", "loader": 5, "value": None}],
        lambda p: [*p, {"op": "next", "loader": -1, "value": None}],
        lambda p: [*p, {"op": "next", "loader": "0", "value": None}],
        lambda p: [*p, {"op": "work", "stage": "x", "duration_s": float("inf")}],
        lambda p: [*p, {"op": "work", "stage": None, "duration_s": 1.0}],
        lambda p: [*p, {"op": "step", "duration_s": True, "threads": 0, "blocking": True}],
        lambda p: [*p, {"op": "step", "duration_s": 1.0, "threads": 0, "blocking": 1}],
        lambda p: [*p, {"op": "loader", "workers": 10**9, "prefetch": 1, "in_order": True, "batches": []}],
        lambda p: [*p, {"op": "loader", "workers": 1, "prefetch": 1, "in_order": True, "batches": [[["cpu", "x"]]]}],
        lambda p: [*p, {"op": "loader", "workers": 1, "prefetch": 1, "in_order": True, "batches": [[[[], "x", 1]]]}],
        lambda p: [*p, {"op": "file", "name": "", "bytes": 0, "disk": 0}],
        lambda p: [*p, {"op": "file", "name": "a", "bytes": 1, "disk": {}}],
    ],
)
def test_a_program_that_is_none_gets_a_replay_error(forge: Any) -> None:
    with pytest.raises(ReplayError):
        replay_workers(forge(copy.deepcopy(recorded())), {"cores": 2})


def test_a_program_without_end_is_refused() -> None:
    with pytest.raises(ReplayError, match="more than 10 operations"):
        replay_workers(recorded() * 5, {"cores": 2}, max_operations=10)


@pytest.mark.parametrize(
    "misuse",
    [
        lambda vw: vw.read(3),
        lambda vw: vw.file(0),
        lambda vw: vw.file(10, disk="tape"),
        lambda vw: vw.work("x", -1.0),
        lambda vw: vw.loader("batches"),
        lambda vw: vw.loader([[("cpu", "x", 1.0)]], workers=-1),
        lambda vw: vw.loader([[("dance", "x", 1.0)]]),
        lambda vw: vw.step(1.0, threads=-2),
        lambda vw: VirtualWorkers(cores=0),
        lambda vw: VirtualWorkers(wheels=4),
        lambda vw: LoaderMachine(disks=()),
        lambda vw: Disk(read_byte_per_s=0),
    ],
)
def test_misuse_says_what_why_and_next(misuse: Any) -> None:
    with pytest.raises(VirtualWorkersError) as error:
        misuse(VirtualWorkers())

    assert all((error.value.what, error.value.why, error.value.next))
    assert isinstance(error.value, EdlError)


def test_the_timeline_has_a_row_for_each_process_and_disk_and_no_overlaps_in_one() -> None:
    vw = VirtualWorkers(cores=2, disks=(HDD,))
    file = vw.file(10**6)
    for _ in vw.loader([[("read", file, 0, 1000), *decode()]] * 4, workers=2):
        vw.step(1e-3)
    line = vw.timeline

    assert ("main", "device", "worker 0", "worker 1", "hdd") == line.rows
    for row in ("hdd", "device"):
        spans = [span for span in line.spans if span.row == row]
        assert all(a.end_s <= b.start_s for a, b in pairwise(spans))


def test_any_timer_runs_on_its_clock() -> None:
    vw = VirtualWorkers(clock_resolution_s=1e-6)
    vw.work("x", 1.5e-6)

    assert (1e-6, 1e-6) == (vw.clock.now_s(), vw.clock.resolution_s)
