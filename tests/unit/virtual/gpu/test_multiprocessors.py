"""Kernels of blocks share SMs: waves, priorities, forks in closed form; drawn programs against a slow simulator."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from edl_labs.virtual import ReplayError, VirtualGPU, VirtualGPUError, VirtualMachine, replay

US, MS = 1e-6, 1e-3
SMS = 10


def gpu():
    return VirtualGPU(VirtualMachine(sm_count=SMS))


def drained_ms(device):
    device.synchronize()
    run = replay(device.program, device.machine)

    assert run.makespan_s == device.core.host_ps / 1e12
    return round(device.core.host_ps / 1e9, 9)


@pytest.mark.parametrize("per_sm", [1, 2, 7, 32])
@pytest.mark.parametrize("blocks", [1, 9, 10, 11, 70, 71, 1000, 2**31 - 1])
def test_a_kernel_alone_takes_its_waves(blocks, per_sm):
    device = gpu()
    device.launch("k", duration_s=MS, blocks=blocks, blocks_per_sm=per_sm)

    assert -(-blocks // (SMS * per_sm)) == drained_ms(device)


@pytest.mark.parametrize(
    ("first", "second", "per_sm", "expected_ms"),
    [(5, 5, 1, 1), (10, 10, 1, 2), (10, 10, 2, 1), (1, 10, 1, 2), (15, 5, 1, 2), (15, 15, 1, 3), (1, 1, 32, 1)],
)
def test_two_kernels_on_two_streams_run_at_once_as_far_as_they_fit(first, second, per_sm, expected_ms):
    device = gpu()
    for blocks in (first, second):
        device.launch("k", duration_s=MS, blocks=blocks, blocks_per_sm=per_sm, stream=device.Stream())

    assert expected_ms == drained_ms(device)


def test_kernels_of_one_stream_never_overlap():
    device = gpu()
    for _ in range(3):
        device.launch("k", duration_s=MS, blocks=1)

    assert 3 == drained_ms(device)


def test_a_kernel_without_blocks_has_the_device_for_itself():
    device = gpu()
    device.launch("small", duration_s=MS, blocks=1, stream=device.Stream())
    device.launch("whole", duration_s=MS, stream=device.Stream())
    device.launch("small", duration_s=MS, blocks=1, stream=device.Stream())

    # Nobody passes the first in line, though there is room for one more small kernel at once.
    assert 3 == drained_ms(device)


@pytest.mark.parametrize(("priority", "done_ms"), [(0, 11), (-1, 4), (-5, 4), (-100, 4), (7, 11)])
def test_a_kernel_of_higher_priority_takes_the_next_free_blocks_and_stops_none(priority, done_ms):
    device = gpu()
    low, high = device.Stream(), device.Stream(priority=priority)
    device.launch("low", duration_s=MS, blocks=100, stream=low)
    device.host_work(2.5 * MS)
    device.launch("high", duration_s=MS, blocks=10, stream=high)
    high.synchronize()

    assert done_ms == round(device.now_s() / MS, 9)
    assert 11 == drained_ms(device)


def test_priorities_order_kernels_that_wait_for_the_whole_device():
    device = gpu()
    streams = [device.Stream(priority=priority) for priority in (0, -1, -2)]
    device.launch("first", duration_s=MS)
    device.host_work(US)
    for number, stream in enumerate(streams):
        device.launch(f"k{number}", duration_s=MS, stream=stream)
    device.synchronize()
    kernels = sorted((span for span in device.timeline.spans if span.kind == "kernel"), key=lambda span: span.start_s)

    assert ["first", "k2", "k1", "k0"] == [span.name for span in kernels]


def test_priorities_do_not_order_copies():
    device = gpu()
    there, here = device.empty(20_000_000), device.host_empty(20_000_000, pin_memory=True)
    for stream in (device.default_stream(), device.Stream(), device.Stream(priority=-5)):
        device.copy(there, here, non_blocking=True, stream=stream)
    device.synchronize()
    copies = [span for span in device.timeline.spans if span.kind == "copy"]

    assert [0, 1, 2] == [span.stream for span in sorted(copies, key=lambda span: span.start_s)]


@pytest.mark.parametrize(("branches", "expected_ms"), [(2, 3), (5, 3), (6, 4), (10, 4), (11, 5)])
def test_a_fork_and_a_join_take_the_waves_of_all_branches_together(branches, expected_ms):
    device = gpu()
    main = device.default_stream()
    device.launch("before", duration_s=MS, blocks=SMS)
    sides = [device.Stream() for _ in range(branches)]
    for side in sides:
        side.wait_stream(main)
        device.launch("branch", duration_s=MS, blocks=2, stream=side)
    for side in sides:
        main.wait_stream(side)
    device.launch("after", duration_s=MS, blocks=SMS)

    assert expected_ms == drained_ms(device)


def test_work_that_was_ready_before_the_first_priority_keeps_its_place():
    device = gpu()
    device.launch("now", duration_s=MS)
    device.launch("ready", duration_s=MS, stream=device.Stream())
    high = device.Stream(priority=-1)
    device.launch("high", duration_s=MS, stream=high)
    high.synchronize()

    assert 3 == round(device.now_s() / MS, 9)


MISUSES = {
    "no block": ({"duration_s": MS, "blocks": 0}, "k was launched with 0 blocks"),
    "half a block": ({"duration_s": MS, "blocks": 1.5}, "k was launched with 1.5 blocks"),
    "too many per SM": ({"duration_s": MS, "blocks": 1, "blocks_per_sm": 33}, "k was launched with 33 blocks per SM"),
    "per SM alone": (
        {"duration_s": MS, "blocks_per_sm": 2},
        "k was launched with 2 blocks per SM, but without blocks=",
    ),
    "work": ({"flops": 1e9, "blocks": 1}, "k was launched with both blocks= and an amount of work"),
}


@pytest.mark.parametrize(("work", "what"), MISUSES.values(), ids=MISUSES)
def test_blocks_that_no_grid_has_are_refused(work, what):
    device = gpu()
    with pytest.raises(VirtualGPUError) as caught:
        device.launch("k", **work)

    assert what == caught.value.what
    assert [] == device.program


def test_a_priority_is_a_whole_number():
    with pytest.raises(VirtualGPUError, match=r"a stream cannot have the priority 'high'"):
        gpu().Stream(priority="high")


@pytest.mark.parametrize(
    "entry",
    [
        {"op": "launch", "name": "k", "stream": 0, "duration_s": 1.0, "blocks": 0},
        {"op": "launch", "name": "k", "stream": 0, "duration_s": 1.0, "blocks": True},
        {"op": "launch", "name": "k", "stream": 0, "duration_s": 1.0, "blocks": 2**31},
        {"op": "launch", "name": "k", "stream": 0, "flops": 1.0, "blocks": 1},
        {"op": "stream", "stream": 1, "priority": 0},
        {"op": "stream", "stream": 1, "priority": -6},
    ],
    ids=str,
)
def test_recorded_blocks_and_priorities_are_checked(entry):
    with pytest.raises(ReplayError):
        replay([entry], VirtualMachine())


MACHINE = VirtualMachine(sm_count=3, launch_overhead_s=US, copy_overhead_s=US, link_byte_per_s=1e6)


class Slow:
    """Looks at every stream and every block in every µs."""

    def __init__(self, ranks):
        self.ranks, self.operations = ranks, []

    def issue(self, stream, engine, duration, *, arrived, blocks=None, per_sm=1, awaits=None):
        self.operations.append(
            {"stream": stream, "engine": engine, "duration": duration, "arrived": arrived, "awaits": awaits}
            | {"left": blocks or 1, "share": Fraction(1, per_sm) if blocks else Fraction(3), "number": self.count}
        )
        return self.count - 1

    @property
    def count(self):
        return len(self.operations)

    def run(self):
        now, running, busy = 0, [], {"up": 0}
        while any("end" not in operation for operation in self.operations):
            while self.somebody_is_ready(now):
                pass
            line = [one for one in self.operations if "ready" in one and "end" not in one]
            line.sort(key=lambda one: (self.ranks[one["stream"]], one["ready"], one["number"]))
            running = [(end, share) for end, share in running if end > now]
            for one in [one for one in line if one["engine"] == "compute"]:
                while one["left"] and sum(share for _, share in running) + one["share"] <= 3:
                    one.setdefault("start", now)
                    one["left"] -= 1
                    running.append((now + one["duration"], one["share"]))
                if one["left"]:
                    break
                one["end"] = now + one["duration"]
            for one in sorted(line, key=lambda one: (one["ready"], one["number"])):
                if one["engine"] == "up" and busy["up"] <= now:
                    one["start"], one["end"] = now, now + one["duration"]
                    busy["up"] = one["end"]
            now += 1

    def somebody_is_ready(self, now):
        found = False
        for stream in self.ranks:
            mine = [one for one in self.operations if one["stream"] == stream]
            before = [one for one in mine if one.get("end", now + 1) <= now]
            following = mine[len(before)] if len(before) < len(mine) else None
            if following is None or "ready" in following or following["arrived"] > now:
                continue
            awaits = following["awaits"]
            if awaits is not None and self.operations[awaits].get("end", now + 1) > now:
                continue
            following["ready"] = now
            if following["engine"] is None:
                following["end"] = now
            found = True
        return found


def drawn(rng):
    ranks = {0: 0, **{number: rng.choice([0, 0, -1, -2]) for number in (1, 2, 3)}}
    names = ["blocks"] * 8 + ["whole", "whole", "up", "record", "record", "wait", "wait", "work"]
    return ranks, [
        (
            rng.choice(names),
            rng.randrange(4),
            rng.randrange(3),
            rng.randint(1, 9),
            rng.randint(1, 12),
            rng.randint(1, 3),
        )
        for _ in range(rng.randint(3, 30))
    ]


def issue_both(ranks, program, *, look=False):
    """The program on the model and on the slow simulator; `look`: with queries and readings between its calls."""
    device, slow = VirtualGPU(MACHINE), Slow(ranks)
    streams = [device.default_stream(), *(device.Stream(priority=rank) for stream, rank in ranks.items() if stream)]
    there, here = device.empty(64), device.host_empty(64, pin_memory=True)
    events, marks, now = [device.Event() for _ in range(3)], {}, 0
    for name, stream, event, size, blocks, per_sm in program:
        on = streams[stream]
        now += name in ("blocks", "whole", "up")
        if name == "blocks":
            device.launch("k", duration_s=size * US, blocks=blocks, blocks_per_sm=per_sm, stream=on)
            slow.issue(stream, "compute", size, arrived=now, blocks=blocks, per_sm=per_sm)
        elif name == "whole":
            device.launch("k", duration_s=size * US, stream=on)
            slow.issue(stream, "compute", size, arrived=now)
        elif name == "up":
            device.copy(there[:size], here[:size], non_blocking=True, stream=on)
            slow.issue(stream, "up", size, arrived=now)
        elif name == "record":
            events[event].record(on)
            marks[event] = slow.issue(stream, None, 0, arrived=now)
        elif name == "wait":
            on.wait_event(events[event])
            slow.issue(stream, None, 0, arrived=now, awaits=marks.get(event))
        else:
            device.host_work(size * US)
            now += size
        if look:
            on.query()
            events[event].query()
            device.now_s()
    return device, slow


def ran(timeline):
    spans = [span for span in timeline.spans if span.kind in ("kernel", "copy")]
    return [(round(span.start_s / US), round(span.end_s / US)) for span in sorted(spans, key=lambda span: span.issue)]


@pytest.mark.parametrize("seed", range(150))
def test_a_drawn_program_runs_as_in_the_slow_simulator_and_is_not_changed_by_looking(seed):
    ranks, program = drawn(random.Random(seed))
    device, slow = issue_both(ranks, program)
    slow.run()
    expected = [(one["start"], one["end"]) for one in slow.operations if one["engine"]]

    assert expected == ran(device.timeline)

    watched, _ = issue_both(ranks, program, look=True)
    watched.synchronize()
    assert expected == ran(watched.timeline)
    assert max([0, *(end for _, end in expected)]) <= round(replay(watched.program, MACHINE).makespan_s / US)


@pytest.mark.parametrize(
    "machine", [VirtualMachine.of("T4"), VirtualMachine.of("T4", sm_count=3), VirtualMachine(sm_count=7)]
)
def test_a_machine_keeps_its_sms_as_plain_data(machine):
    assert machine == VirtualMachine.from_dict(machine.to_dict())
    assert 40 == VirtualMachine.of("T4").sm_count
