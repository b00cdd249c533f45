"""A replay computes again what a program did; forged readings, edited state and hostile data gain nothing."""

from __future__ import annotations

import copy
import json
import random
import time

import pytest

from edl_labs.checks.plain_data import decode, encode
from edl_labs.errors import EdlError
from edl_labs.virtual import ReplayDisagreement, ReplayError, VirtualGPU, VirtualMachine, compact, replay
from edl_labs.virtual.gpu.program import OPERATIONS, WORKS, GPUOperationKind

MACHINE = VirtualMachine.of("H200", clock_resolution_s=1e-6)


def everything(machine=MACHINE):
    """A program with each kind of operation and reading in it."""
    gpu = VirtualGPU(machine)
    side = gpu.Stream()
    host, there = gpu.host_empty(1 << 20, pin_memory=True, name="x"), gpu.empty(1 << 20)
    pageable, loss = gpu.host_empty(1 << 20), gpu.empty(4)
    start, end = gpu.Event(enable_timing=True), gpu.Event(enable_timing=True)
    start.record()
    for half in (slice(0, 1 << 19), slice(1 << 19, 1 << 20)):
        gpu.copy(there[half], host[half], non_blocking=True, stream=side)
    gpu.current_stream().wait_stream(side)
    gpu.launch("scale", reads=there, writes=there, elementwise=True)
    gpu.launch("matmul", flops=1e9, moved_bytes=1000, dtype="bf16", writes=loss)
    gpu.launch("fixed", duration_s=1e-4)
    end.record()
    end.query()
    side.query()
    gpu.now_s()
    gpu.item(loss)
    end.synchronize()
    start.elapsed_time(end)
    gpu.copy(pageable, there)
    gpu.host_work(1e-3, reads=pageable, writes=host)
    gpu.copy(gpu.empty(64), gpu.empty(64))
    side.synchronize()
    gpu.synchronize()
    loss.record_stream(side)
    gpu.free(loss)
    graph = gpu.CUDAGraph()
    with gpu.graph(graph):
        gpu.current_stream().record_event(start)
    graph.replay()
    gpu.now_s()
    return gpu


def test_a_replay_gives_counts_makespan_and_the_same_readings():
    gpu = everything()
    again = replay(gpu.program, MACHINE)
    kinds = {
        "copy H2D": 2,
        "copy D2H": 1,
        "copy D2D": 1,
        "launch": 3,
        "item": 1,
        "host_work": 1,
        "wait": 1,
        "record": 3,
    }

    assert kinds == {kind: again.counts[kind] for kind in kinds}
    assert {"scale": 1, "matmul": 1, "fixed": 1} == again.launches
    assert {"copy H2D": 1 << 20, "copy D2H": 1 << 20, "copy D2D": 64} == again.copied_bytes
    assert 5 == again.blocking
    assert [entry["value"] for entry in gpu.program if "value" in entry] == [
        reading.value for reading in again.readings
    ]
    assert pytest.approx(gpu.now_s(), abs=2e-6) == again.makespan_s
    assert gpu.program[:-1] == list(again.program)


def test_every_operation_of_the_table_is_one_that_programs_record_and_a_new_one_is_one_entry(monkeypatch):
    gpu = everything()

    assert set(OPERATIONS) == {entry["op"] for entry in gpu.program}

    nap = GPUOperationKind({}, lambda gpu, entry: gpu.host_work(1.0), effect=WORKS, on_host=lambda entry, places: True)
    monkeypatch.setitem(OPERATIONS, "nap", nap)
    again = replay([{"op": "nap"}], VirtualMachine())

    assert (1, 1.0, ()) == (again.counts["nap"], again.host_s, again.races)


def test_a_program_is_plain_data_and_survives_its_encoding():
    program = everything().program

    assert program == decode(encode(program))
    assert program == json.loads(json.dumps(program))
    assert replay(program, MACHINE.to_dict()) == replay(decode(encode(program)), MACHINE)


def test_a_machine_is_plain_data():
    assert VirtualMachine.from_dict(decode(encode(MACHINE.to_dict()))) == MACHINE


def test_readings_tell_the_exact_time_what_was_issued_and_whether_the_device_had_drained():
    gpu = VirtualGPU(VirtualMachine(launch_overhead_s=1e-6, clock_resolution_s=1e-3))
    gpu.now_s()
    for _ in range(3):
        gpu.launch("k", duration_s=1e-3)
    gpu.now_s()
    gpu.synchronize()
    gpu.now_s()
    readings = replay(gpu.program, gpu.machine).readings

    assert [(0.0, True, 0), (0.0, False, 3), (3e-3, True, 3)] == [(r.value, r.drained, r.launches) for r in readings]
    assert [0.0, 3e-6, 3.001e-3] == [reading.host_s for reading in readings]


def test_compact_programs_are_smaller_and_replay_alike():
    gpu = VirtualGPU(MACHINE)
    for _ in range(3):
        for _ in range(1000):
            gpu.launch("k", duration_s=1e-6)
        gpu.synchronize()
        gpu.now_s()
    short = compact(gpu.program)

    assert 9 == len(short)
    whole, again = replay(gpu.program, MACHINE), replay(short, MACHINE)
    assert (whole.counts, whole.timeline) == (again.counts, again.timeline)
    assert [reading.host_s for reading in whole.readings] == [reading.host_s for reading in again.readings]


@pytest.mark.parametrize("name", ["now", "elapsed_time", "item", "query_event", "query_stream"])
def test_a_forged_reading_is_named_with_its_place_and_what_it_should_be(name):
    program = everything().program
    index = next(index for index, entry in enumerate(program) if entry["op"] == name)
    true = program[index]["value"]
    program[index]["value"] = (not true) if type(true) is bool else true + 1
    with pytest.raises(ReplayDisagreement) as caught:
        replay(program, MACHINE)

    assert (index, name, program[index]["value"], true) == (
        caught.value.index,
        caught.value.operation,
        caught.value.recorded,
        caught.value.replayed,
    )
    assert f"operation {index} of the program, {name}, was recorded with" in caught.value.what


@pytest.mark.parametrize(
    "value", [float("nan"), "0", None, True, [[0.0]], 10**5000, {}], ids=lambda v: type(v).__name__
)
def test_a_reading_of_another_type_disagrees(value):
    gpu = VirtualGPU(VirtualMachine())
    gpu.now_s()
    with pytest.raises(ReplayDisagreement):
        replay([{"op": "now", "value": value}], gpu.machine)


def test_the_same_program_on_another_machine_disagrees():
    with pytest.raises(ReplayDisagreement):
        replay(everything().program, MACHINE.replace(launch_overhead_s=1e-9))


@pytest.mark.parametrize(
    "fake", [{"op": "launch", "name": "k", "stream": 0, "duration_s": 1e-5}, {"op": "synchronize"}, {"op": "now"}]
)
def test_operations_that_were_never_issued_change_the_readings_after_them(fake):
    gpu = VirtualGPU("H200")
    gpu.launch("k", duration_s=1e-5)
    gpu.now_s()
    gpu.synchronize()
    gpu.now_s()
    program = gpu.program
    program.insert(1, fake if fake["op"] != "now" else {**fake, "value": program[1]["value"]})
    with pytest.raises(ReplayDisagreement):
        replay(program, "H200")


def test_leaving_operations_out_changes_the_readings_after_them():
    program = everything().program
    kept = [entry for entry in program if entry.get("name") != "fixed"]
    with pytest.raises(ReplayDisagreement):
        replay(kept, MACHINE)


def attack_the_clock(gpu):
    gpu.core.host_ps -= 10**6


def attack_the_engines(gpu):
    gpu.core.engines.run_all()
    gpu.core.engines._free = [0] * 4
    gpu.core.engines.last_done = gpu.streams[0].lane.done = 0


def attack_the_costs(gpu):
    gpu.core.costs_ps = dict.fromkeys(gpu.core.costs_ps, 0)
    gpu._launch_ps = gpu._copy_ps = 0


def attack_the_machine(gpu):
    gpu.core.__init__(VirtualMachine(), traced=False)


def attack_the_streams(gpu):
    for stream in gpu.streams:
        stream.lane.pending.clear()
        stream.lane.head = None


def attack_the_record(gpu):
    del gpu.core.recorded[1:3]


def attack_with_a_forged_record(gpu):
    gpu.core.recorded[-1]["value"] -= 1e-3


@pytest.mark.parametrize(
    "attack",
    [
        attack_the_clock,
        attack_the_engines,
        attack_the_costs,
        attack_the_machine,
        attack_the_streams,
        attack_the_record,
        attack_with_a_forged_record,
    ],
)
def test_whoever_edits_the_models_private_state_is_found_out_by_the_replay(attack):
    gpu = VirtualGPU("H200")
    gpu.now_s()
    gpu.launch("k", duration_s=1e-3)
    gpu.launch("k", duration_s=1e-3)
    gpu.now_s()
    attack(gpu)
    gpu.launch("k", duration_s=1e-6)
    gpu.now_s()
    gpu.synchronize()
    gpu.now_s()
    with pytest.raises(ReplayDisagreement):
        replay(gpu.program, "H200")


def test_edited_state_does_not_change_what_the_replay_says_of_the_operations():
    def issue(gpu, attack):
        gpu.launch("k", duration_s=1e-3)
        attack(gpu)
        gpu.launch("k", duration_s=1e-3)
        gpu.synchronize()
        return replay(gpu.program, "H200")

    honest = issue(VirtualGPU("H200"), lambda gpu: None)
    for attack in (attack_the_clock, attack_the_engines, attack_the_costs, attack_the_streams):
        assert honest == issue(VirtualGPU("H200"), attack)


def test_reading_private_state_leaves_no_trace_and_counts_for_nothing():
    gpu = VirtualGPU(MACHINE)
    gpu.launch("k", duration_s=1e-3)
    peeked_s = gpu.core.engines.finish(gpu.streams[0].lane.head, gpu.core.host_ps) / 1e12

    assert peeked_s > 1e-3
    assert () == replay(gpu.program, MACHINE).readings


def test_editing_the_returned_program_does_not_edit_the_record():
    gpu = everything()
    gpu.program.clear()
    gpu.program[0]["op"] = "now"

    assert replay(gpu.program, MACHINE)


def deep(levels=100_000):
    value: list = []
    for _ in range(levels):
        value = [value]
    return value


LAUNCH = {"op": "launch", "name": "k", "stream": 0, "duration_s": 1e-6}
ALLOC = {"op": "alloc", "buffer": 0, "bytes": 8, "where": "device", "name": "x"}
HOSTILE = {
    "no list": {"op": "launch"},
    "text": "launch",
    "none": None,
    "an operation that is a list": [["launch"]],
    "an unknown name": [{"op": "teleport"}],
    "no name": [{}],
    "a name that is a list": [{"op": ["launch"]}],
    "deep name": [{"op": deep()}],
    "missing field": [{"op": "launch", "name": "k"}],
    "extra field": [{**LAUNCH, "free": True}],
    "a field that is no text": [{**LAUNCH, 7: 1}],
    "NaN": [{**LAUNCH, "duration_s": float("nan")}],
    "infinity": [{**LAUNCH, "duration_s": float("inf")}],
    "negative": [{**LAUNCH, "duration_s": -1.0}],
    "huge integer": [{**LAUNCH, "duration_s": 10**5000}],
    "bool for number": [{**LAUNCH, "duration_s": True}],
    "deep duration": [{**LAUNCH, "duration_s": deep()}],
    "long name": [{**LAUNCH, "name": "k" * 10_000}],
    "no such stream": [{**LAUNCH, "stream": 5}],
    "negative stream": [{**LAUNCH, "stream": -1}],
    "neither duration nor work is work of nothing on fp99": [
        {"op": "launch", "name": "k", "stream": 0, "dtype": "fp99"}
    ],
    "both duration and work": [{**LAUNCH, "flops": 5.0}],
    "a billion launches": [{**LAUNCH, "times": 10**9}],
    "no launches": [{**LAUNCH, "times": 0}],
    "a rate that the machine lacks": [{"op": "launch", "name": "k", "stream": 0, "flops": 1.0, "dtype": "int8"}],
    "no such buffer": [{**LAUNCH, "reads": [[0, 0, 1]]}],
    "a region of two numbers": [ALLOC, {**LAUNCH, "reads": [[0, 0]]}],
    "a region beyond its buffer": [ALLOC, {**LAUNCH, "reads": [[0, 0, 9]]}],
    "an empty region": [ALLOC, {**LAUNCH, "reads": [[0, 4, 4]]}],
    "too many regions": [ALLOC, {**LAUNCH, "reads": [[0, 0, 1]] * 65}],
    "elementwise of two sizes": [
        ALLOC,
        {**LAUNCH, "reads": [[0, 0, 8]], "writes": [[0, 0, 4]], "elementwise": True},
    ],
    "a buffer with another number": [{**ALLOC, "buffer": 3}],
    "more memory than there is": [{**ALLOC, "bytes": 10**15}],
    "memory nowhere": [{**ALLOC, "where": "cloud"}],
    "freed twice": [ALLOC, {"op": "free", "buffer": 0}, {"op": "free", "buffer": 0}],
    "a wait for nothing": [{"op": "wait", "event": 0, "stream": 0}],
    "an event that is not there": [{"op": "sync_event", "event": 0}],
    "time of an untimed event": [
        {"op": "event", "event": 0, "timing": False},
        {"op": "record", "event": 0, "stream": 0},
        {"op": "elapsed_time", "start": 0, "end": 0, "value": 0.0},
    ],
    "a number that is too large for item": [
        {**ALLOC, "bytes": 64},
        {"op": "item", "src": [0, 0, 64], "stream": 0, "value": 0},
    ],
    "copies of two sizes": [
        ALLOC,
        {"op": "copy", "dst": [0, 0, 8], "src": [0, 0, 4], "stream": 0, "non_blocking": False},
    ],
    "a kernel on pageable memory": [{**ALLOC, "where": "pageable"}, {**LAUNCH, "writes": [[0, 0, 8]]}],
    "the host in device memory": [ALLOC, {"op": "host_work", "duration_s": 0.0, "writes": [[0, 0, 8]]}],
    "too many streams": [{"op": "stream", "stream": number} for number in range(1, 500)],
}


@pytest.mark.parametrize("program", HOSTILE.values(), ids=HOSTILE)
def test_hostile_data_is_refused_with_a_clear_sentence_and_nothing_else(program):
    with pytest.raises(ReplayError) as caught:
        replay(program, VirtualMachine())

    assert caught.value.what
    assert caught.value.why
    assert caught.value.next
    assert len(str(caught.value)) < 1000


def junk(rng):
    """One value of any kind."""
    return rng.choice(
        [
            None,
            True,
            -1,
            0,
            3,
            10**30,
            0.5,
            -0.0,
            1e300,
            float("nan"),
            "",
            "device",
            [],
            [0, 0, 1],
            [[0, 0, 1]],
            {},
            {"a": 1},
        ]
    )


def mutated(program, rng):
    """The program with a few fields, operations or places changed."""
    program = copy.deepcopy(program)
    for _ in range(rng.randrange(1, 4)):
        index = rng.randrange(len(program))
        entry = program[index]
        match rng.randrange(5):
            case 0:
                entry[rng.choice([*entry])] = junk(rng)
            case 1:
                entry.pop(rng.choice([*entry]))
            case 2:
                program[index] = junk(rng)
                return program
            case 3:
                program.insert(rng.randrange(len(program)), copy.deepcopy(entry))
            case 4:
                other = rng.choice(program)
                for field in set(entry) & set(other):
                    entry[field] = other[field]
        if not entry:
            return program
    return program


def test_mutated_programs_replay_or_are_refused_and_nothing_else_happens():
    program, rng, refused = everything().program, random.Random(0), 0
    for _ in range(600):
        try:
            again = replay(mutated(program, rng), MACHINE)
            again.races, again.contents(0)
        except EdlError:
            refused += 1

    assert 300 < refused < 600


def test_too_many_operations_are_refused_before_they_are_run():
    start = time.perf_counter()
    with pytest.raises(ReplayError) as caught:
        replay([{**LAUNCH, "times": 400_000}, {**LAUNCH, "times": 400_000}], VirtualMachine(), max_operations=500)

    assert "the program has more than 500 operations" == caught.value.what
    assert time.perf_counter() - start < 60


def test_operations_on_many_regions_count_for_several():
    launch = {**LAUNCH, "reads": [[0, 0, 8]] * 64, "times": 100}
    with pytest.raises(ReplayError) as caught:
        replay([ALLOC, launch], VirtualMachine(), max_operations=1000)

    assert "the program has more than 1,000 operations" == caught.value.what
    assert replay([ALLOC, launch], VirtualMachine(), max_operations=1601)


def test_a_machine_that_is_none_is_refused():
    for model in ({"launch_overhead_s": -1.0}, {"speed": 9}, "A1000"):
        with pytest.raises(EdlError):
            replay([], model)
