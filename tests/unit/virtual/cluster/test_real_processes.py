"""The same program on real processes: contents equal to the replay's, and a sentence for whatever cannot run."""

from __future__ import annotations

import pytest

from edl_labs.virtual.cluster import VirtualCluster, replay_cluster
from edl_labs.virtual.cluster.real_processes import MarkedContents, check_backend, run_really
from edl_labs.virtual.errors import VirtualClusterError

DTYPES = ("fp64", "fp32", "bf16", "fp16", "fp8", "int8", "int32", "int64", "uint8")
REDUCES = ("sum", "max", "min", "product", "avg")


def everything(dist) -> None:
    """Each collective in each dtype, each on tensors of its own."""
    ranks = dist.get_world_size()
    for dtype in DTYPES:
        for op in REDUCES:
            dist.all_reduce(dist.tensor(7, dtype=dtype), op)
        dist.reduce(dist.tensor(5, dtype=dtype), ranks - 1)
        dist.broadcast(dist.tensor(6, dtype=dtype), 1)
        dist.all_gather(dist.empty(3 * ranks, dtype=dtype), dist.tensor(3, dtype=dtype))
        dist.reduce_scatter(dist.empty(3, dtype=dtype), dist.tensor(3 * ranks, dtype=dtype))
        dist.all_to_all(dist.empty(2 * ranks, dtype=dtype), dist.tensor(2 * ranks, dtype=dtype))
        dist.barrier()


def by_hand(dist) -> None:
    """A ring from messages, streams and groups, a kernel, and a part of a tensor."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    part, got = dist.tensor(8, name="part"), dist.empty(8, name="got")
    for _ in range(ranks - 1):
        sent, came = dist.isend(part, (rank + 1) % ranks), dist.irecv(got, (rank - 1) % ranks)
        sent.wait()
        came.wait()
        dist.add(part[2:6], got[:4])
    pair = dist.new_group([0, 1])
    if dist.get_rank(pair) >= 0:
        work = dist.all_reduce(part[4:], group=pair, async_op=True)
        work.wait()
    dist.launch("update", duration_s=1e-6, reads=[part], writes=[got])
    dist.scale(got, 0.5)
    dist.broadcast(got, 0)


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_every_collective_and_dtype_leaves_what_the_replay_says_or_is_refused_with_a_message(ranks):
    cluster = VirtualCluster.flat(ranks)
    programs = cluster.record(everything)
    engine = replay_cluster(programs, cluster.machine).engine
    found = run_really(programs, engine, backend="gloo", timeout_s=120, pass_over=True)
    refused = {text.split(":")[0] for text in found.refused}
    print(*found.refused, sep="\n")

    assert all(": " in text for text in found.refused)
    # Averages of whole numbers are none; older gloos have no averages at all, and newer ones more dtypes.
    assert "all_reduce (avg) of int32" in refused
    plain = {text for text in refused if text.endswith(("float64", "float32", "int32"))}
    assert all(text.startswith("all_reduce (avg)") for text in plain)
    assert found.elements > 0


@pytest.mark.slow
def test_messages_groups_and_kernels_leave_what_the_replay_says():
    replay = VirtualCluster.flat(4).run(by_hand, backend="gloo", ranks=3)

    assert (3, "gloo", 6) == (replay.real.ranks, replay.real.backend, replay.real.tensors)
    assert 48 == replay.real.elements


def test_contents_become_numbers_without_a_process():
    def program(dist):
        mine = dist.tensor(4, name="mine")
        most = dist.tensor(4, name="most")
        dist.all_reduce(mine)
        dist.all_reduce(most, "max")

    engine = VirtualCluster.flat(2).run(program).engine
    contents = MarkedContents(engine, modulus=11)
    forms = engine.graph.sides[0].tensors
    own = [[contents.starts(rank, number, forms[number]) for number in (0, 1)] for rank in (0, 1)]

    assert list(own[0][0] + own[1][0]) == list(contents.values(contents.memory[1][0], 4))
    assert [max(pair) for pair in zip(own[0][1], own[1][1], strict=True)] == list(
        contents.values(contents.memory[0][1], 4)
    )


@pytest.mark.parametrize(("backend", "ranks"), [("mpi", 2), ("gloo", 1), ("gloo", 9), ("gloo", 2.0)])
def test_what_cannot_run_here_is_told_before_a_process_starts(backend, ranks):
    with pytest.raises(VirtualClusterError) as caught:
        check_backend(backend, ranks)

    assert all((caught.value.what, caught.value.why, caught.value.next))


def test_a_program_that_hangs_is_told_by_the_replay_and_starts_no_process():
    def program(dist):
        if dist.get_rank() == 0:
            dist.barrier()

    with pytest.raises(VirtualClusterError, match="rank 0"):
        VirtualCluster.flat(2).run(program, backend="gloo")
