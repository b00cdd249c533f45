"""Data races are found from the order that streams, events and synchronisations give, in bytes; and only they."""

from __future__ import annotations

import random

import pytest

from edl_labs.virtual import ReplayError, VirtualGPU, VirtualMachine, replay

MACHINE = VirtualMachine()


class Program:
    """A device with a stream beside the default one, pinned and device memory of 100 bytes."""

    def __init__(self):
        self.gpu = VirtualGPU(MACHINE)
        self.side = self.gpu.Stream()
        self.x, self.y = (self.gpu.host_empty(100, pin_memory=True, name=name) for name in "xy")
        self.a = self.gpu.empty(100, name="a")

    def upload(self, part=slice(None)):
        self.gpu.copy(self.a[part], self.x[part], non_blocking=True, stream=self.side)

    def kernel(self, part=slice(None)):
        self.gpu.launch("k", duration_s=1e-6, reads=self.a[part], writes=self.a[part])

    def races(self):
        return replay(self.gpu.program, MACHINE).races


@pytest.fixture
def program():
    return Program()


def test_a_kernel_that_does_not_wait_for_its_data_races_with_their_copy(program):
    program.upload()
    program.kernel()
    (read, write) = program.races()

    assert ("a", 0, 100, "write, then read") == (read.buffer, read.start, read.stop, read.kind)
    assert "write, then write" == write.kind
    assert (read.first, read.second) == (4, 5)
    assert "no event, stream or synchronisation" in str(read)


ORDERS = {
    "wait_stream": lambda p: p.gpu.current_stream().wait_stream(p.side),
    "event": lambda p: p.side.record_event().wait(),
    "device": lambda p: p.gpu.synchronize(),
    "stream": lambda p: p.side.synchronize(),
    "event.synchronize": lambda p: p.side.record_event().synchronize(),
    "item in the stream": lambda p: p.gpu.item(p.gpu.empty(4), stream=p.side),
    "blocking copy in the stream": lambda p: p.gpu.copy(p.gpu.empty(1), p.gpu.host_empty(1), stream=p.side),
}


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_whatever_orders_the_two_removes_the_race(program, order):
    program.upload()
    order(program)
    program.kernel()

    assert () == program.races()


NO_ORDERS = {
    "nothing": lambda p: None,
    "host work": lambda p: p.gpu.host_work(1.0),
    "an event that was recorded too early": lambda p: p.gpu.current_stream().wait_event(p.early),
    "the wrong stream": lambda p: p.side.wait_stream(p.gpu.current_stream()),
    "synchronising the wrong stream": lambda p: p.gpu.default_stream().synchronize(),
    "a query that says no": lambda p: p.slow.query(),
}


@pytest.mark.parametrize("order", NO_ORDERS.values(), ids=NO_ORDERS)
def test_what_does_not_order_the_two_leaves_the_race(program, order):
    program.early = program.side.record_event()
    program.gpu.launch("long", duration_s=1.0, stream=program.side)
    program.slow = program.side.record_event()
    program.upload()
    order(program)
    program.kernel()

    assert program.races()


def test_a_query_that_says_yes_orders(program):
    program.upload()
    event = program.side.record_event()
    program.gpu.host_work(1.0)
    assert event.query()
    program.kernel()

    assert () == program.races()


def test_order_passes_through_a_third_stream(program):
    third = program.gpu.Stream()
    program.upload()
    third.wait_stream(program.side)
    program.gpu.current_stream().wait_stream(third)
    program.kernel()

    assert () == program.races()


def test_chunks_race_only_where_their_bytes_meet(program):
    program.upload(slice(0, 50))
    program.kernel(slice(50, 100))
    assert () == program.races()
    program.kernel(slice(40, 60))

    assert {(40, 50)} == {(race.start, race.stop) for race in program.races()}


def test_two_readers_do_not_race_but_a_later_writer_does(program):
    program.gpu.launch("r", duration_s=1e-6, reads=program.a)
    program.gpu.launch("r", duration_s=1e-6, reads=program.a, stream=program.side)
    assert () == program.races()
    program.gpu.launch("w", duration_s=1e-6, writes=program.a, stream=program.side)

    assert ["read, then write"] == [race.kind for race in program.races()]


def test_the_host_races_with_a_copy_that_it_did_not_wait_for(program):
    program.gpu.copy(program.y, program.a, non_blocking=True)
    program.gpu.host_work(1e-6, reads=program.y)
    assert ["write, then read"] == [race.kind for race in program.races()]
    program.gpu.synchronize()
    program.gpu.host_work(1e-6, reads=program.y)

    assert 1 == len(program.races())


def test_the_host_must_not_overwrite_what_is_still_being_copied(program):
    program.gpu.copy(program.a, program.x, non_blocking=True)
    program.gpu.host_work(1e-6, writes=program.x)

    assert ["read, then write"] == [race.kind for race in program.races()]


def test_what_the_host_wrote_before_a_call_is_there_for_it(program):
    program.gpu.host_work(1e-6, writes=program.x)
    program.upload()

    assert () == program.races()


def test_work_of_one_stream_never_races_with_itself(program):
    for _ in range(3):
        program.kernel()

    assert () == program.races()


@pytest.mark.parametrize("seed", range(20))
def test_races_are_those_of_a_slow_search_over_all_pairs(seed):
    rng = random.Random(seed)
    gpu = VirtualGPU(MACHINE)
    streams = [gpu.default_stream(), gpu.Stream(), gpu.Stream()]
    buffer, before, work = gpu.empty(12, name="a"), {}, []
    for _ in range(25):
        stream = rng.choice(streams)
        if rng.random() < 0.4:
            other = rng.choice(streams)
            stream.wait_stream(other)
            before[stream] = before.get(stream, frozenset()) | before.get(other, frozenset())
            continue
        low, high = sorted(rng.sample(range(13), 2))
        role = rng.choice(["reads", "writes"])
        gpu.launch("k", duration_s=1e-6, stream=stream, **{role: buffer[low:high]})
        work.append((len(gpu.program) - 1, role, set(range(low, high)), before.get(stream, frozenset())))
        before[stream] = before.get(stream, frozenset()) | {len(gpu.program) - 1}
    # A pair counts only for bytes that nobody wrote in between: else the later pair tells of it.
    expected = set()
    for later, (index, role, touched, known) in enumerate(work):
        hidden = set()
        for earlier_index, earlier_role, earlier_touched, _ in reversed(work[:later]):
            common = (touched & earlier_touched) - hidden
            if common and "writes" in (role, earlier_role) and earlier_index not in known:
                expected.add((earlier_index, index))
            if earlier_role == "writes":
                hidden |= earlier_touched
    found = {(race.first, race.second) for race in replay(gpu.program, MACHINE).races}

    # Reads of one stream after another replace each other, so a pair with the older of them may be left out.
    assert found <= expected
    assert {second for _, second in expected} == {second for _, second in found}


def test_a_synchronisation_of_many_streams_orders_those_that_worked_since_the_last_one(program):
    others = [program.gpu.Stream() for _ in range(20)]
    for stream in (*others, *reversed(others)):
        program.gpu.launch("w", duration_s=1e-6, writes=program.a, stream=stream)
        program.gpu.synchronize()
    assert () == program.races()
    program.gpu.launch("w", duration_s=1e-6, writes=program.a, stream=others[3])
    program.gpu.launch("w", duration_s=1e-6, writes=program.a, stream=others[4])

    assert 1 == len(program.races())


def test_a_program_cut_into_too_many_parts_is_refused_in_bounded_time():
    gpu = VirtualGPU(MACHINE)
    buffer = gpu.empty(10_000)
    for at in range(2000):
        gpu.launch("w", duration_s=0.0, writes=buffer[2 * at : 2 * at + 1])
    for _ in range(3000):
        gpu.launch("r", duration_s=0.0, reads=buffer)
    again = replay(gpu.program, MACHINE)
    with pytest.raises(ReplayError) as caught:
        again.races  # noqa: B018 - computed when asked for

    assert "too many parts" in caught.value.what


ORDERS_BEFORE_FREE = {
    "nothing": (lambda p: None, ["read, then free"]),
    "record_stream": (lambda p: p.a.record_stream(p.side), []),
    "record_stream of another": (lambda p: p.a.record_stream(p.gpu.Stream()), ["read, then free"]),
    "wait_stream": (lambda p: p.gpu.current_stream().wait_stream(p.side), []),
    "the wrong way round": (lambda p: p.side.wait_stream(p.gpu.current_stream()), ["read, then free"]),
    "device": (lambda p: p.gpu.synchronize(), []),
    "an event that was never recorded": (lambda p: p.gpu.Event().wait(), ["read, then free"]),
}


@pytest.mark.parametrize(("order", "kinds"), ORDERS_BEFORE_FREE.values(), ids=ORDERS_BEFORE_FREE)
def test_memory_that_another_stream_still_reads_is_freed_too_early_unless_something_keeps_it(program, order, kinds):
    program.gpu.launch("read", duration_s=1e-6, reads=program.a, stream=program.side)
    read = len(program.gpu.program) - 1
    order(program)
    program.gpu.free(program.a)
    races = program.races()

    assert kinds == [race.kind for race in races]
    assert all((read, len(program.gpu.program) - 1) == (race.first, race.second) for race in races)


def test_memory_belongs_to_the_stream_that_was_current_when_it_was_made(program):
    with program.gpu.stream(program.side):
        mine = program.gpu.empty(10, name="mine")
    program.gpu.launch("own", duration_s=1e-6, writes=mine, stream=program.side)
    program.gpu.free(mine)
    assert () == program.races()
    with program.gpu.stream(program.side):
        shared = program.gpu.empty(10, name="shared")
    program.gpu.launch("default", duration_s=1e-6, writes=shared, stream=program.gpu.default_stream())
    program.gpu.free(shared)

    assert [("shared", "write, then free")] == [(race.buffer, race.kind) for race in program.races()]


def test_pinned_memory_waits_for_the_copies_that_use_it(program):
    program.upload()
    program.gpu.free(program.x)

    assert () == program.races()


@pytest.mark.parametrize(
    "entry", [{"op": "free", "buffer": 2, "stream": 7}, {"op": "record_stream", "buffer": 2, "stream": 7}]
)
def test_a_program_that_frees_for_a_stream_it_did_not_make_is_refused(program, entry):
    with pytest.raises(ReplayError, match="did not create"):
        replay([*program.gpu.program, entry], MACHINE)


def test_an_event_that_was_never_recorded_is_over_and_orders_nothing(program):
    event = program.gpu.Event()
    event.synchronize()
    assert event.query() is True
    program.upload()
    program.gpu.current_stream().wait_event(event)
    program.kernel()

    assert ["write, then read", "write, then write"] == [race.kind for race in program.races()]


def test_waiting_for_an_event_that_was_never_recorded_delays_nothing(program):
    program.gpu.launch("long", duration_s=1.0)
    program.side.wait_event(program.gpu.Event())
    program.upload()
    (copy,) = (span for span in program.gpu.timeline.spans if span.kind == "copy")

    assert 0.0 == copy.start_s
