"""Collectives cost their closed forms, priced as one call or written from messages; pipelines have their bubble."""

from __future__ import annotations

import itertools
import math

import pytest

from edl_labs.hardware import link
from edl_labs.virtual.cluster import ClusterMachine, CollectiveCosts, LinkLevel, VirtualCluster

ALPHA_S, RATE = 20e-6, 6e9  # deck [004]'s link
SIZES = [2, 3, 4, 7, 8, *(pytest.param(count, marks=pytest.mark.slow) for count in (64, 100, 256, 512))]


def closed_form_s(kind: str, algorithm: str, ranks: int, nbytes: float) -> float:
    rounds, share = math.ceil(math.log2(ranks)), (ranks - 1) / ranks * nbytes / RATE
    within = 1 << (ranks.bit_length() - 1)
    folded = (ALPHA_S + nbytes / RATE) * 2 * (ranks > within)
    return {
        "all_reduce by ring": 2 * (ranks - 1) * ALPHA_S + 2 * share,
        "all_reduce by tree": 2 * rounds * (ALPHA_S + nbytes / RATE),
        "all_reduce by halving-doubling": 2 * math.log2(within) * ALPHA_S
        + 2 * (within - 1) / within * nbytes / RATE
        + folded,
        "reduce_scatter by ring": (ranks - 1) * ALPHA_S + share,
        "all_gather by ring": (ranks - 1) * ALPHA_S + share,
        "reduce_scatter by halving-doubling": math.log2(ranks) * ALPHA_S + share,
        "all_gather by halving-doubling": math.log2(ranks) * ALPHA_S + share,
        "broadcast by tree": rounds * (ALPHA_S + nbytes / RATE),
        "reduce by tree": rounds * (ALPHA_S + nbytes / RATE),
        "all_to_all by pairwise": (ranks - 1) * ALPHA_S + share,
        "barrier by tree": 2 * rounds * ALPHA_S,
    }[f"{kind} by {algorithm}"]


def call(dist, kind: str, algorithm: str, numel: int) -> None:
    each, how = numel * dist.get_world_size(), {"algorithm": algorithm}
    whole, part = dist.tensor(each, name="whole"), dist.tensor(numel, name="part")
    {
        "all_reduce": lambda: dist.all_reduce(whole, **how),
        "reduce_scatter": lambda: dist.reduce_scatter(part, whole, **how),
        "all_gather": lambda: dist.all_gather(whole, part, **how),
        "broadcast": lambda: dist.broadcast(whole, 1, **how),
        "reduce": lambda: dist.reduce(whole, 1, **how),
        "all_to_all": lambda: dist.all_to_all(dist.empty(each), whole, **how),
        "barrier": lambda: dist.barrier(**how),
    }[kind]()


@pytest.mark.parametrize("ranks", SIZES)
def test_each_collective_takes_its_closed_form(ranks: int) -> None:
    cluster, numel = VirtualCluster.flat(ranks, alpha_s=ALPHA_S, byte_per_s=RATE), 12_345
    kinds = ["all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "barrier"]
    if ranks <= 64:
        kinds.append("all_to_all")
    for kind in kinds:
        for algorithm in CollectiveCosts(cluster.machine).plans(kind, tuple(range(ranks))):
            if kind in ("broadcast", "reduce") and algorithm == "ring":
                continue  # beside the closed forms: below
            expected = closed_form_s(kind, algorithm, ranks, 4 * numel * ranks)

            replay = cluster.run(call, kind, algorithm, numel)

            assert expected == pytest.approx(replay.makespan_s, rel=1e-9), (kind, algorithm)
            assert {f"{kind} by {algorithm}": ranks} == replay.algorithms


def written_ring(dist, numel: int) -> None:
    """An all-reduce from messages: any number of elements, unequal chunks too."""
    count, rank = dist.get_world_size(), dist.get_rank()
    x = dist.tensor(numel, name="x")
    cuts = [numel * place // count for place in range(count + 1)]
    chunks = [x[low:high] for low, high in itertools.pairwise(cuts)]
    inbox = dist.empty(-(-numel // count), name="inbox")
    for summing in (True, False):
        for step in range(count - 1):
            out = (rank - step + (not summing)) % count
            into = (out - 1) % count
            work = dist.isend(chunks[out], (rank + 1) % count)
            if summing:
                came = inbox[: len(chunks[into])]
                dist.recv(came, (rank - 1) % count)
                dist.add(chunks[into], came)
            else:
                dist.recv(chunks[into], (rank - 1) % count)
            work.wait()


@pytest.mark.parametrize("ranks", [2, 3, 8, *(pytest.param(count, marks=pytest.mark.slow) for count in (32, 100))])
def test_a_ring_written_from_messages_costs_what_the_collective_costs(ranks: int) -> None:
    cluster, numel = VirtualCluster.flat(ranks, alpha_s=ALPHA_S, byte_per_s=RATE), 1000 * ranks
    expected = closed_form_s("all_reduce", "ring", ranks, 4 * numel)

    replay = cluster.run(written_ring, numel)

    assert replay.finished
    assert replay.races == ()
    assert expected == pytest.approx(replay.makespan_s, rel=1e-9)
    assert {use.sent_bytes for use in replay.links} == {2 * (ranks - 1) / ranks * 4 * numel}
    assert all(replay.contents(rank, "x")[0].ranks == dict.fromkeys(range(ranks), 1) for rank in (0, ranks - 1))


@pytest.mark.parametrize("numel", [7, 16, 1001])
def test_a_ring_of_unequal_chunks_sums_each_part_once(numel: int) -> None:
    replay = VirtualCluster.flat(7).run(written_ring, numel)

    for rank in range(7):
        (part,) = replay.contents(rank, "x")
        assert (0, numel, dict.fromkeys(range(7), 1.0)) == (part.start, part.stop, part.ranks)


@pytest.mark.parametrize("micro", [1, 4, 16])
@pytest.mark.parametrize("stages", [2, 4])
def test_a_pipeline_has_its_bubble(stages: int, micro: int) -> None:
    """GPipe's (p-1)/(m+p-1) of each stage's time is idle, where messages cost nothing to speak of."""

    def program(dist) -> None:
        rank, acts = dist.get_rank(), [dist.empty(1, name=f"a{i}") for i in range(micro)]
        for act in acts:
            if rank > 0:
                dist.recv(act, rank - 1)
            dist.launch("forward", duration_s=1.0, reads=act, writes=act)
            if rank < stages - 1:
                dist.isend(act, rank + 1)

    replay = VirtualCluster.flat(stages, alpha_s=0.0, byte_per_s=1e18).run(program)

    assert replay.makespan_s == pytest.approx(micro + stages - 1, rel=1e-9)
    idle = [1 - busy / replay.makespan_s for busy in replay.compute_s]
    assert idle == pytest.approx([(stages - 1) / (micro + stages - 1)] * stages, rel=1e-9)


def test_auto_takes_the_cheapest_and_ring_and_tree_cross_where_the_model_says() -> None:
    """8 ranks at 20 us and 6 GB/s: 14a + 1.75 n/b = 6a + 6 n/b at 226 kB."""
    plans = CollectiveCosts(ClusterMachine.flat(8)).plans("all_reduce", tuple(range(8)))
    crossing = 8 * ALPHA_S * RATE / 4.25

    assert plans["ring"].seconds(crossing) == pytest.approx(plans["tree"].seconds(crossing), rel=1e-12)
    assert 225_882 == int(crossing)
    costs = CollectiveCosts(ClusterMachine.flat(64))
    small = costs.plans("all_reduce", tuple(range(64)))
    assert (2.52e-3, 0.24e-3) == pytest.approx((small["ring"].seconds(0), small["tree"].seconds(0)))
    for nbytes in (0, 1e3, 1e6, 1e9):
        best = costs.plan("all_reduce", tuple(range(64)), nbytes)
        assert best.seconds(nbytes) == min(plan.seconds(nbytes) for plan in small.values())


def test_a_hierarchy_keeps_most_bytes_inside_the_nodes() -> None:
    machine = ClusterMachine.of("8xH100", nodes=2)
    plan = CollectiveCosts(machine).plans("all_reduce", tuple(range(16)))["hierarchical"]
    nvlink, ndr, nbytes = link("NVLink4"), link("NDR"), 1e9
    expected = 14 * nvlink.seconds(nbytes / 8) + 2 * ndr.seconds(nbytes / 16)

    assert expected == pytest.approx(plan.seconds(nbytes), rel=1e-12)
    assert {(1, rank): 2 / 16 for rank in range(16)} == {key: sent for key, sent in plan.sent.items() if key[0] == 1}


@pytest.mark.parametrize(("nodes", "each"), [(2, 8), (3, 4), (5, 3), pytest.param(64, 8, marks=pytest.mark.slow)])
def test_two_levels_take_the_closed_form_of_both(nodes: int, each: int) -> None:
    """Hierarchical: a ring inside on all bytes, one of the nodes on a rank's share. A flat ring: its slowest link."""
    inside, between = LinkLevel("inside", each, 3e-6, 450e9), LinkLevel("between", nodes * each, 14e-6, 50e9)
    machine = ClusterMachine(nodes * each, (inside, between))
    nbytes, count = 4 * 12_345 * nodes * each, nodes * each
    rings = [2 * (size - 1) * level.alpha_s for size, level in ((each, inside), (nodes, between))]
    rings[0] += 2 * (each - 1) / each * nbytes / inside.byte_per_s
    rings[1] += 2 * (nodes - 1) / nodes * nbytes / each / between.byte_per_s
    flat_s = 2 * (count - 1) * (between.alpha_s + nbytes / count / between.byte_per_s)
    for algorithm, expected in (("hierarchical", sum(rings)), ("ring", flat_s)):
        run = VirtualCluster(machine).run(call, "all_reduce", algorithm, 12_345)

        assert expected == pytest.approx(run.makespan_s, rel=1e-9), algorithm


def test_ranks_that_share_a_port_share_its_rate() -> None:
    """Two nodes of four ranks, a port each: four messages out of a node take four times the bytes of one, one alpha."""
    levels = (LinkLevel("in", 4, 1e-6, 1e12), LinkLevel("out", 8, 1e-3, 1e6, ranks_per_port=4))

    def program(dist, senders: int) -> None:
        x, rank = dist.tensor(250_000), dist.get_rank()
        if rank < senders:
            dist.send(x, rank + 4)
        elif 4 <= rank < 4 + senders:
            dist.recv(x, rank - 4)

    cluster = VirtualCluster(ClusterMachine(8, levels))

    assert [1.001, 4.001] == pytest.approx([cluster.run(program, count).makespan_s for count in (1, 4)])


def test_racks_share_uplinks() -> None:
    machine = ClusterMachine.of("8xH100", nodes=4, nodes_per_rack=2, oversubscription=4)

    assert ["NVLink4", "NDR", "between racks"] == [level.name for level in machine.levels]
    assert (8, 16, 32) == tuple(level.span for level in machine.levels)
    assert machine.levels[2].byte_per_s == 16 * 50e9 / 4
    assert machine == ClusterMachine.from_dict(machine.to_dict())
