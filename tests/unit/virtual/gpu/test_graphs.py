"""Graphs: captured once, replayed with one launch, at the addresses of the capture; misuse is told; races are found."""

from __future__ import annotations

import json

import pytest

from edl_labs.virtual import ReplayError, VirtualGPU, VirtualGPUError, VirtualMachine, replay

US = 1e-6
MACHINE = VirtualMachine(launch_overhead_s=5 * US, sync_overhead_s=0.0, sm_count=10)


def captured(device, count=10, *, duration_s=US):
    graph = device.CUDAGraph()
    with device.graph(graph):
        for _ in range(count):
            device.launch("k", duration_s=duration_s)
    return graph


def us(device):
    return round(device.core.host_ps / 1e6, 6)


def replayed(device):
    """The replay of what was recorded, from its text; it ends when the device does."""
    run = replay(json.loads(json.dumps(device.program)), device.machine)

    assert run.host_s == device.core.host_ps / 1e12
    return run


def test_a_replay_costs_one_launch_and_runs_every_node():
    device = VirtualGPU(MACHINE)
    graph = captured(device)
    # The host paid for the calls when the capture ended, and nothing ran.
    assert (50, 50) == (us(device), round(replayed(device).makespan_s / US))
    graph.replay()
    assert 55 == us(device)
    device.synchronize()

    assert 65 == us(device)
    run = replayed(device)
    assert ({"k": 10}, 1) == (run.launches, run.counts["replay_graph"])
    assert "launch" not in run.counts
    assert run.timeline == device.timeline
    assert 10 == sum(span.kind == "kernel" for span in run.timeline.spans)


def test_launches_that_the_host_limits_become_limited_by_the_device():
    def spent_us(*, with_graph):
        device = VirtualGPU(MACHINE)
        graph = captured(device)
        start = us(device)
        for _ in range(100):
            if with_graph:
                graph.replay()
            else:
                for _ in range(10):
                    device.launch("k", duration_s=US)
        device.synchronize()
        return us(device) - start

    assert (5001, 1005) == (spent_us(with_graph=False), spent_us(with_graph=True))


def test_a_replay_reads_what_its_static_input_holds_then():
    device = VirtualGPU(MACHINE)
    static, out = device.empty(64), device.empty(64)
    first, second = (device.host_empty(64, pin_memory=True, name=name) for name in ("first", "second"))
    graph = device.CUDAGraph()
    device.copy(static, first)
    with device.graph(graph):
        device.launch("model", duration_s=US, reads=static, writes=out)
    graph.replay()
    device.synchronize()
    (stale,) = replay(device.program, MACHINE).contents(out.index)
    device.copy(static, second)
    graph.replay()
    (fresh,) = replay(device.program, MACHINE).contents(out.index)

    assert ("model(first)", "model(second)") == (stale.text, fresh.text)


def test_a_copy_into_a_static_input_races_with_a_replay_that_still_reads_it():
    device = VirtualGPU(MACHINE)
    static, here, side = device.empty(64), device.host_empty(64, pin_memory=True), device.Stream()
    graph = device.CUDAGraph()
    with device.graph(graph):
        device.launch("model", duration_s=US, reads=static)
    graph.replay()
    device.copy(static, here, non_blocking=True, stream=side)
    program = device.program

    assert ["read, then write"] == [race.kind for race in replay(program, MACHINE).races]
    (race,) = replay(program, MACHINE).races
    assert ("replay_graph", "copy") == (program[race.first]["op"], program[race.second]["op"])


def forked(device, *, waits, branches=2, blocks=None):
    main, graph, shared = device.Stream(), device.CUDAGraph(), device.empty(64)
    sides = [device.Stream() for _ in range(branches)]
    work = {"blocks": blocks} if blocks else {}
    with device.graph(graph, stream=main):
        device.launch("before", duration_s=US, writes=shared, **work)
        for side in sides:
            side.wait_stream(main)
            with device.stream(side):
                device.launch("branch", duration_s=US, reads=shared, **work)
        if not waits:
            device.launch("too early", duration_s=US, writes=shared, **work)
        for side in sides:
            main.wait_stream(side)
        device.launch("after", duration_s=US, writes=shared, **work)
    return graph


@pytest.mark.parametrize(("branches", "expected_us"), [(1, 3), (5, 3), (6, 4), (11, 5)])
def test_branches_of_a_graph_share_the_sms_between_fork_and_join(branches, expected_us):
    device = VirtualGPU(MACHINE)
    graph = forked(device, waits=True, branches=branches, blocks=2)
    start = us(device)
    graph.replay()
    device.synchronize()

    assert 5 + expected_us == us(device) - start
    assert () == replayed(device).races


def test_races_inside_a_graph_are_found_when_it_is_replayed():
    device = VirtualGPU(MACHINE)
    graph = forked(device, waits=False)
    assert () == replayed(device).races
    graph.replay()

    assert {"read, then write"} == {race.kind for race in replayed(device).races}


def test_two_replays_of_one_graph_in_two_streams_never_overlap():
    device = VirtualGPU(MACHINE)
    buffer, graph = device.empty(64), device.CUDAGraph()
    with device.graph(graph):
        device.launch("k", duration_s=50 * US, blocks=1, writes=buffer)
    start = us(device)
    for stream in (device.Stream(), device.Stream()):
        with device.stream(stream):
            graph.replay()
    device.synchronize()

    assert 105 == us(device) - start
    assert () == replayed(device).races


def misuse(name):
    def use(device, side, buffer, pageable, outside):
        calls = {
            "synchronize": device.synchronize,
            "sync stream": side.synchronize,
            "sync event": outside.synchronize,
            "query": outside.query,
            "stream query": side.query,
            "item": lambda: device.item(buffer[:4]),
            "pageable": lambda: device.copy(buffer, pageable, non_blocking=True),
            "empty": lambda: device.empty(4),
            "pinned": lambda: device.host_empty(4, pin_memory=True),
            "free": lambda: device.free(buffer),
            "default": lambda: device.launch("k", duration_s=US, stream=device.default_stream()),
            "not forked": lambda: device.launch("k", duration_s=US, stream=side),
            "outside": lambda: device.current_stream().wait_event(outside),
            "not joined": lambda: side.wait_stream(device.current_stream()),
            "nested": lambda: device.graph(device.CUDAGraph()).__enter__(),
        }
        calls[name]()

    return use


MISUSES = {
    "synchronize": "synchronize cannot be captured in a graph",
    "sync stream": "sync stream cannot be captured in a graph",
    "sync event": "sync event cannot be captured in a graph",
    "query": "event.query cannot be captured in a graph",
    "stream query": "stream.query cannot be captured in a graph",
    "item": "item cannot be captured in a graph",
    "pageable": "copy cannot be captured in a graph",
    "empty": "memory is requested while a graph is captured",
    "pinned": "memory is requested while a graph is captured",
    "free": "memory is freed while a graph is captured",
    "default": "the default stream cannot be used while a graph is captured",
    "not forked": "stream 1 is not part of the capture",
    "outside": "stream 2 waits for an event from outside the capture",
    "not joined": "the captured stream does not wait for the work of stream 1",
    "nested": "a graph is being captured already",
}


@pytest.mark.parametrize(("name", "what"), MISUSES.items(), ids=MISUSES)
def test_what_no_graph_can_hold_is_told_and_leaves_the_device_as_it_was(name, what):
    device = VirtualGPU(MACHINE)
    side, buffer, pageable = device.Stream(), device.empty(64), device.host_empty(64)
    outside = device.default_stream().record_event()
    graph = device.CUDAGraph()
    use = misuse(name)
    with pytest.raises(VirtualGPUError) as caught, device.graph(graph):  # noqa: PT012, the error is that of the block
        device.launch("k", duration_s=US, writes=buffer)
        use(device, side, buffer, pageable, outside)

    assert what == caught.value.what
    assert caught.value.why
    assert caught.value.next
    with pytest.raises(VirtualGPUError, match="the graph contains nothing to replay"):
        graph.replay()
    device.launch("k", duration_s=US)
    device.synchronize()
    # Nothing of the capture counts: the buffer was never written.
    assert 0 == device.item(buffer[:4])
    assert {"k": 1} == replayed(device).launches


def test_a_graph_outlives_none_of_its_buffers():
    device = VirtualGPU(MACHINE)
    buffer, graph = device.empty(64, name="weights"), device.CUDAGraph()
    with device.graph(graph):
        device.launch("k", duration_s=US, reads=buffer)
    device.free(buffer)

    with pytest.raises(VirtualGPUError, match="the graph uses weights, which has been freed"):
        graph.replay()


@pytest.mark.parametrize(
    "entry",
    [
        {"op": "replay_graph", "graph": 0, "stream": 0},
        {"op": "capture", "graph": 0, "stream": 0, "nodes": []},
        {"op": "capture", "graph": 1, "stream": 1, "nodes": []},
        {"op": "capture", "graph": 0, "stream": 1, "nodes": [{"op": "synchronize"}]},
        {"op": "capture", "graph": 0, "stream": 1, "nodes": [{"op": "launch", "name": "k", "stream": 2}]},
        {"op": "capture", "graph": 0, "stream": 1, "nodes": [{"op": ["launch"]}]},
        {"op": "capture", "graph": 0, "stream": 1, "nodes": 3},
    ],
    ids=str,
)
def test_recorded_graphs_are_checked(entry):
    with pytest.raises(ReplayError):
        replay([{"op": "stream", "stream": 1}, entry], MACHINE)


def test_a_replay_counts_for_all_of_its_nodes():
    device = VirtualGPU(MACHINE)
    graph = captured(device, 1000)
    for _ in range(310):
        graph.replay()

    with pytest.raises(ReplayError, match="more than 300,000 operations"):
        replay(device.program, MACHINE)
