"""lab07b's sharded step, split block and pipeline: what the solutions take, by hand, and ranks that run in turn."""

from __future__ import annotations

import pytest

from edl_labs.exercises.lab07b_models_that_do_not_fit.cluster_layouts import every_layout, sequences
from edl_labs.exercises.lab07b_models_that_do_not_fit.judge.drawn_layouts import job_bytes, job_s
from edl_labs.exercises.ranks_in_turn import run_in_turn
from edl_labs.numerics import bytes_per_parameter
from edl_labs.roofline.network import zero_calls
from edl_labs.virtual.cluster import PipelineStage, ShardedLayers, VirtualCluster
from edl_labs.virtual.errors import VirtualClusterError


@pytest.mark.parametrize(("schedule", "held"), [("gpipe", [16, 16, 16, 16]), ("1f1b", [4, 3, 2, 1])])
def test_both_schedules_idle_alike_and_hold_what_the_deck_says(solution, schedule, held):
    def program(dist):
        stage = PipelineStage(dist, micro=16, elements=1, kept=10_000, forward_s=1e-3, backward_s=2e-3)
        solution["run_stage"](stage, schedule)

    run = VirtualCluster.flat(4, alpha_s=0, byte_per_s=1e15).run(program)

    assert 3 / (16 + 3) == pytest.approx(1 - max(run.compute_s) / run.makespan_s, rel=1e-6)
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

    with pytest.raises(VirtualClusterError, match="are already in memory"):
        VirtualCluster.flat(2).run(program)


def test_ranks_in_turn_add_up_and_name_who_does_not_call():
    torch = pytest.importorskip("torch")

    def sums(comm):
        once = comm.all_reduce(torch.tensor([comm.rank + 1.0]))
        return float(comm.all_reduce(once * (comm.rank + 1)))

    def one_leaves(comm):
        return comm.rank == 1 or comm.all_reduce(torch.ones(1))

    assert ([36.0] * 3, "") == run_in_turn(3, sums)[::2]
    assert "rank 1 has ended, but other ranks wait for it in call 0 (all_reduce)" == run_in_turn(2, one_leaves)[2]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_heads_and_columns_that_do_not_divide_are_drawn(exercises, seed):
    cases = exercises["split_a_block"].draw_cases(seed)

    assert any(case["heads"] % case["ranks"] for case in cases)
    assert any(case["hidden"] % case["ranks"] for case in cases)


@pytest.mark.parametrize("stage", range(4))
def test_stages_of_zero_are_the_librarys_where_nothing_is_padded_or_frozen(solution, stage):
    each = {"weights": 2, "gradients": 2, "optimizer": 12}
    recipe = {"layers": [8000, 16000], "frozen": 0, "micro_batches": 3, **each}
    calls = zero_calls(stage, 24000, ranks=8, micro_batches=3)

    kept = bytes_per_parameter("half+master adam", zero_stage=stage, gpus=8)

    assert kept.of(24000) == solution["held_bytes"](stage, 8, recipe)
    assert sum(call.sent_bytes(8) for call in calls) == solution["sent_bytes"](stage, 8, recipe)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_recipes_leave_no_layer_unpadded_and_freeze_some(exercises, seed):
    cases = exercises["zero"].draw_cases(seed)

    assert all(count % case["ranks"] for case in cases for count in case["recipe"]["layers"])
    assert {0, 1, 2, 3} == {case["recipe"]["frozen"] for case in cases}
    assert all(case["recipe"]["micro_batches"] > 1 for case in cases)
    assert any(case["recipe"]["gradients"] != case["recipe"]["weights"] for case in cases)


def test_two_slips_of_zero_at_once_are_told_by_what_is_wrong_and_not_by_either(judged):
    """A slip is named on its whole evidence: here stage 1 shards gradients, and shards are not rounded up."""

    def held_bytes(stage, ranks, recipe):
        trained = sum(recipe["layers"][recipe["frozen"] :])
        parts = (("weights", 3, sum(recipe["layers"])), ("gradients", 1, trained), ("optimizer", 1, trained))
        return sum(recipe[name] * count / (ranks if stage >= first else 1) for name, first, count in parts)

    outcome = judged("zero", held_bytes=held_bytes)

    assert 0 == outcome.points
    assert "in your answer, a GPU holds the wrong number of bytes of the gradients" == outcome.what


def test_layouts_are_priced_alike_by_the_judge_and_the_solution(solution):
    job = {"blocks": 16, "hidden": 4096, "block_parameters": 2 * 10**8, "sequence": 1024, "useful_sequences": 40}
    job |= {"nodes": 2, "gpus_per_node": 4, "flop_per_s": 150e12, "memory_byte_per_s": 9e11, "memory_bytes": 24e9}
    job |= {"inside": {"alpha_s": 3e-6, "byte_per_s": 1e11}, "between": {"alpha_s": 14e-6, "byte_per_s": 6e9}}
    every = list(every_layout(job))

    assert every == list(solution["every_layout"](job))
    for one in every[::5]:
        assert job_bytes(job, one) == pytest.approx(solution["layout_bytes"](job, one))
        assert job_s(job, one) == pytest.approx(solution["layout_s"](job, one))


@pytest.mark.slow  # a draw prices a few dozen jobs with all their layouts
def test_no_layout_is_the_best_of_all_jobs(exercises, solution):
    placed = [solution["place"](job) for seed in (1, 2) for job in exercises["layout"].draw_cases(seed)]

    assert all(len({one[name] for one in placed}) > 1 for name in ("dp", "tp", "pp", "micro", "zero", "recompute"))


@pytest.mark.slow  # two draws, and all layouts priced for each
def test_a_layout_within_three_per_cent_of_the_best_is_right_and_no_other(exercises, judged, solution):
    """The dearest layout that is still good enough, and the one behind it."""

    def ranked(job):
        fits = [one for one in every_layout(job) if solution["layout_bytes"](job, one) <= job["memory_bytes"]]
        rate = {
            at: min(sequences(one), job["useful_sequences"]) / solution["layout_s"](job, one)
            for at, one in enumerate(fits)
        }
        order = sorted(rate, key=rate.get, reverse=True)
        good = [at for at in order if rate[at] >= 0.97 * rate[order[0]]]
        return fits[good[-1]], fits[order[len(good)]]

    assert 1 == judged("layout", place=lambda job: ranked(job)[0]).points
    wrong = judged("layout", place=lambda job: ranked(job)[1])
    assert (0, "your function does not choose the fastest layout that fits") == (wrong.points, wrong.what)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("send_forward", "stage 1 sends to a stage that does not exist"),
        ("isend_forward", "the loss reads its output"),
        ("recv_backward", "stage 1 receives from a stage that does not exist"),
    ],
)
def test_the_last_stage_is_told_that_nobody_comes_after_it(call, said):
    def program(dist):
        stage = PipelineStage(dist, micro=2, elements=1, kept=1, forward_s=1e-3, backward_s=1e-3)
        if dist.rank:
            stage.recv_forward(0)
            stage.forward(0)
            getattr(stage, call)(0)
        else:
            stage.forward(0)
            stage.isend_forward(0)

    with pytest.raises(VirtualClusterError, match=said):
        VirtualCluster.flat(2).run(program)


@pytest.mark.parametrize("number", [-1, 2, 7])
def test_a_micro_batch_that_there_is_not_is_told(number):
    def program(dist):
        stage = PipelineStage(dist, micro=2, elements=1, kept=1, forward_s=1e-3, backward_s=1e-3)
        stage.forward(number)

    with pytest.raises(VirtualClusterError, match=f"there is no micro-batch {number}"):
        VirtualCluster.flat(2).run(program)


def test_an_output_that_is_no_number_is_told_so(judged, solution):
    names = {name: solution[name] for name in ("shards", "ToRanks", "FromRanks")}
    outcome = judged("split_a_block", forward=lambda *given: solution["forward"](*given) * float("nan"), **names)

    assert "your output contains values that are not finite" == outcome.what
    assert "contains nan" in outcome.why


def lying_forward(whole_block, kept):
    """Every rank computes the whole block, and writes one sum of equal parts forward and backward into its record."""

    def forward(shard, x, comm):
        output = whole_block(kept, x)

        def went_back(gradient):
            write(comm, gradient / comm.size, "backward")

        write(comm, output.detach() / comm.size, "forward")
        x.register_hook(went_back)
        return output

    def write(comm, tensor, phase):
        comm.given.append(tensor.clone())
        comm.phases.append(phase)

    return forward


def test_sums_that_are_only_written_into_the_record_earn_nothing(judged, solution):
    kept = {}

    def shards(block, rank, ranks):
        kept.update(block)
        return solution["shards"](block, rank, ranks)

    outcome = judged("split_a_block", shards=shards, forward=lying_forward(solution["whole_block"], kept))

    assert 0 == outcome.points
    assert "in your code, a rank contributes something other than its part of the output" == outcome.what


def test_a_part_of_the_gradient_that_is_only_written_earns_nothing(judged, solution):
    class ToRanks(solution["ToRanks"]):
        @staticmethod
        def backward(ctx, gradient):
            summed, none = solution["ToRanks"].backward(ctx, gradient)
            ctx.comm.given[-1] = summed / ctx.comm.size
            return summed, none

    names = {name: solution[name] for name in ("shards", "FromRanks")}

    def forward(shard, x, comm):
        return own(shard, x, comm)

    own = type(solution["forward"])(
        solution["forward"].__code__, {**solution["forward"].__globals__, "ToRanks": ToRanks}
    )
    outcome = judged("split_a_block", forward=forward, ToRanks=ToRanks, **names)

    assert "in your code, a rank contributes something other than its part of the input's gradient" == outcome.what


def test_parts_may_be_summed_transposed(judged, solution):
    def forward(shard, x, comm):
        name = "down_bias" if shard["kind"] == "mlp" else "out_bias"
        part = solution["whole_block"](shard | {name: 0 * shard[name]}, solution["ToRanks"].apply(x, comm))
        return solution["FromRanks"].apply(part.T, comm).T + shard[name]

    names = {name: solution[name] for name in ("ToRanks", "FromRanks", "shards")}
    assert 1 == judged("split_a_block", forward=forward, **names).points


@pytest.mark.parametrize(
    ("share", "what"),
    [
        (lambda rank, ranks: 1 / ranks, "your code divides the output's bias among the ranks"),
        (
            lambda rank, ranks: float(rank == 0),
            "in your code, a rank's copy of the output's bias differs from the block's bias",
        ),
    ],
)
def test_the_outputs_bias_is_whole_on_every_rank(judged, solution, share, what):
    names = {name: solution[name] for name in ("ToRanks", "FromRanks")}

    def shards(block, rank, ranks):
        name = "down_bias" if block["kind"] == "mlp" else "out_bias"
        return solution["shards"](block, rank, ranks) | {name: block[name] * share(rank, ranks)}

    def forward(shard, x, comm):
        return solution["FromRanks"].apply(solution["whole_block"](shard, solution["ToRanks"].apply(x, comm)), comm)

    outcome = judged("split_a_block", shards=shards, forward=forward, **names)

    assert (0, what) == (outcome.points, outcome.what)


def test_a_cut_that_leaves_a_rank_an_empty_bias_is_told_as_a_cut(judged, solution):
    def shards(block, rank, ranks):
        shard = solution["shards"](block, rank, ranks)
        if block["kind"] == "mlp":
            rows = shard["down"].shape[0]
            shard["down_bias"] = block["down_bias"][rank * rows : (rank + 1) * rows]
        return shard

    names = {name: solution[name] for name in ("ToRanks", "FromRanks", "forward")}
    outcome = judged("split_a_block", shards=shards, **names)

    assert "your code cuts the bias of the output, but every rank has all output channels" == outcome.what
    assert "a rank has `down_bias` of shape [0]" in outcome.why
