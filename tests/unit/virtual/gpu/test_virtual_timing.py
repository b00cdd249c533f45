"""Each feature of the model, against timelines reckoned by hand in microseconds on a machine of round numbers."""

from __future__ import annotations

import pytest

from edl_labs.virtual import VirtualGPU, VirtualMachine, replay

US = 1e-6
# 1 byte takes 1 µs over the link, 2 µs when staged.
ROUND = VirtualMachine(launch_overhead_s=2 * US, copy_overhead_s=3 * US, link_byte_per_s=1e6, pageable_byte_per_s=0.5e6)


def gpu(**parameters):
    return VirtualGPU(ROUND, **parameters)


def host_us(device):
    return device.now_s() / US


def ends_us(device):
    """Where each kernel and copy ends, in the order of issue."""
    spans = [span for span in device.timeline.spans if span.kind in ("kernel", "copy")]
    return [pytest.approx(span.end_s / US) for span in sorted(spans, key=lambda span: span.issue)]


@pytest.mark.parametrize("count", [1, 2, 7])
def test_the_host_returns_after_the_launches_and_the_device_is_done_after_the_kernels(count):
    device = gpu()
    for _ in range(count):
        device.launch("k", duration_s=10 * US)
    issued_us = host_us(device)
    device.synchronize()

    assert pytest.approx(2 * count) == issued_us
    assert pytest.approx(2 + 10 * count) == host_us(device)


def test_kernels_shorter_than_a_launch_leave_the_device_idle_between_them():
    device = gpu()
    for _ in range(5):
        device.launch("k", duration_s=0.5 * US)
    device.synchronize()

    assert pytest.approx(5 * 2 + 0.5) == host_us(device)


def test_a_synchronisation_costs_its_overhead_and_waits_only_for_what_is_left():
    device = gpu(sync_overhead_s=4 * US)
    device.launch("k", duration_s=3 * US)
    device.synchronize()
    assert pytest.approx(6) == host_us(device)
    device.synchronize()

    assert pytest.approx(10) == host_us(device)


def test_host_work_runs_beside_the_device():
    device = gpu()
    device.launch("k", duration_s=10 * US)
    device.host_work(30 * US)
    device.launch("k", duration_s=10 * US)
    device.synchronize()

    assert pytest.approx(34 + 10) == host_us(device)


def test_kernels_of_two_streams_share_the_compute_engine_in_the_order_they_become_ready():
    device = gpu()
    other = device.Stream()
    device.launch("a", duration_s=10 * US)
    device.launch("b", duration_s=1 * US)
    device.launch("c", duration_s=1 * US, stream=other)
    device.synchronize()

    # At 12, when a ends, c has been ready since 6 and b only since a ended.
    assert ends_us(device) == [12, 14, 13]


def test_copies_each_way_and_kernels_run_at_once_in_three_streams():
    device = gpu()
    up, down = device.Stream(), device.Stream()
    source, target = device.host_empty(20, pin_memory=True), device.host_empty(20, pin_memory=True)
    there, result = device.empty(20), device.empty(20)
    device.copy(there, source, non_blocking=True, stream=up)
    device.copy(target, result, non_blocking=True, stream=down)
    device.launch("k", duration_s=20 * US)
    assert pytest.approx(8) == host_us(device)
    device.synchronize()

    assert pytest.approx(28) == host_us(device)
    assert ends_us(device) == [23, 26, 28]


def test_two_copies_in_one_direction_share_an_engine():
    device = gpu()
    other = device.Stream()
    source, there = device.host_empty(20, pin_memory=True), device.empty(20)
    device.copy(there[:10], source[:10], non_blocking=True)
    device.copy(there[10:], source[10:], non_blocking=True, stream=other)
    device.synchronize()

    assert pytest.approx(3 + 10 + 10) == host_us(device)


def test_a_copy_waits_for_the_kernel_before_it_in_its_stream():
    device = gpu()
    device.launch("k", duration_s=50 * US)
    device.copy(device.host_empty(10, pin_memory=True), device.empty(10), non_blocking=True)
    device.synchronize()

    assert pytest.approx(2 + 50 + 10) == host_us(device)


@pytest.mark.parametrize(
    ("pinned", "non_blocking", "returns_us", "done_us"),
    [(True, True, 3, 13), (True, False, 13, 13), (False, True, 23, 23), (False, False, 23, 23)],
)
def test_only_a_pinned_non_blocking_copy_lets_the_host_go_on(pinned, non_blocking, returns_us, done_us):
    device = gpu()
    source, there = device.host_empty(10, pin_memory=pinned), device.empty(10)
    device.copy(there, source, non_blocking=non_blocking)
    assert pytest.approx(returns_us) == host_us(device)
    device.synchronize()

    assert pytest.approx(done_us) == host_us(device)


def test_every_copy_over_the_link_starts_with_its_latency():
    device = gpu(copy_latency_s=7 * US)
    device.copy(device.empty(10), device.host_empty(10, pin_memory=True))

    assert pytest.approx(3 + 7 + 10) == host_us(device)


def test_a_copy_on_the_device_reads_and_writes_at_the_memorys_rate_and_does_not_block():
    device = gpu(memory_bandwidth_byte_per_s=1e6)
    device.copy(device.empty(10), device.empty(10))
    assert pytest.approx(3) == host_us(device)
    device.synchronize()

    assert pytest.approx(3 + 2 * 10) == host_us(device)


def test_a_copy_on_the_host_is_the_hosts_own_work():
    device = gpu()
    device.copy(device.host_empty(10), device.host_empty(10))

    assert pytest.approx(20) == host_us(device)


def test_reading_a_number_waits_for_the_stream_and_for_the_copy():
    device = gpu()
    loss = device.empty(4)
    device.launch("k", duration_s=10 * US, writes=loss)
    value = device.item(loss)

    assert 1 == value
    assert pytest.approx(2 + 10 + 4) == host_us(device)


def test_reading_a_number_does_not_wait_for_other_streams():
    device = gpu()
    device.launch("long", duration_s=1.0)
    loss, other = device.empty(4), device.Stream()
    device.item(loss, stream=other)

    assert pytest.approx(2 + 3 + 4) == host_us(device)


def test_a_stream_that_waits_for_an_event_starts_after_it_and_the_host_goes_on():
    device = gpu()
    other = device.Stream()
    source = device.host_empty(50, pin_memory=True)
    there = device.empty(50)
    device.copy(there, source, non_blocking=True, stream=other)
    device.current_stream().wait_stream(other)
    device.launch("k", duration_s=10 * US)
    assert pytest.approx(5) == host_us(device)
    device.synchronize()

    assert pytest.approx(3 + 50 + 10) == host_us(device)


def test_waiting_for_an_event_means_its_latest_record_at_the_time_of_the_call():
    device = gpu()
    event, other = device.Event(), device.Stream()
    device.launch("a", duration_s=10 * US)
    event.record()
    other.wait_event(event)
    device.launch("b", duration_s=10 * US)
    event.record()
    there, source = device.empty(5), device.host_empty(5, pin_memory=True)
    device.copy(there, source, non_blocking=True, stream=other)
    device.synchronize()

    # a ends at 12, so the copy ends at 17; b ends at 22.
    assert ends_us(device) == [12, 22, 17]


def test_a_chain_of_events_across_streams_is_followed_even_where_it_is_long():
    device = gpu()
    one, two = device.Stream(), device.Stream()
    device.launch("k", duration_s=10 * US)
    for _ in range(5000):
        one.wait_stream(device.default_stream())
        two.wait_stream(one)
        device.default_stream().wait_stream(two)
    device.launch("k", duration_s=10 * US)
    device.synchronize()

    assert pytest.approx(22) == host_us(device)


def test_event_times_are_those_of_the_device_in_milliseconds():
    device = gpu()
    start, end = device.Event(enable_timing=True), device.Event(enable_timing=True)
    start.record()
    device.launch("k", duration_s=3000 * US)
    end.record()
    end.synchronize()

    # The start is reached at 0, the kernel begins when its launch returns.
    assert 3.002 == start.elapsed_time(end)
    assert -3.002 == end.elapsed_time(start)


def test_synchronising_with_an_event_or_stream_leaves_later_work_running():
    device = gpu()
    event = device.Event()
    device.launch("a", duration_s=10 * US)
    event.record()
    device.launch("b", duration_s=10 * US)
    event.synchronize()
    assert pytest.approx(12) == host_us(device)
    device.current_stream().synchronize()

    assert pytest.approx(22) == host_us(device)


def test_queries_tell_what_is_over_and_do_not_wait():
    device = gpu()
    event, stream = device.Event(), device.Stream()
    device.launch("k", duration_s=10 * US, stream=stream)
    event.record(stream)
    assert (False, False, True) == (event.query(), stream.query(), device.default_stream().query())
    device.host_work(10 * US)

    assert (True, True) == (event.query(), stream.query())
    assert pytest.approx(12) == host_us(device)


def test_the_host_blocks_when_the_launch_queue_is_full():
    device = gpu(queue_depth=2)
    for _ in range(2):
        device.launch("k", duration_s=10 * US)
    assert pytest.approx(4) == host_us(device)
    device.launch("k", duration_s=10 * US)
    # Room at 12, when the first kernel ends; then the launch.
    assert pytest.approx(14) == host_us(device)
    device.launch("k", duration_s=10 * US)
    assert pytest.approx(24) == host_us(device)
    device.synchronize()

    assert pytest.approx(42) == host_us(device)


def test_each_stream_has_a_queue_of_its_own():
    device = gpu(queue_depth=1)
    other = device.Stream()
    device.launch("k", duration_s=10 * US)
    device.launch("k", duration_s=10 * US, stream=other)

    assert pytest.approx(4) == host_us(device)


def test_a_launch_bound_program_never_fills_the_queue():
    device = gpu(queue_depth=2)
    for _ in range(50):
        device.launch("k", duration_s=1 * US)

    assert pytest.approx(100) == host_us(device)


def test_the_first_call_makes_the_context_and_each_kernel_loads_once():
    device = gpu(context_init_s=1000 * US, module_load_s=100 * US)
    device.launch("a", duration_s=0.0)
    assert pytest.approx(1102) == host_us(device)
    device.launch("a", duration_s=0.0)
    assert pytest.approx(1104) == host_us(device)
    device.launch("b", duration_s=0.0)

    assert pytest.approx(1206) == host_us(device)


@pytest.mark.parametrize("wake", ["empty", "synchronize", "record"])
def test_any_first_use_of_the_device_makes_the_context(wake):
    device = gpu(context_init_s=1000 * US)
    calls = {
        "empty": lambda: device.empty(1),
        "synchronize": device.synchronize,
        "record": lambda: device.Event().record(),
    }
    calls[wake]()

    assert pytest.approx(1000) == host_us(device)


def test_host_memory_and_clock_readings_make_no_context():
    device = gpu(context_init_s=1.0)
    device.host_empty(10)

    assert 0 == host_us(device)


def test_the_clock_costs_time_and_has_a_resolution():
    device = gpu(clock_resolution_s=100 * US, clock_read_cost_s=30 * US)
    readings_us = [round(host_us(device)) for _ in range(10)]

    # True times are 30, 60, 90, 120, ... µs.
    assert [0, 0, 0, 100, 100, 100, 200, 200, 200, 300] == readings_us


@pytest.mark.parametrize(
    ("work", "expected_us"),
    [
        ({"flops": 8, "moved_bytes": 4}, 8),
        ({"flops": 8, "dtype": "half"}, 2),
        ({"moved_bytes": 24}, 12),
        ({"flops": 8, "moved_bytes": 24}, 12),
    ],
)
def test_work_takes_the_longer_of_arithmetic_and_traffic(work, expected_us):
    device = gpu(peak_flop_per_s={"fp32": 1e6, "fp16": 4e6}, memory_bandwidth_byte_per_s=2e6)

    assert expected_us == kernel_us(device, **work)


def test_no_priced_kernel_is_shorter_than_the_floor_but_a_stated_duration_is_kept():
    device = gpu(kernel_floor_s=5 * US)
    device.launch("small", moved_bytes=1)
    device.launch("stated", duration_s=1 * US)
    device.synchronize()

    assert pytest.approx(2 + 5 + 1) == host_us(device)


def kernel_us(device, **work):
    """How long one kernel runs, in µs."""
    device.launch("k", **work)
    device.synchronize()
    span = [span for span in device.timeline.spans if span.kind == "kernel"][-1]
    return round((span.end_s - span.start_s) / US, 6)


L2 = {"memory_bandwidth_byte_per_s": 1e6, "l2_bandwidth_byte_per_s": 4e6, "l2_bytes": 100}


def test_a_small_working_set_is_faster_the_second_time():
    device = gpu(**L2)

    assert (40, 10, 10) == tuple(kernel_us(device, moved_bytes=40) for _ in range(3))


def test_a_working_set_larger_than_the_cache_never_gets_faster():
    device = gpu(**L2)

    assert (400, 400) == tuple(kernel_us(device, moved_bytes=400) for _ in range(2))


def test_touching_enough_other_memory_makes_a_working_set_cold_again():
    device = gpu(**L2)
    small, flush = device.empty(40), device.empty(200)
    assert (40, 10) == (kernel_us(device, reads=small), kernel_us(device, reads=small))
    kernel_us(device, writes=flush)

    assert 40 == kernel_us(device, reads=small)


def test_the_least_recently_used_memory_leaves_the_cache_first():
    device = gpu(**L2)
    first, second, third = (device.empty(40) for _ in range(3))
    for buffer in (first, second, first, third):
        kernel_us(device, reads=buffer)

    assert (10, 40) == (kernel_us(device, reads=first), kernel_us(device, reads=second))


def test_the_cache_follows_the_order_of_execution_not_of_issue():
    device = gpu(**L2)
    side = device.Stream()
    buffer, source, there = device.empty(40), device.host_empty(50, pin_memory=True), device.empty(50)
    device.copy(there, source, non_blocking=True, stream=side)
    device.launch("late", reads=buffer, stream=side)
    device.launch("early", reads=buffer)
    device.synchronize()
    spans = {span.name: round((span.end_s - span.start_s) / US) for span in device.timeline.spans if span.row != "host"}

    assert (40, 10) == (spans["early"], spans["late"])


def test_the_same_program_takes_the_same_time_to_the_bit():
    def run():
        device = VirtualGPU("H100-SXM")
        x = device.empty(1 << 20)
        for step in range(200):
            device.launch(f"k{step % 7}", flops=1e9 / 3 * (step % 5), reads=x, dtype="bf16")
        device.synchronize()
        return device.now_s(), device.program

    assert run() == run()


def test_a_timeline_does_not_change_what_comes_after():
    def run(*, looking):
        device = gpu()
        other = device.Stream()
        device.launch("a", duration_s=10 * US)
        device.launch("b", duration_s=10 * US)
        if looking:
            assert device.timeline.spans
        device.launch("c", duration_s=1 * US, stream=other)
        device.synchronize()
        return replay(device.program, ROUND).timeline

    assert run(looking=False) == run(looking=True)
