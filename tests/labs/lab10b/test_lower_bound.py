"""The lower bound of a training job: by hand, against a reference, and against searches for what would beat it."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from edl_labs.exercises.cluster_programs import written_programs
from edl_labs.exercises.lab10b_within_the_budget.budget_scores import MARGIN
from edl_labs.exercises.lab10b_within_the_budget.judge.drawn_training_jobs import budgets, drawn_job
from edl_labs.exercises.lab10b_within_the_budget.judge.training_genomes import (
    best_genome,
    drawn_genome,
    naive_genome,
    neighbours,
    program_of,
)
from edl_labs.virtual.budget import (
    Offer,
    TrainingJob,
    best_lower_bound,
    lower_bound,
    record_training,
    replay_training,
    run_training,
)
from edl_labs.virtual.errors import ReplayError
from tests.sampling import few

DRAWS = [(seed, (1, 2, 4, 1, 2)[seed % 5]) for seed in range(50)]  # of 8 GPUs a run takes seconds


def small_job(*, ranks: int = 1, **changes) -> TrainingJob:
    sizes = {
        "steps": 2, "units": 4, "ranks": ranks, "inputs": 1000, "elements": (1000, 500), "outputs": (10, 10),
        "forward_s": (1e-3, 2e-3), "backward_s": (2e-3, 4e-3), "kernel_s": 1e-4, "pass_s": 1e-4, "decode_s": 1e-3,
        "convert_s": 1e-3, "pinned_byte_per_s": 1e6, "pageable_byte_per_s": 5e5, "memory_byte_per_s": 24e6,
        "call_s": 0.0, "alpha_s": 1e-4, "link_byte_per_s": 1e7, "memory_bytes": 10**9, "price_per_gpu_s": 2.0,
        "seed": 1,
    }  # fmt: skip
    return TrainingJob(**{**sizes, **changes})


def drawn(seed: int, ranks: int) -> TrainingJob:
    return drawn_job(np.random.default_rng(seed), ranks=ranks)


def is_right(run, job: TrainingJob) -> bool:
    return not run.faults and not run.races and run.peak_bytes <= job.memory_bytes


def test_the_bounds_of_a_small_job_by_hand():
    bound = lower_bound(small_job()).bounds

    # Five kernels' fixed parts and 4 units of 9 ms; an update of 24 B x 1500 at 24 MB/s; decoded and copied, 2 ms.
    assert 2.0015e-3 + 2 * (36.5e-3 + 1.6e-3) == pytest.approx(bound["compute"])
    # All decoded, a copy, a unit there and back, and layer 0 updated.
    assert 8e-3 + 1.0015e-3 + 9.5e-3 + 1.1e-3 == pytest.approx(bound["loader"])
    assert 1e-3 + 2 * (1.5e-6 + 4e-3) + 9.5e-3 + 1.1e-3 == pytest.approx(bound["copies"])
    assert "links" not in bound


def test_the_sum_of_the_first_layer_hides_behind_nothing():
    job = small_job(ranks=2)
    alone = replace(job, alpha_s=0.0, link_byte_per_s=1e18)

    # A ring of two: 2 x (alpha + 2000 B / 10 MB/s) for the 1000 parameters of layer 0; it hides behind an update of the
    # other layer alone, 0.5 ms.
    assert 6e-4 == pytest.approx(job.all_reduce_s(1000))
    assert 2 * (6e-4 - 5e-4) == pytest.approx(lower_bound(job).bounds["compute"] - lower_bound(alone).bounds["compute"])


def require_a_reference_near_the_bound(job: TrainingJob) -> None:
    """The efficiency of the naive program is at most 0.2, that of the reference at least 0.9; their losses agree."""
    naive, best = (run_training(job, program_of(genome(job))) for genome in (naive_genome, best_genome))

    assert naive.efficiency <= 0.20
    assert 0.90 <= best.efficiency <= 1.0
    assert is_right(best, job)
    assert naive.losses == best.losses


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "ranks"), few(DRAWS, quick=4))
def test_a_reference_comes_near_the_bound_where_the_naive_program_is_far_from_it(seed, ranks):
    require_a_reference_near_the_bound(drawn(seed, ranks))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(50))
def test_a_reference_comes_near_the_bound_in_the_jobs_that_are_scored(seed):
    """On one, two and four GPUs, as each budget pays for: a sum has a long latency, the first load takes long."""
    for case in budgets(np.random.default_rng(seed)):
        job, offers = TrainingJob.from_dict(case["job"]), [Offer(**offer) for offer in case["offers"]]
        bought_s = best_lower_bound(job, offers, budget=case["budget"] / MARGIN)
        jobs = {lower_bound(job.on(offer.ranks)).seconds: job.on(offer.ranks) for offer in offers}
        require_a_reference_near_the_bound(jobs[bought_s])


@pytest.mark.parametrize("seed", few(range(12), quick=2))
def test_no_drawn_program_beats_the_bound(seed):
    rng = np.random.default_rng(1000 + seed)
    job = drawn_job(rng, ranks=int(rng.choice([1, 2])), steps=2)
    shares = [run_training(job, program_of(drawn_genome(job, rng))).efficiency for _ in range(12)]

    assert max(shares) <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "rounds"), [(1, 2), *few([(2, 8), (3, 8), (4, 8), (5, 8)], quick=0)])
def test_no_program_that_a_greedy_search_finds_beats_the_bound(seed, rounds):
    rng = np.random.default_rng(seed)
    job = drawn_job(rng, ranks=1 + seed % 2, steps=3)
    genome, best = best_genome(job), 0.0
    for _ in range(rounds):
        runs = [(run_training(job, program_of(one)), one) for one in neighbours(genome, job, rng)]
        share, genome = max(
            ((run.efficiency if is_right(run, job) else 0.0, one) for run, one in runs), key=lambda pair: pair[0]
        )
        best = max(best, share)

    assert 0.9 <= best <= 1.0


@pytest.mark.parametrize(("seed", "ranks"), few([(1, 1), (2, 2), (3, 1), (4, 2), (5, 4)], quick=2))
def test_no_program_without_some_of_its_work_is_taken_for_a_training(seed, ranks):
    """Each kernel, copy and sum is left out, one at a time: what is left is refused, or says what is wrong with it."""
    job = drawn_job(np.random.default_rng(seed), ranks=ranks, steps=2)
    programs = record_training(job, program_of(best_genome(job)))
    rng = np.random.default_rng(seed)
    works = [at for at, entry in enumerate(programs[0]) if entry["op"] in ("launch", "copy", "all_reduce", "host_work")]
    for at in rng.choice(works, size=40, replace=False):
        left = json.loads(written_programs(programs))
        for program in left if left[0][at]["op"] == "all_reduce" else left[:1]:
            del program[at]
        try:
            run = replay_training(left, job)
        except ReplayError:
            continue

        assert not is_right(run, job), f"{programs[0][at]} is missed by nobody"


def test_what_a_budget_can_buy_is_the_fastest_offer_that_its_bound_can_pay():
    job = small_job()
    offers = [Offer(1, 1.0), Offer(2, 1.0), Offer(4, 5.0)]
    price_of_two = 2 * lower_bound(job.on(2)).seconds

    assert lower_bound(job.on(2)).seconds == best_lower_bound(job, offers, budget=price_of_two * 1.01)
    assert lower_bound(job).seconds == best_lower_bound(job, offers, budget=price_of_two * 0.99)
    assert best_lower_bound(job, offers, budget=1e-9) == float("inf")


@pytest.mark.parametrize("seed", range(3))
def test_each_drawn_budget_pays_for_the_reference_and_for_no_doubling(seed):
    for case in budgets(np.random.default_rng(seed)):
        offers = [Offer(**offer) for offer in case["offers"]]
        job = TrainingJob.from_dict(case["job"])
        prices = [offer.ranks * offer.price_per_gpu_s * lower_bound(job.on(offer.ranks)).seconds for offer in offers]
        paid = [price for price in prices if price * MARGIN <= case["budget"]]

        assert max(paid) / 0.85 <= case["budget"]
        assert paid == sorted(prices)[: len(paid)]


@pytest.mark.parametrize("seed", range(3))
def test_one_drawn_budget_pays_for_one_more_offer_at_full_efficiency_alone(seed):
    tight = 0
    for case in budgets(np.random.default_rng(seed)):
        job = TrainingJob.from_dict(case["job"])
        for offer in (Offer(**offer) for offer in case["offers"]):
            money = offer.ranks * offer.price_per_gpu_s * lower_bound(job.on(offer.ranks)).seconds
            tight += money <= case["budget"] < money * MARGIN

    assert 1 == tight
