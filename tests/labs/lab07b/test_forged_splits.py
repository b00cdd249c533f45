"""split_a_block: sums that are told as one, other collectives, and ranks that know the whole block, earn nothing."""

from __future__ import annotations

from typing import Any

import pytest
import torch


def told_as_one(solution: dict[str, Any]) -> Any:
    """Three sums in the backward pass of attention, of which the record shows one."""

    def forward(shard, x, comm):
        if shard["kind"] == "mlp" or not shard["heads"]:
            return solution["forward"](shard, x, comm)
        gradients = []

        class Entered(torch.autograd.Function):
            @staticmethod
            def forward(ctx, one):
                return one.view_as(one)

            @staticmethod
            def backward(ctx, gradient):
                found = comm.all_reduce(gradient)
                gradients.append(gradient)
                if len(gradients) == 3 and hasattr(comm, "phases"):
                    comm.given[-3:], comm.phases[-3:], comm.names[-3:] = [sum(gradients)], ["backward"], ["all_reduce"]
                return found

        size = shard["query"].shape[1] // shard["heads"]
        products = [Entered.apply(x) @ shard[name] for name in ("query", "key", "value")]
        q, k, v = (one.unflatten(1, (shard["heads"], size)).transpose(0, 1) for one in products)
        mixed = ((q @ k.transpose(1, 2) / size**0.5).softmax(2) @ v).transpose(0, 1).flatten(1)
        return solution["FromRanks"].apply(mixed @ shard["out"], comm) + shard["out_bias"]

    return forward


def test_three_sums_that_are_told_as_one_are_three(judged, solution):
    outcome = judged("split_a_block", forward=told_as_one(solution))

    assert (0, "your ranks' programs cannot be recorded") == (outcome.points, outcome.what)
    assert "more than 2 sums" in outcome.why


def through(solution: dict[str, Any], collect: Any) -> Any:
    """The solution's forward pass, with another way to bring the parts together."""

    class Together(torch.autograd.Function):
        @staticmethod
        def forward(ctx, part, comm):
            return collect(part, comm)

        @staticmethod
        def backward(ctx, gradient):
            return gradient, None

    def forward(shard, x, comm):
        x = solution["ToRanks"].apply(x, comm)
        if shard["kind"] == "mlp":
            part = solution["gelu"](x @ shard["up"] + shard["up_bias"]) @ shard["down"]
            return Together.apply(part, comm) + shard["down_bias"]
        return Together.apply(solution["heads_of"](shard, x) @ shard["out"], comm) + shard["out_bias"]

    return forward


def test_parts_that_are_gathered_are_not_summed(judged, solution):
    outcome = judged("split_a_block", forward=through(solution, lambda part, comm: sum(comm.all_gather(part))))

    assert (0, "your ranks' programs cannot be recorded") == (outcome.points, outcome.what)


def test_a_sum_from_elsewhere_is_no_sum(judged, solution):
    """The record has the rank's part, and the result is what the check already knows."""

    def taken(part, comm):
        found = comm.all_reduce(part)
        return sum(comm._known[len(comm.given) - 1]) if hasattr(comm, "_known") else 0 * found

    outcome = judged("split_a_block", forward=through(solution, taken))

    assert (0, "on different values, your ranks do not give the block's results") == (outcome.points, outcome.what)


def test_a_sum_over_the_transposed_part_is_as_good(judged, solution):
    forward = through(solution, lambda part, comm: comm.all_reduce(part.T.contiguous()).T)

    assert 1 == judged("split_a_block", forward=forward).points


def test_a_list_of_ranks_that_is_cut_short_is_no_record(judged, solution, exercises):
    from edl_labs.checks import judge
    from edl_labs.checks.evidence import collect
    from edl_labs.checks.spec import given_halves

    one = exercises["split_a_block"]
    cases = one.draw_cases(3)
    want = [record["value"] for record in collect(one, dict(solution), given_halves(cases))]
    for name in ("outputs", "input_gradients", "biases", "programs"):
        got = [{"value": {**value, name: value[name][:1]}} for value in want]

        assert 0 == judge(one, cases, got, want, points=1).points, name


def with_more(solution: dict[str, Any], more: Any) -> Any:
    """The solution's shards, with what `more` makes of a shard and the whole block besides."""

    def shards(block, rank, ranks):
        shard = solution["shards"](block, rank, ranks)
        return {**shard, **more(shard, block)}

    return shards


def joined(shard, block):
    """Attention's three matrices as one."""
    return {"qkv": torch.cat([shard[name] for name in ("query", "key", "value")], 1)} if "query" in shard else {}


MORE = {
    "a joined matrix": joined,
    "zeros": lambda shard, block: {"rank_bias": torch.zeros(3)},
    "indices": lambda shard, block: {"places": torch.arange(3)},
    "the names of inputs": lambda shard, block: {"x": torch.zeros(3), "sum 0": torch.ones(2)},
    "a list": lambda shard, block: {"all": [one for one in shard.values() if isinstance(one, torch.Tensor)]},
    "the whole block": lambda shard, block: {f"whole_{name}": one for name, one in block.items()},
}


@pytest.mark.parametrize("kind", MORE)
def test_a_shard_may_have_more_than_the_names_of_the_block(judged, solution, kind):
    outcome = judged("split_a_block", shards=with_more(solution, MORE[kind]))

    assert "passed" == outcome.state, (outcome.what, outcome.why)


def test_a_joined_matrix_besides_the_names_is_the_ranks_own(judged, solution):
    """The product takes its values from the joined matrix."""

    class Taken(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight, values):
            ctx.save_for_backward(x, values)
            return x @ values

        @staticmethod
        def backward(ctx, gradient):
            x, values = ctx.saved_tensors
            return gradient @ values.T, x.T @ gradient, None

    def forward(shard, x, comm):
        if shard["kind"] == "mlp" or not shard["heads"]:
            return solution["forward"](shard, x, comm)
        x = solution["ToRanks"].apply(x, comm)
        names, size = ("query", "key", "value"), shard["query"].shape[1] // shard["heads"]
        parts = shard["qkv"].detach().chunk(3, 1)
        products = [Taken.apply(x, shard[name], part) for name, part in zip(names, parts, strict=True)]
        q, k, v = (one.unflatten(1, (shard["heads"], size)).transpose(0, 1) for one in products)
        mixed = ((q @ k.transpose(1, 2) / size**0.5).softmax(2) @ v).transpose(0, 1).flatten(1)
        return solution["FromRanks"].apply(mixed @ shard["out"], comm) + shard["out_bias"]

    outcome = judged("split_a_block", shards=with_more(solution, joined), forward=forward)

    assert "passed" == outcome.state, (outcome.what, outcome.why)


def test_a_rank_that_carries_the_whole_block_knows_its_own_part_alone(judged, solution):
    """Every rank works out the whole MLP where no plain run looks, from what its shard carries."""

    def forward(shard, x, comm):
        if shard["kind"] != "mlp" or hasattr(comm, "given"):
            return solution["forward"](shard, x, comm)
        whole = {name.removeprefix("whole_"): one for name, one in shard.items() if name.startswith("whole_")}
        x = solution["ToRanks"].apply(x, comm)
        comm.all_reduce(x.detach())
        return solution["gelu"](x @ whole["up"] + whole["up_bias"]) @ whole["down"] + whole["down_bias"]

    outcome = judged("split_a_block", shards=with_more(solution, MORE["the whole block"]), forward=forward)

    assert (0, "on different values, your ranks do not give the block's results") == (outcome.points, outcome.what)


def test_assertions_on_tensors_change_nothing(judged, solution):
    def forward(shard, x, comm):
        assert torch.equal(x, x.clone())
        output = solution["forward"](shard, x, comm)
        assert not torch.allclose(output, output + 1)
        return output

    outcome = judged("split_a_block", forward=forward)

    assert "passed" == outcome.state, (outcome.what, outcome.why)


def test_a_rank_that_draws_random_numbers_is_told_so(judged, solution):
    def forward(shard, x, comm):
        torch.rand(2)
        return solution["forward"](shard, x, comm)

    outcome = judged("split_a_block", forward=forward)

    assert (0, "your ranks' programs cannot be recorded") == (outcome.points, outcome.what)
    assert "draws random numbers" in outcome.why
