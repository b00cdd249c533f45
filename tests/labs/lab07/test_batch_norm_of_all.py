"""lab07's batch norm over all ranks: it is torch's on all rows, and other rules are told by what they give."""

from __future__ import annotations

import pytest
import torch

from edl_labs.exercises.lab07_many_gpus.statistics_of_all import drawn_rows
from edl_labs.exercises.ranks_in_turn import run_in_turn


@pytest.mark.parametrize("number", range(5))
def test_the_solution_is_torchs_batch_norm_of_all_rows(solution, exercises, number):
    case = exercises["sync_batch_norm"].draw_cases(7)[number]
    parts, running, upstream = drawn_rows(case)
    norm = torch.nn.BatchNorm1d(case["channels"], eps=case["eps"], momentum=case["momentum"], affine=False).double()
    norm.running_mean, norm.running_var = (one.clone() for one in running)
    whole = torch.cat(parts).requires_grad_()
    (y := norm(whole)).backward(torch.cat(upstream))

    def program(comm):
        options = {"momentum": case["momentum"], "eps": case["eps"]}
        out, after, kept = solution["normalise"](parts[comm.rank], running, comm, **options)
        return out, after, solution["go_back"](upstream[comm.rank], kept, comm)

    done, comms, _ = run_in_turn(len(parts), program)

    torch.testing.assert_close(torch.cat([one[0] for one in done]), y, rtol=1e-7, atol=1e-7)
    torch.testing.assert_close(torch.cat([one[2] for one in done]), whole.grad, rtol=1e-6, atol=1e-6)
    for rank in range(len(parts)):
        torch.testing.assert_close(torch.stack(done[rank][1]), torch.stack([norm.running_mean, norm.running_var]))
    assert {("all_gather", "all_reduce")} == {tuple(comm.names) for comm in comms}


def test_two_slips_at_once_are_told_by_none_of_both(judged, solution):
    """The variances averaged, and eps outside of the root: neither sentence would be the whole truth."""

    def normalise(x, running, comm, *, momentum, eps):
        counts, means, spreads = torch.stack(
            comm.all_gather(torch.stack([torch.full_like(x[0], len(x)), x.mean(0), x.var(0, correction=0)]))
        ).unbind(1)
        mean = (counts * means).sum(0) / counts.sum(0)
        scale = 1 / ((counts * spreads).sum(0).div(counts.sum(0)).sqrt() + eps)
        return (x - mean) * scale, running, ((x - mean) * scale, scale, counts.sum(0))

    outcome = judged("sync_batch_norm", normalise=normalise, go_back=solution["go_back"])

    assert "your function normalises rows with the wrong mean or variance" == outcome.what


def test_a_gather_gives_every_ranks_part_and_meets_no_sum():
    def gathers(comm):
        return [float(one) for one in comm.all_gather(torch.tensor(comm.rank + 1.0))]

    def mixed(comm):
        return (comm.all_gather if comm.rank else comm.all_reduce)(torch.ones(1))

    def ragged(comm):
        return comm.all_gather(torch.ones(comm.rank + 1))

    assert ([[1.0, 2.0]] * 2, "") == run_in_turn(2, gathers)[::2]
    assert "call 0 is all_gather on one rank and all_reduce on another" == run_in_turn(2, mixed)[2]
    assert "call 0 (all_gather) gathers parts of different shapes: (1,), (2,)" == run_in_turn(2, ragged)[2]


def test_parts_of_different_shapes_are_told_by_the_rows(judged, solution):
    def normalise(x, running, comm, *, momentum, eps):
        rows = torch.cat(comm.all_gather(x))
        scale = 1 / (rows.var(0, correction=0) + eps).sqrt()
        batch = (rows.mean(0), rows.var(0))
        after = [(1 - momentum) * old + momentum * new for old, new in zip(running, batch, strict=True)]
        return (x - rows.mean(0)) * scale, after, ((x - rows.mean(0)) * scale, scale, len(rows))

    outcome = judged("sync_batch_norm", normalise=normalise, go_back=solution["go_back"])

    assert "your ranks send tensors of different shapes" == outcome.what
    assert "gathers parts of different shapes" in outcome.why
    assert "send only a few numbers per channel" in outcome.next


@pytest.mark.parametrize(
    ("odd", "said"),
    [
        (lambda gradient: gradient * float("nan"), "your gradient of x does not have one finite number per element"),
        (lambda gradient: gradient[:1], "your gradient of x does not have one finite number per element"),
        (lambda gradient: 2 * gradient, "your gradient of x is not that of the whole batch"),
    ],
)
def test_a_gradient_that_cannot_be_read_is_no_other_mistake(judged, solution, odd, said):
    outcome = judged(
        "sync_batch_norm",
        normalise=solution["normalise"],
        go_back=lambda *given: odd(solution["go_back"](*given)),
    )

    assert said == outcome.what


def test_fewer_digits_are_told_before_what_comes_of_them(judged, solution):
    def normalise(x, running, comm, **options):
        class Short:
            def all_gather(self, tensor):
                return comm.all_gather(tensor.float())

        return solution["normalise"](x, running, Short(), **options)

    outcome = judged("sync_batch_norm", normalise=normalise, go_back=solution["go_back"])

    assert "your ranks send tensors of lower precision than x" == outcome.what
