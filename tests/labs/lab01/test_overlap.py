"""transfer_overlap: other right schedules pass; races, shortcuts and slow schedules are told apart."""

from __future__ import annotations

import pytest

from edl_labs.exercises.lab01_gpu_basics.transfer_overlap import KERNEL
from edl_labs.virtual import VirtualGPU

COUNTS = (2, 3, 4, 6, 8, 12, 18, 27, 40, 60, 90)


def parts_of(nbytes, count):
    step = -(-nbytes // count)
    return [slice(low, min(low + step, nbytes)) for low in range(0, nbytes, step)]


def rehearsed(schedule):
    """`schedule(gpu, nbytes, count, load=, kernel=)` with the best of COUNTS."""

    def run(gpu, nbytes, *, load, kernel):
        def spent_s(count):
            scratch = VirtualGPU(gpu.machine)
            schedule(scratch, nbytes, count, load=load, kernel=kernel)
            return scratch.now_s()

        return schedule(gpu, nbytes, min(COUNTS, key=spent_s), load=load, kernel=kernel)

    return run


def three_streams_with_events(gpu, nbytes, count, *, load, kernel):
    source, result = gpu.host_empty(nbytes, pin_memory=True), gpu.host_empty(nbytes, pin_memory=True)
    before, after = gpu.empty(nbytes), gpu.empty(nbytes)
    into, work, out = gpu.Stream(), gpu.Stream(), gpu.Stream()
    load(gpu, source)
    for part in parts_of(nbytes, count):
        gpu.copy(before[part], source[part], non_blocking=True, stream=into)
        work.wait_event(into.record_event())
        with gpu.stream(work):
            kernel(gpu, after[part], before[part])
        out.wait_event(work.record_event())
        gpu.copy(result[part], after[part], non_blocking=True, stream=out)
    out.synchronize()
    return result


def ring_of_buffers(gpu, nbytes, count, *, load, kernel, waits=True):
    source, result = gpu.host_empty(nbytes, pin_memory=True), gpu.host_empty(nbytes, pin_memory=True)
    parts = parts_of(nbytes, count)
    size = parts[0].stop
    ring = [(gpu.empty(size), gpu.Stream()) for _ in range(4)]
    load(gpu, source)
    for turn, part in enumerate(parts):
        buffer, stream = ring[turn % 4]
        stream = stream if waits else ring[(turn // 4) % 4][1]
        inside = buffer[0 : part.stop - part.start]
        with gpu.stream(stream):
            gpu.copy(inside, source[part], non_blocking=True)
            kernel(gpu, inside, inside)
            gpu.copy(result[part], inside, non_blocking=True)
    gpu.synchronize()
    return result


def lanes(gpu, nbytes, count, *, load, kernel, work=None, pinned=True, waits=True):
    source, result = gpu.host_empty(nbytes, pin_memory=pinned), gpu.host_empty(nbytes, pin_memory=pinned)
    inside, streams = gpu.empty(nbytes), [gpu.Stream() for _ in range(3)]
    load(gpu, source)
    for turn, part in enumerate(parts_of(nbytes, count)):
        with gpu.stream(streams[turn % 3]):
            gpu.copy(inside[part], source[part], non_blocking=True)
            (work or kernel)(gpu, inside[part], inside[part])
            gpu.copy(result[part], inside[part], non_blocking=True)
    if waits:
        gpu.synchronize()
    return result


@pytest.mark.parametrize("schedule", [three_streams_with_events, ring_of_buffers, lanes])
def test_other_good_schedules_pass(judged, schedule):
    assert "passed" == judged("transfer_overlap", run_overlapped=rehearsed(schedule)).state


def test_a_ring_whose_buffers_are_filled_while_in_use_is_a_race(judged):
    def racing(gpu, nbytes, *, load, kernel):
        return ring_of_buffers(gpu, nbytes, 16, load=load, kernel=kernel, waits=False)

    assert (
        "your program fills a device buffer again while it is still in use"
        == judged("transfer_overlap", run_overlapped=racing).what
    )


def test_waiting_for_one_stream_of_three_leaves_the_result_unread(judged):
    def hasty(gpu, nbytes, *, load, kernel):
        result = lanes(gpu, nbytes, 12, load=load, kernel=kernel, waits=False)
        gpu.streams[1].synchronize()
        return result

    assert (
        "your program reads the result before "
        "its copy has ended" == judged("transfer_overlap", run_overlapped=hasty).what
    )


def test_the_kernel_applied_twice_is_wrong_data(judged):
    def twice(gpu, nbytes, *, load, kernel):
        def both(gpu, dst, src):
            kernel(gpu, dst, src)
            kernel(gpu, dst, dst)

        return lanes(gpu, nbytes, 12, load=load, kernel=kernel, work=both)

    assert "part of the result is wrong" == judged("transfer_overlap", run_overlapped=twice).what


def test_parts_that_swap_places_are_wrong_data(judged):
    def swapped(gpu, nbytes, *, load, kernel):
        source, result = gpu.host_empty(nbytes, pin_memory=True), gpu.host_empty(nbytes, pin_memory=True)
        inside, half = gpu.empty(nbytes), nbytes // 2
        load(gpu, source)
        gpu.copy(inside, source, non_blocking=True)
        kernel(gpu, inside, inside)
        gpu.copy(result[:half], inside[half : 2 * half], non_blocking=True)
        gpu.copy(result[half : 2 * half], inside[:half], non_blocking=True)
        gpu.synchronize()
        return result

    assert "part of the result is wrong" == judged("transfer_overlap", run_overlapped=swapped).what


@pytest.mark.parametrize("duration_s", [0.0, 1e-6])
def test_a_cheaper_kernel_under_the_same_name_is_refused(judged, duration_s):
    def cheaper(gpu, nbytes, *, load, kernel):
        def cheap(gpu, dst, src):
            gpu.launch(KERNEL, duration_s=duration_s, reads=src, writes=dst, elementwise=True)

        return lanes(gpu, nbytes, 12, load=load, kernel=kernel, work=cheap)

    assert "your program launches a kernel of its own" == judged("transfer_overlap", run_overlapped=cheaper).what


def test_a_result_that_the_host_wrote_itself_is_wrong_data(judged):
    def by_hand(gpu, nbytes, *, load, kernel):
        result = gpu.host_empty(nbytes, pin_memory=True)
        load(gpu, result)
        return result

    assert "part of the result is wrong" == judged("transfer_overlap", run_overlapped=by_hand).what


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (lambda gpu, nbytes: None, "your function did not return a buffer"),
        (lambda gpu, nbytes: gpu.host_empty(nbytes - 1), "your function did not return the whole result"),
    ],
)
def test_what_comes_back_must_be_the_whole_result(judged, answer, told):
    outcome = judged("transfer_overlap", run_overlapped=lambda gpu, nbytes, *, load, kernel: answer(gpu, nbytes))

    assert told == outcome.what


def test_a_device_buffer_is_no_result_for_the_host(judged):
    def on_the_device(gpu, nbytes, *, load, kernel):
        return gpu.empty(nbytes)

    assert 0 == judged("transfer_overlap", run_overlapped=on_the_device).points


@pytest.mark.parametrize(
    ("count", "told"),
    [
        (8, "the result is right and work overlaps, but your schedule is slower than it could be"),
        (64, "your program has so many parts that the host cannot keep up"),
    ],
)
def test_no_fixed_number_of_parts_is_good_enough(judged, count, told):
    def fixed(gpu, nbytes, *, load, kernel):
        return lanes(gpu, nbytes, count, load=load, kernel=kernel)

    assert told == judged("transfer_overlap", run_overlapped=fixed).what


def test_a_model_made_faster_by_hand_is_found_out_by_the_replay(judged):
    def warped(gpu, nbytes, *, load, kernel):
        result = lanes(gpu, nbytes, 2, load=load, kernel=kernel)
        gpu.core.host_ps = 0
        gpu.now_s()
        return result

    assert 0 == judged("transfer_overlap", run_overlapped=warped).points


def test_kernels_that_share_the_device_are_not_the_ones_of_the_exercise(judged):
    def sharing(gpu, nbytes, *, load, kernel):
        launch = gpu.launch
        gpu.launch = lambda name, **work: launch(name, **work, blocks=1)
        return lanes(gpu, nbytes, 8, load=load, kernel=kernel)

    assert (
        "your program passes a number of blocks when it launches a kernel"
        == judged("transfer_overlap", run_overlapped=sharing).what
    )
