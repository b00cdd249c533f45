"""lab07's sharded step, split block and pipeline: what the solutions take, by hand, and ranks that run in turn."""

from __future__ import annotations

import pytest

from edl_labs.exercises.lab07_many_gpus.ranks_in_turn import run_in_turn
from edl_labs.roofline.network import bubble_fraction
from edl_labs.virtual.cluster import PipelineStage, ShardedLayers, VirtualCluster
from edl_labs.virtual.errors import VirtualClusterError


@pytest.mark.parametrize(("schedule", "held"), [("gpipe", [16, 16, 16, 16]), ("1f1b", [4, 3, 2, 1])])
def test_both_schedules_idle_alike_and_hold_what_the_deck_says(solution, schedule, held):
    def program(dist):
        stage = PipelineStage(dist, micro=16, elements=1, kept=10_000, forward_s=1e-3, backward_s=2e-3)
        solution["run_stage"](stage, schedule)

    run = VirtualCluster.flat(4, alpha_s=0, byte_per_s=1e15).run(program)

    assert bubble_fraction(4, 16) == pytest.approx(1 - max(run.compute_s) / run.makespan_s, rel=1e-6)
    assert held == [round(peak / 40_000) for peak in run.peak_bytes]


def test_a_pass_before_its_input_is_named():
    def program(dist):
        PipelineStage(dist, micro=1, elements=1, kept=1, forward_s=1e-3, backward_s=1e-3).forward(
            0
        ) if dist.rank else None

    with pytest.raises(VirtualClusterError, match=r"stage 1 cannot do forward\(0\) yet"):
        VirtualCluster.flat(2).run(program)


def test_sharded_layers_hide_all_but_the_first_gather_and_the_last_sum(solution):
    sizes = {"elements": [4_000_000] * 4, "forward_s": [2e-3] * 4, "backward_s": [4e-3] * 4}
    cluster = VirtualCluster.flat(2, alpha_s=0, byte_per_s=8e9)
    run = cluster.run(lambda dist: solution["sharded_step"](ShardedLayers(dist, **sizes)))

    # 8 MB over the link take 1 ms, there and back.
    assert 24e-3 + 2e-3 == pytest.approx(run.makespan_s, rel=1e-3)
    assert () == run.races


def test_gathering_what_is_there_is_refused():
    def program(dist):
        layers = ShardedLayers(dist, elements=[2], forward_s=[1.0], backward_s=[1.0])
        layers.all_gather(0)
        layers.all_gather(0)

    with pytest.raises(VirtualClusterError, match="are here already"):
        VirtualCluster.flat(2).run(program)


def test_ranks_in_turn_add_up_and_name_who_does_not_call():
    torch = pytest.importorskip("torch")

    def sums(comm):
        once = comm.all_reduce(torch.tensor([comm.rank + 1.0]))
        return float(comm.all_reduce(once * (comm.rank + 1)))

    def one_leaves(comm):
        return comm.rank == 1 or comm.all_reduce(torch.ones(1))

    assert ([36.0] * 3, "") == run_in_turn(3, sums)[::2]
    assert "rank 1 ends, and others wait for it in all_reduce 0" == run_in_turn(2, one_leaves)[2]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_heads_and_columns_that_do_not_divide_are_drawn(exercises, seed):
    cases = exercises["split_a_block"].draw_cases(seed)

    assert any(case["heads"] % case["ranks"] for case in cases)
    assert any(case["hidden"] % case["ranks"] for case in cases)
