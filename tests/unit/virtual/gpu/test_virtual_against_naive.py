"""Random programs end, and read, as in a slow scheduler that is written differently: all of it again at every wait."""

from __future__ import annotations

import random

import pytest

from edl_labs.virtual import VirtualGPU, VirtualMachine, replay

MACHINE = VirtualMachine(
    launch_overhead_s=2e-6,
    copy_overhead_s=3e-6,
    event_overhead_s=1e-6,
    sync_overhead_s=1e-6,
    queue_depth=3,
    link_byte_per_s=1e6,
    pageable_byte_per_s=5e5,
)


class Naive:
    """Times in whole µs; every question schedules all operations from the start."""

    def __init__(self):
        self.host = 0
        self.issued = []  # (stream, engine, duration, arrival, index of the mark it waits for)
        self.marks = {}

    def issue(self, stream, engine, duration, *, overhead, awaits=None):
        mine = [index for index, operation in enumerate(self.issued) if operation[0] == stream]
        if len(mine) >= 3:
            self.host = max(self.host, self.ends()[mine[-3]])
        self.host += overhead
        self.issued.append((stream, engine, duration, self.host, awaits))
        return len(self.issued) - 1

    def ends(self):
        ends, free = {}, {}
        while len(ends) < len(self.issued):
            index, start = min(self.startable(ends, free), key=lambda choice: choice[1:])[0:2]
            _, engine, duration, _, _ = self.issued[index]
            ends[index] = start + duration
            if engine:
                free[engine] = ends[index]
        return ends

    def startable(self, ends, free):
        """(operation, start, ready, index) of every operation that may be next in its stream."""
        seen = set()
        for index, (stream, engine, _, arrival, awaits) in enumerate(self.issued):
            if index in ends or stream in seen:
                continue
            seen.add(stream)
            if awaits is not None and awaits not in ends:
                continue
            before = [ends[other] for other in ends if self.issued[other][0] == stream]
            ready = max([arrival, *before, *([] if awaits is None else [ends[awaits]])])
            # Marks use no engine: they never make anything wait in a queue.
            yield index, max(ready, free.get(engine, 0)), bool(engine), ready, index

    def wait(self, *indices):
        ends = self.ends()
        self.host = max([self.host, *(ends[index] for index in indices)])


def drawn(rng):
    """A program as (name, numbers) on three streams and three events."""
    names = ["launch"] * 8 + ["up", "down", "up blocking", "pageable", "record", "record", "wait", "wait"]
    names += ["work", "sync", "sync stream", "sync event", "item", "now", "now", "query"]
    return [
        (rng.choice(names), rng.randrange(3), rng.randrange(3), rng.choice([0, 1, 2, 5, 9, 30]))
        for _ in range(rng.randrange(5, 60))
    ]


class Both:
    """Runs a drawn program on the model and on the naive scheduler, and compares what can be read."""

    def __init__(self):
        self.gpu, self.naive = VirtualGPU(MACHINE), Naive()
        self.streams = [self.gpu.default_stream(), self.gpu.Stream(), self.gpu.Stream()]
        self.events = [self.gpu.Event(enable_timing=True) for _ in range(3)]
        self.device, self.pinned = self.gpu.empty(64), self.gpu.host_empty(64, pin_memory=True)
        self.staged = self.gpu.host_empty(64)

    def run(self, program):
        for name, stream, event, size in program:
            getattr(self, name.replace(" ", "_"))(stream, event, size)
            self.same()
        self.sync(0, 0, 0)
        self.same()

    def same(self):
        assert self.naive.host == round(self.gpu.now_s() * 1e6, 6)

    def launch(self, stream, event, size):
        self.gpu.launch("k", duration_s=size * 1e-6, stream=self.streams[stream])
        self.naive.issue(stream, "compute", size, overhead=2)

    def copy(self, stream, dst, src, engine, duration, *, non_blocking):
        self.gpu.copy(dst, src, non_blocking=non_blocking, stream=self.streams[stream])
        index = self.naive.issue(stream, engine, duration, overhead=3)
        if not non_blocking:
            self.naive.wait(index)

    def up(self, stream, event, size):
        part = slice(0, size + 1)
        self.copy(stream, self.device[part], self.pinned[part], "up", size + 1, non_blocking=True)

    def down(self, stream, event, size):
        part = slice(0, size + 1)
        self.copy(stream, self.pinned[part], self.device[part], "down", size + 1, non_blocking=True)

    def up_blocking(self, stream, event, size):
        part = slice(0, size + 1)
        self.copy(stream, self.device[part], self.pinned[part], "up", size + 1, non_blocking=False)

    def pageable(self, stream, event, size):
        part = slice(0, size + 1)
        self.copy(stream, self.device[part], self.staged[part], "up", 2 * (size + 1), non_blocking=False)

    def record(self, stream, event, size):
        self.events[event].record(self.streams[stream])
        self.naive.marks[event] = self.naive.issue(stream, None, 0, overhead=1)

    def wait(self, stream, event, size):
        if event in self.naive.marks:
            self.streams[stream].wait_event(self.events[event])
            self.naive.issue(stream, None, 0, overhead=1, awaits=self.naive.marks[event])

    def work(self, stream, event, size):
        self.gpu.host_work(size * 1e-6)
        self.naive.host += size

    def sync(self, stream, event, size):
        self.gpu.synchronize()
        self.naive.host += 1
        self.naive.wait(*range(len(self.naive.issued)))

    def sync_stream(self, stream, event, size):
        self.streams[stream].synchronize()
        self.naive.host += 1
        self.naive.wait(*(index for index, issued in enumerate(self.naive.issued) if issued[0] == stream))

    def sync_event(self, stream, event, size):
        if event in self.naive.marks:
            self.events[event].synchronize()
            self.naive.host += 1
            self.naive.wait(self.naive.marks[event])

    def item(self, stream, event, size):
        self.gpu.item(self.device[0:4], stream=self.streams[stream])
        self.naive.wait(self.naive.issue(stream, "down", 4, overhead=3))

    def now(self, stream, event, size):
        self.same()

    def query(self, stream, event, size):
        if event in self.naive.marks:
            self.naive.host += 1
            reached = self.naive.ends()[self.naive.marks[event]] <= self.naive.host

            assert reached == self.events[event].query()


@pytest.mark.parametrize("seed", range(100))
def test_a_random_program_agrees_with_the_naive_scheduler_and_with_its_replay(seed):
    both = Both()
    both.run(drawn(random.Random(seed)))
    spans = {span.issue: span.end_s for span in both.gpu.timeline.spans if span.kind in ("kernel", "copy")}
    ends = [end for index, end in sorted(both.naive.ends().items()) if both.naive.issued[index][1]]

    assert ends == [round(end_s * 1e6, 6) for _, end_s in sorted(spans.items())]
    assert pytest.approx(both.naive.host * 1e-6) == replay(both.gpu.program, MACHINE).makespan_s


def read(program, *, depth, watched):
    """The record of a program with a reading after each call; a device that is watched takes no short ways."""
    gpu = VirtualGPU(MACHINE, queue_depth=depth)
    gpu.core.traced = watched
    streams, events = [gpu.default_stream(), gpu.Stream()], [gpu.Event(enable_timing=True) for _ in range(2)]
    there, here = gpu.empty(64), gpu.host_empty(64, pin_memory=True)
    calls = {
        "launch": lambda s, e, size: gpu.launch("k", duration_s=size * 1e-6, stream=streams[s]),
        "other": lambda s, e, size: gpu.launch(f"k{size}", duration_s=size * 1e-6, writes=there, stream=streams[s]),
        "work": lambda s, e, size: gpu.host_work(size * 1e-6),
        "sync": lambda s, e, size: gpu.synchronize(),
        "sync stream": lambda s, e, size: streams[s].synchronize(),
        "record": lambda s, e, size: events[e].record(streams[s]),
        "wait": lambda s, e, size: streams[s].wait_event(events[e]),
        "query": lambda s, e, size: streams[s].query(),
        "copy": lambda s, e, size: gpu.copy(there[:size], here[:size], non_blocking=True, stream=streams[s]),
        "item": lambda s, e, size: gpu.item(there[:4], stream=streams[s]),
    }
    for name, *numbers in program:
        calls[name](*numbers)
        gpu.now_s()
    gpu.synchronize()
    return gpu.program, gpu.core.host_ps


@pytest.mark.parametrize("depth", [None, 1, 2, 50])
@pytest.mark.parametrize("seed", range(40))
def test_the_short_way_of_a_stream_that_is_alone_changes_nothing(seed, depth):
    rng = random.Random(seed)
    rare = ["other", "work", "sync", "sync stream", "record", "wait", "query", "copy", "item"]
    program = []
    while len(program) < 150:
        stream = rng.choice([0, 0, 0, 1])
        program += [("launch", stream, 0, rng.choice([0, 1, 2, 5, 30])) for _ in range(rng.choice([1, 2, 5, 60]))]
        program.append((rng.choice(rare), rng.randrange(2), rng.randrange(2), rng.choice([1, 2, 5, 30])))
    alone, watched = (read(program, depth=depth, watched=watched) for watched in (False, True))

    assert watched == alone
    assert replay(alone[0], MACHINE.replace(queue_depth=depth)).host_s == alone[1] / 1e12
