"""split_a_block: sums that are told as one, other collectives, and ranks that know the whole block, earn nothing."""

from __future__ import annotations

from typing import Any

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

    assert (0, "your ranks cannot be recorded") == (outcome.points, outcome.what)
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

    assert (0, "your ranks cannot be recorded") == (outcome.points, outcome.what)


def test_a_sum_from_elsewhere_is_no_sum(judged, solution):
    """The record has the rank's part, and the result is what the check already knows."""

    def taken(part, comm):
        found = comm.all_reduce(part)
        return sum(comm._known[len(comm.given) - 1]) if hasattr(comm, "_known") else 0 * found

    outcome = judged("split_a_block", forward=through(solution, taken))

    assert (0, "on other values, the ranks do not give what the whole block gives") == (outcome.points, outcome.what)


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
