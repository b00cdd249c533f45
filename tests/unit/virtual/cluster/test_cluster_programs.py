"""What programs do on a VirtualCluster: order, overlap, contents, races, memory, hangs, faults."""

from __future__ import annotations

import json

import pytest

from edl_labs.errors import EdlError
from edl_labs.virtual.cluster import ClusterMachine, Faults, VirtualCluster, replay_cluster
from edl_labs.virtual.errors import ReplayError, VirtualClusterError

FOUR = VirtualCluster.flat(4, alpha_s=0.0, byte_per_s=4e6)  # a float32 takes 1 us


def ranks_of(replay, rank: int, name: str) -> list[tuple[int, int, dict[int, float]]]:
    return [(part.start, part.stop, part.ranks) for part in replay.contents(rank, name)]


def test_contents_of_every_collective() -> None:
    def program(dist) -> None:
        x = {name: dist.tensor(4, name=name) for name in ("sum", "avg", "max", "cast", "red")}
        dist.all_reduce(x["sum"])
        dist.all_reduce(x["avg"], "avg")
        dist.all_reduce(x["max"], "max")
        dist.broadcast(x["cast"], 2)
        dist.reduce(x["red"], 1)
        dist.all_gather(dist.empty(8, name="gathered"), dist.tensor(2, name="g"))
        dist.reduce_scatter(dist.empty(2, name="kept"), dist.tensor(8, name="s"))
        dist.all_to_all(dist.empty(4, name="swapped"), dist.tensor(4, name="a"))

    replay = FOUR.run(program).require_finished()
    everyone = dict.fromkeys(range(4), 1.0)

    assert [(0, 4, everyone)] == ranks_of(replay, 3, "sum")
    assert [(0, 4, dict.fromkeys(range(4), 0.25))] == ranks_of(replay, 0, "avg")
    assert replay.contents(0, "max") == replay.contents(3, "max")
    assert "max(max)" == replay.contents(0, "max")[0].terms[0].source
    assert [(0, 4, {2: 1.0})] == ranks_of(replay, 0, "cast")
    assert [[(0, 4, {0: 1.0})], [(0, 4, everyone)]] == [ranks_of(replay, rank, "red") for rank in (0, 1)]
    assert [(2 * rank, 2 * rank + 2, {rank: 1.0}) for rank in range(4)] == ranks_of(replay, 1, "gathered")
    assert [-2] == [replay.contents(1, "gathered")[1].terms[0].offset]
    assert {4} == {term.offset for term in replay.contents(2, "kept")[0].terms}
    assert [(rank, rank + 1, {rank: 1.0}) for rank in range(4)] == ranks_of(replay, 3, "swapped")
    assert replay.races == ()


def test_counts_that_double_a_thousand_times_are_still_numbers() -> None:
    def program(dist) -> None:
        x, y = dist.tensor(4, name="x"), dist.tensor(4, name="y")
        for _ in range(600):
            dist.all_reduce(x)
            dist.scale(y, 0.1)

    replay = FOUR.run(program)

    assert {rank: float("inf") for rank in range(4)} == replay.contents(1, "x")[0].ranks
    assert replay.contents(1, "y")[0].ranks[1] == pytest.approx(0.0)


def test_lists_of_unequal_parts_are_gathered_and_exchanged() -> None:
    def program(dist) -> None:
        rank, sizes = dist.get_rank(), [1, 2, 3, 4]
        out = dist.empty(10, name="out")
        cuts = [out[0:1], out[1:3], out[3:6], out[6:10]]
        dist.all_gather(cuts, dist.tensor(sizes[rank], name="in"))
        mine, theirs = dist.tensor(4 * sizes[rank]), dist.empty(10, name="theirs")
        parts = [mine[at * sizes[rank] : (at + 1) * sizes[rank]] for at in range(4)]
        dist.all_to_all([theirs[0:1], theirs[1:3], theirs[3:6], theirs[6:10]], parts)

    replay = FOUR.run(program).require_finished()

    for name in ("out", "theirs"):
        assert [(0, 1, {0: 1}), (1, 3, {1: 1}), (3, 6, {2: 1}), (6, 10, {3: 1})] == ranks_of(replay, 2, name)


def test_async_collectives_hide_behind_kernels_and_wait_keeps_the_stream() -> None:
    def program(dist, *, asynchronous: bool) -> None:
        grads = [dist.tensor(1_000_000, name=f"bucket {at}") for at in range(2)]
        works = []
        for grad in grads:
            dist.launch("backward", duration_s=2.0, writes=grad)
            works.append(dist.all_reduce(grad, async_op=asynchronous, algorithm="ring"))
        for work in filter(None, works):
            work.wait()
        dist.launch("update", duration_s=1.0, reads=grads, writes=grads)

    hidden, plain = (FOUR.run(lambda d, flag=flag: program(d, asynchronous=flag)) for flag in (True, False))

    assert (6.5, 8.0) == pytest.approx((hidden.makespan_s, plain.makespan_s))  # a ring of 4 takes 1.5 s
    assert (1.5, 3.0) == pytest.approx((hidden.timeline.exposed_s(0), plain.timeline.exposed_s(3)))
    assert hidden.races == plain.races == ()


def test_reading_before_the_wait_is_a_race_and_names_both_calls() -> None:
    def program(dist) -> None:
        grad = dist.tensor(8, name="grad")
        work = dist.all_reduce(grad, async_op=True, name="bucket 0")
        dist.launch("update", duration_s=1e-6, reads=grad)
        work.wait()

    races = FOUR.run(program).races

    assert [0, 1, 2, 3] == [race.rank for race in races]
    assert "rank 2: all_reduce 0 (bucket 0) (operation 1) and update" in str(races[2])


def test_a_buffer_written_while_it_is_sent_is_a_race() -> None:
    def program(dist) -> None:
        x = dist.tensor(8, name="x")
        if dist.rank == 0:
            dist.isend(x, 1)
            dist.scale(x, 2.0)
        elif dist.rank == 1:
            dist.recv(x, 0)

    assert ["read, then write"] == [race.kind for race in FOUR.run(program).races]


def test_streams_events_copies_and_host_waits_order_a_ranks_work() -> None:
    def program(dist) -> None:
        side, ready = dist.Stream(), dist.Event()
        here, there = dist.tensor(1000, where="host"), dist.empty(1000)
        dist.launch("a", duration_s=1.0)
        ready.record()
        with dist.stream(side):
            ready.wait()
            dist.copy(there, here)
        dist.launch("b", duration_s=1.0)
        side.synchronize()
        dist.host_work(5.0)
        dist.launch("c", duration_s=1.0)
        dist.synchronize()

    replay = VirtualCluster.flat(1).run(program)
    spans = {span.name: span for span in replay.timeline.spans}

    assert spans["copy"].start_s == 1.0
    assert spans["c"].start_s == pytest.approx(spans["copy"].end_s + 5.0)
    assert spans["b"].start_s == 1.0


def test_each_call_costs_the_host_its_overhead() -> None:
    cluster = VirtualCluster.flat(2, call_overhead_s=1.0)

    replay = cluster.run(lambda dist: [dist.launch("k", duration_s=0.1) for _ in range(5)])

    assert replay.makespan_s == pytest.approx(5.1)


def test_peak_memory_is_that_of_each_rank() -> None:
    def program(dist) -> None:
        first = dist.empty(100 * (1 + dist.rank))
        dist.free(first)
        dist.empty(50, dtype="bf16")

    assert (400, 800, 1200, 1600) == FOUR.run(program).peak_bytes
    with pytest.raises(VirtualClusterError, match="rank 0 is out of memory"):
        FOUR.run(lambda dist: dist.empty(10**12))


def test_the_order_of_collectives_is_held_against_all_ranks() -> None:
    def program(dist) -> None:
        x, out = dist.tensor(8), dist.empty(32)
        for bucket in range(3):
            dist.all_reduce(x, name=f"bucket {bucket}")
        if dist.rank == 3:
            dist.all_gather(out, x)
        dist.all_reduce(x, name="bucket 3")

    replay = FOUR.run(program)

    assert not replay.finished
    assert replay.hang.kind == "mismatch"
    assert "rank 3 in all_gather 0, ranks 0 to 2 in all_reduce 3 (bucket 3)" in replay.hang.what
    with pytest.raises(VirtualClusterError, match="do not match"):
        replay.require_finished()
    assert json.dumps(replay.to_json())


@pytest.mark.parametrize(
    ("difference", "told"),
    [
        (lambda dist, x, one: dist.all_reduce(x[0:7] if one else x), "8 elements against 7"),
        (lambda dist, x, one: dist.all_reduce(dist.tensor(8, dtype="bf16") if one else x), "fp32 against bf16"),
        (lambda dist, x, one: dist.all_reduce(x, "avg" if one else "sum"), "reduce=sum"),
        (lambda dist, x, one: dist.broadcast(x, 1 if one else 0), "root=0 against root=1"),
        (lambda dist, x, one: dist.new_group([0, 1] if one else [0, 2]), "(0, 2) ranks against (0, 1)"),
        (
            lambda dist, x, one: dist.send(x, 0) if one else dist.recv(x[0:4], 1) if dist.rank == 0 else None,
            "elements against",
        ),
    ],
)
def test_sizes_dtypes_roots_and_groups_that_differ_are_named(difference, told: str) -> None:
    hang = FOUR.run(lambda dist: difference(dist, dist.tensor(8), dist.rank == 1)).hang

    assert hang.kind == "mismatch"
    assert told in hang.what


def test_sends_that_all_block_are_a_deadlock_and_immediate_ones_are_not() -> None:
    def program(dist, *, blocking: bool) -> None:
        x, y, rank = dist.tensor(8), dist.empty(8), dist.get_rank()
        work = dist.send(x, (rank + 1) % 4) if blocking else dist.isend(x, (rank + 1) % 4)
        dist.recv(y, (rank - 1) % 4)
        if work:
            work.wait()

    hang = FOUR.run(lambda dist: program(dist, blocking=True)).hang

    assert hang.kind == "deadlock"
    assert "rank 0 waits in send 0 to rank 1" in hang.what
    assert ["send 0 to rank 1", "send 0 to rank 2", "send 0 to rank 3", "send 0 to rank 0"] == [
        wait.call for wait in hang.waits
    ]
    assert FOUR.run(lambda dist: program(dist, blocking=False)).finished


def test_groups_in_different_orders_are_a_deadlock() -> None:
    def program(dist) -> None:
        first, second = dist.new_group([0, 1]), dist.new_group([1, 0])
        x = dist.tensor(4)
        for group in (first, second) if dist.rank else (second, first):
            if dist.get_rank(group) >= 0:
                dist.all_reduce(x, group=group)

    hang = FOUR.run(program).hang

    assert hang.kind == "deadlock"
    assert "rank 0 waits in all_reduce 0 of group 2, rank 1 waits in all_reduce 0 of group 1" in hang.what


def test_a_rank_that_never_calls_and_one_that_is_lost_are_named() -> None:
    def program(dist, *, absent: int = -1) -> None:
        x = dist.tensor(1000)
        for _ in range(3):
            dist.launch("step", duration_s=1.0)
            if dist.rank != absent:
                dist.all_reduce(x)

    missing = FOUR.run(lambda dist: program(dist, absent=2)).hang
    lost = FOUR.run(program, faults=Faults(lost={1: 1.5})).hang
    skipped = FOUR.run(program, faults=Faults(skipped=((3, 2),))).hang

    assert ("missing", "lost") == (missing.kind, lost.kind)
    assert "rank 2 has reached the end of its program, ranks 0, 1, 3 wait in all_reduce 0" in missing.what
    assert missing.why == "rank 2 never makes the call that matches all_reduce 0 of rank 0"
    assert "ranks 0, 2, 3 wait in all_reduce 1, after the loss of rank 1 at 1.5 s" in lost.what
    assert skipped.kind == "missing"
    assert "rank 3" in skipped.why
    assert lost.waits[1].call == "lost"


def test_groups_that_some_ranks_do_not_make_and_sends_that_nobody_receives_are_named() -> None:
    def members_only(dist) -> None:
        if dist.rank < 2:
            dist.new_group([0, 1])

    grouped = FOUR.run(members_only).hang
    sent = FOUR.run(lambda dist: dist.isend(dist.tensor(4), 3) if dist.rank == 1 else None).hang

    assert ("missing", "missing") == (grouped.kind, sent.kind)
    assert "even on ranks that are not members" in grouped.next
    assert "ranks 2 to 3 have reached the end of their programs" in grouped.what
    assert "rank 3 never makes the call that matches isend 0 to rank 3 of rank 1" == sent.why


def test_a_slow_rank_and_a_slow_link_cost_what_they_slow() -> None:
    def program(dist) -> None:
        x = dist.tensor(1_000_000)
        dist.launch("work", duration_s=2.0, writes=x)
        dist.all_reduce(x, algorithm="ring")

    slow = FOUR.run(program, faults=Faults(slow_ranks={2: 1.5}))
    link = FOUR.run(program, faults=Faults(slow_links={("link", 1): 3.0}))

    assert (3.5, 4.5, 6.5) == pytest.approx((FOUR.run(program).makespan_s, slow.makespan_s, link.makespan_s))
    waited = {span.rank: span.waited_s for span in slow.timeline.spans if span.kind == "collective"}
    assert {0: 1.0, 1: 1.0, 2: 0.0, 3: 1.0} == pytest.approx(waited)
    with pytest.raises(EdlError, match="this cluster has no level"):
        FOUR.run(program, faults=Faults(slow_links={("wifi", 1): 3.0}))
    with pytest.raises(EdlError, match="the faults name rank 9"):
        FOUR.run(program, faults=Faults(lost={9: 3.0}))


@pytest.mark.parametrize(
    "broken",
    [
        lambda dist: dist.send(dist.tensor(1), 4),
        lambda dist: dist.send(dist.tensor(1), dist.rank),
        lambda dist: dist.all_reduce(5),
        lambda dist: dist.all_reduce(dist.tensor(0)),
        lambda dist: dist.tensor(4, dtype="float12"),
        lambda dist: dist.tensor(4)[2:9],
        lambda dist: dist.tensor(4)[1.5:3],
        lambda dist: dist.tensor(4)[0],
        lambda dist: float(dist.tensor(4)),
        lambda dist: dist.all_reduce(dist.tensor(4), "median"),
        lambda dist: dist.all_reduce(dist.tensor(4), algorithm="magic"),
        lambda dist: dist.all_gather(dist.empty(15), dist.tensor(4)),
        lambda dist: dist.all_gather([dist.empty(4)] * 3, dist.tensor(4)),
        lambda dist: dist.reduce_scatter(dist.empty(4), dist.tensor(12)),
        lambda dist: dist.reduce_scatter(dist.empty(4, dtype="bf16"), dist.tensor(16)),
        lambda dist: dist.all_to_all(dist.empty(6), dist.tensor(6)),
        lambda dist: dist.broadcast(dist.tensor(4), 9),
        lambda dist: dist.new_group([0, 0]),
        lambda dist: dist.new_group([0, 4]),
        lambda dist: dist.all_reduce(dist.tensor(4), group="world"),
        lambda dist: dist.barrier(group=dist.new_group([(0 if dist.rank else 1)])),
        lambda dist: dist.add(dist.tensor(4), dist.tensor(5)),
        lambda dist: dist.launch("k", duration_s=-1),
        lambda dist: dist.launch("k", duration_s=float("nan")),
        lambda dist: dist.free(dist.tensor(4)) or dist.free(None),
        lambda dist: [dist.free(x) or dist.all_reduce(x) for x in [dist.tensor(4)]],
        lambda dist: dist.scale(dist.tensor(4), float("inf")),
        lambda dist: dist.all_reduce(dist.tensor(4), algorithm="hierarchical"),
    ],
)
def test_a_broken_call_is_told_what_why_and_next(broken) -> None:
    with pytest.raises(EdlError) as caught:
        FOUR.run(broken)

    assert caught.value.what
    assert caught.value.why
    assert caught.value.next


def test_the_machine_refuses_what_cannot_be() -> None:
    for make in (
        lambda: VirtualCluster.of("8xH10"),
        lambda: VirtualCluster.of("8xH100", nodes=0),
        lambda: VirtualCluster.of("8xH100", nodes=3, nodes_per_rack=2),
        lambda: VirtualCluster.flat(0),
        lambda: VirtualCluster.flat(4, alpha_s=float("nan")),
        lambda: VirtualCluster.flat(4, byte_per_s="fast"),
        lambda: VirtualCluster.flat(4, colour="red"),
        lambda: VirtualCluster({"ranks": 4}),
        lambda: ClusterMachine(4, ()),
        lambda: Faults(slow_ranks={0: -1.0}),
        lambda: Faults(lost=[3]),  # type: ignore[arg-type]
    ):
        with pytest.raises(EdlError) as caught:
            make()
        assert caught.value.why
        assert caught.value.next


def test_the_trace_opens_in_perfetto_with_a_process_a_rank_and_joined_collectives() -> None:
    replay = FOUR.run(lambda dist: dist.all_reduce(dist.tensor(8), name="bucket 0"))
    trace = json.loads(json.dumps(replay.timeline.to_chrome_trace()))["traceEvents"]

    assert ["rank 0", "rank 1", "rank 2", "rank 3"] == [
        event["args"]["name"] for event in trace if event["name"] == "process_name"
    ]
    assert 4 == sum(event["ph"] == "X" and event["name"] == "all_reduce 0 (bucket 0)" for event in trace)
    assert ["s", "f", "f", "f"] == [event["ph"] for event in trace if event.get("cat") == "joined"]


@pytest.mark.parametrize("programs", [None, [], "x", [[], []], [[], [], [], 5], [[], [], [], [{"op": "now"}]]])
def test_what_is_no_program_is_refused(programs: object) -> None:
    with pytest.raises(ReplayError):
        replay_cluster(programs, FOUR.machine)
