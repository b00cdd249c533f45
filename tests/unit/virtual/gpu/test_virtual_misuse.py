"""Misuse is an error that says what, why and what next, and leaves no trace in the record."""

from __future__ import annotations

import math

import pytest

from edl_labs.virtual import Stream, VirtualGPU, VirtualGPUError, VirtualMachine

MACHINE = VirtualMachine(memory_bytes=1000)


class World:
    """A device with some memory, an event and a freed buffer, and another device."""

    def __init__(self):
        self.gpu, self.other = VirtualGPU(MACHINE), VirtualGPU(MACHINE)
        self.device, self.pinned = self.gpu.empty(100, name="d"), self.gpu.host_empty(100, pin_memory=True)
        self.pageable, self.freed = self.gpu.host_empty(100, name="p"), self.gpu.empty(8, name="f")
        self.gpu.free(self.freed)
        self.event, self.plain, self.fresh = (self.gpu.Event(enable_timing=timing) for timing in (True, False, True))
        self.gpu.launch("long", duration_s=1.0)
        self.event.record()
        self.plain.record()
        self.foreign = self.other.Event(enable_timing=True)
        self.foreign.record()
        self.theirs = self.other.empty(100)


MISUSES = {
    "taking the time of an event that was never recorded": (
        lambda w: w.event.elapsed_time(w.fresh),
        "cannot read the time of event 2: it was never recorded",
    ),
    "negative duration": (lambda w: w.gpu.launch("k", duration_s=-1e-6), "duration_s is -1e-06"),
    "NaN duration": (lambda w: w.gpu.launch("k", duration_s=math.nan), "duration_s is nan"),
    "infinite duration": (lambda w: w.gpu.launch("k", duration_s=math.inf), "duration_s is inf"),
    "text as duration": (lambda w: w.gpu.launch("k", duration_s="1 ms"), "duration_s is '1 ms'"),
    "bool as duration": (lambda w: w.gpu.launch("k", duration_s=True), "duration_s is True"),
    "huge duration": (lambda w: w.gpu.launch("k", duration_s=10**5000), "duration_s is a huge number"),
    "negative host work": (lambda w: w.gpu.host_work(-1), "duration_s is -1"),
    "duration and work": (
        lambda w: w.gpu.launch("k", duration_s=1e-6, flops=1.0),
        "k was launched with both a duration and an amount of work",
    ),
    "negative work": (lambda w: w.gpu.launch("k", flops=-1.0), "a kernel cannot do -1.0 FLOPs"),
    "fractional bytes": (lambda w: w.gpu.launch("k", moved_bytes=0.5), "traffic cannot have 0.5 bytes"),
    "a rate that the machine lacks": (
        lambda w: w.gpu.launch("k", flops=1.0, dtype="fp16"),
        "ideal has no peak rate for fp16",
    ),
    "a kernel without a name": (lambda w: w.gpu.launch("", duration_s=0.0), "a kernel needs a name"),
    "a kernel with a list for a name": (lambda w: w.gpu.launch([], duration_s=0.0), "a kernel needs a name"),
    "a copy of nothing": (lambda w: w.gpu.copy(w.device, None), "the source is NoneType, not a buffer"),
    "a copy of a freed buffer": (lambda w: w.gpu.copy(w.freed, w.pinned[:8]), "the destination f[0:8] has been freed"),
    "freeing twice": (lambda w: w.gpu.free(w.freed), "the buffer f[0:8] has been freed"),
    "a copy to another device": (
        lambda w: w.gpu.copy(w.theirs, w.device),
        "the destination buffer0[0:100] belongs to another VirtualGPU",
    ),
    "a copy of two sizes": (
        lambda w: w.gpu.copy(w.device[:4], w.pinned),
        "cannot copy buffer1[0:100] to d[0:4]: 100 bytes do not fit into 4 bytes",
    ),
    "a kernel on pageable memory": (
        lambda w: w.gpu.launch("k", duration_s=0.0, reads=w.pageable),
        "a kernel cannot access p[0:100]",
    ),
    "the host in device memory": (lambda w: w.gpu.host_work(0.0, reads=w.device), "the host cannot access d[0:100]"),
    "elementwise of two sizes": (
        lambda w: w.gpu.launch("k", duration_s=0.0, reads=w.device, writes=w.device[:4], elementwise=True),
        "an elementwise kernel needs inputs and outputs of the same size",
    ),
    "item of much": (lambda w: w.gpu.item(w.device), "d[0:100], of 100 bytes, is not a single number on the device"),
    "item of host memory": (
        lambda w: w.gpu.item(w.pinned[:4]),
        "buffer1[0:4], of 4 bytes, is not a single number on the device",
    ),
    "an empty slice": (lambda w: w.device[4:4], "bytes 4 to 4 are outside this buffer of 100 bytes"),
    "a slice beyond the end": (lambda w: w.device[50:101], "bytes 50 to 101 are outside this buffer of 100 bytes"),
    "a fractional slice": (lambda w: w.device[0:2.5], "a buffer cannot be sliced from 0 to 2.5"),
    "one element": (lambda w: w.device[3], "[3] does not name a part of a buffer"),
    "out of memory": (lambda w: w.gpu.empty(901), "out of memory: 901 bytes requested, 900 left"),
    "no memory": (lambda w: w.gpu.empty(0), "a buffer cannot have 0 bytes"),
    "elapsed time across devices": (
        lambda w: w.event.elapsed_time(w.foreign),
        "cannot read the time of event 0 here: it belongs to another device",
    ),
    "elapsed time of an untimed event": (
        lambda w: (w.gpu.synchronize(), w.event.elapsed_time(w.plain)),
        "cannot read the time of event 1: it was created without timing",
    ),
    "elapsed time of an event that is not reached": (
        lambda w: w.event.elapsed_time(w.event),
        "cannot read the time of event 0: the device has not reached it",
    ),
    "elapsed time of nothing": (lambda w: w.event.elapsed_time(None), "cannot read the time of None"),
    "waiting for another device's event": (
        lambda w: w.gpu.current_stream().wait_event(w.foreign),
        "cannot wait for event 0 here: it belongs to another device",
    ),
    "recording another device's event": (
        lambda w: w.gpu.current_stream().record_event(w.foreign),
        "cannot record event 0 here: it belongs to another device",
    ),
    "another device's stream": (
        lambda w: w.gpu.launch("k", duration_s=0.0, stream=w.other.default_stream()),
        "stream 0 is not a stream of this device",
    ),
    "a stream that is a number": (
        lambda w: w.gpu.launch("k", duration_s=0.0, stream=3),
        "3 is not a stream of this device",
    ),
    "entering no stream": (lambda w: w.gpu.stream("s"), "'s' is not a stream of this device"),
    "too many streams": (lambda w: [w.gpu.Stream() for _ in range(200)], "a device has at most 128 streams here"),
    "too many regions": (
        lambda w: w.gpu.launch("k", duration_s=0.0, reads=[w.device] * 65),
        "one operation reads and writes 65 regions",
    ),
}


@pytest.mark.parametrize(("misuse", "what"), MISUSES.values(), ids=MISUSES)
def test_misuse_says_what_why_and_what_next(misuse, what):
    with pytest.raises(VirtualGPUError) as caught:
        misuse(World())

    assert what == caught.value.what
    assert caught.value.why
    assert caught.value.next


@pytest.mark.parametrize(("misuse", "what"), MISUSES.values(), ids=MISUSES)
def test_misuse_is_not_recorded_and_costs_no_memory(misuse, what):
    world, kept = World(), World()
    with pytest.raises(VirtualGPUError):
        misuse(world)
    if what not in (
        "cannot read the time of event 1: it was created without timing",
        "a device has at most 128 streams here",
    ):
        assert kept.gpu.program == world.gpu.program
        assert kept.gpu.core.host_ps == world.gpu.core.host_ps


def test_the_current_stream_comes_back_after_an_error_inside_its_block():
    gpu = VirtualGPU(MACHINE)
    side = gpu.Stream()
    with pytest.raises(VirtualGPUError), gpu.stream(side):
        gpu.launch("k", duration_s=-1.0)

    assert gpu.default_stream() is gpu.current_stream()


def test_a_stream_context_can_be_entered_again():
    gpu = VirtualGPU(MACHINE)
    context = gpu.stream(gpu.Stream())
    with context, context:
        assert 1 == gpu.current_stream().index

    assert 0 == gpu.current_stream().index
    assert isinstance(gpu.current_stream(), Stream)


def test_freed_memory_can_be_had_again():
    gpu = VirtualGPU(MACHINE)
    for _ in range(3):
        gpu.free(gpu.empty(1000))

    assert gpu.empty(1000)


def test_a_program_without_end_is_stopped(monkeypatch):
    monkeypatch.setattr("edl_labs.virtual.gpu.core.MAX_OPERATIONS", 1000)
    gpu = VirtualGPU(MACHINE)
    for _ in range(1000):
        gpu.launch("k", duration_s=1e-6)
    with pytest.raises(VirtualGPUError) as caught:
        gpu.launch("k", duration_s=1e-6)

    assert "the program has more than 1,000 operations" == caught.value.what


def test_an_unknown_parameter_is_refused_with_the_list_of_known_ones():
    with pytest.raises(VirtualGPUError) as caught:
        VirtualGPU("H200", launch_cost_s=1e-6)

    assert "a VirtualGPU has no parameter 'launch_cost_s'" == caught.value.what
    assert "launch_overhead_s" in caught.value.why


@pytest.mark.parametrize(
    "wrong",
    [
        {"launch_overhead_s": -1e-6},
        {"launch_overhead_s": math.nan},
        {"launch_overhead_s": True},
        {"clock_resolution_s": 0.0},
        {"link_byte_per_s": 0.0},
        {"memory_bandwidth_byte_per_s": math.inf},
        {"queue_depth": 0},
        {"queue_depth": 2.5},
        {"l2_bytes": -1},
        {"memory_bytes": 1e9},
        {"name": 7},
        {"peak_flop_per_s": 3},
        {"peak_flop_per_s": {"fp32": -1.0}},
    ],
    ids=str,
)
def test_a_parameter_that_cannot_be_is_refused(wrong):
    with pytest.raises(VirtualGPUError) as caught:
        VirtualMachine(**wrong)

    assert next(iter(wrong)) in caught.value.what
