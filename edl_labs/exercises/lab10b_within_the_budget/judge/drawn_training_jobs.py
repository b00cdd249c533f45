"""Training jobs: chips, nets and links of which each decides in some draws, with a memory that cuts the batch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from edl_labs.checks import Case, case_source
from edl_labs.exercises.lab10b_within_the_budget.budget_scores import MARGIN
from edl_labs.virtual.budget import TrainingJob, lower_bound

_LOADING = (0.45, 0.7, 1.3)  # the loader's time over that of the passes: it is hidden, nearly in the way, the bound
_SLACK = 1.3  # of the money at the lower bound: a program that begins with all that fits needs less, at 78 % efficiency
# In the budgets' jobs a first load of all that fits is a fifth of the time, and a sum's latency that of a pass.
_BUDGET_STEPS, _BUDGET_LOADING, _LONG_ALPHA_S = 3, (0.6, 0.8), 100e-6
_COPY_BYTE_PER_S = 8e9  # with 12e9 even pageable copies hardly count; with 6e9 a run that loads all first is too dear
_BEYOND = 0.5 * (1 + MARGIN)  # a tight offer's least price times this is the budget: it needs an efficiency of 99 %


def drawn_job(rng: Any, *, ranks: int, steps: int = 5, loading: float | None = None, short: int = 0) -> TrainingJob:
    """A job on so many GPUs whose memory holds half or a third of a GPU's share at once, which lacks `short` units."""
    layers = int(rng.integers(4, 7))
    parts = int(rng.integers(2, 4))
    share = parts * int(rng.integers(3, 5)) - short
    forward_s = [round(float(rng.uniform(70e-6, 150e-6)), 7) for _ in range(layers)]
    backward_s = [round(2 * one, 7) for one in forward_s]
    elements = [8 * int(rng.integers(300_000, 1_200_000)) for _ in range(layers)]
    passes_s = sum(forward_s) + sum(backward_s)
    inputs = 1000 * int(rng.integers(1000, 1800))
    slowest = loading or float(rng.choice(_LOADING))
    hidden = float(rng.uniform(0.18, 0.3))  # what sums take over what backward passes do
    outputs = [1000 * int(rng.integers(900, 2700)) for _ in range(layers)]
    alpha_s = 1e-6 * int(rng.integers(8, 25))
    rounds = 2 * (ranks - 1)
    pinned = 12e9 if slowest < 1 else 6e9  # where the host sets the pace, to wait for each copy is to be late
    sums_s = max(hidden * share * sum(backward_s) - layers * rounds * alpha_s, 1e-4)
    rate = round(rounds * 4 * sum(elements) / ranks / sums_s, -6) if ranks > 1 else 50e9
    made = TrainingJob(
        steps=steps,
        units=ranks * share,
        ranks=ranks,
        inputs=inputs,
        elements=tuple(elements),
        outputs=tuple(outputs),
        forward_s=tuple(forward_s),
        backward_s=tuple(backward_s),
        kernel_s=3e-5,
        pass_s=round(float(rng.uniform(100e-6, 140e-6)), 7),
        decode_s=round(slowest * passes_s, 7),
        convert_s=round(float(rng.uniform(2.1, 2.6)) * passes_s, 7),
        pinned_byte_per_s=pinned,
        pageable_byte_per_s=pinned * float(rng.choice([1, 1.25, 1.5])) / 3,
        memory_byte_per_s=1e12,
        call_s=1e-6,
        alpha_s=alpha_s,
        link_byte_per_s=rate,
        memory_bytes=10**12,
        price_per_gpu_s=round(float(rng.uniform(0.5, 1.5)), 2),
        seed=int(rng.integers(1, 10**6)),
    )
    return replace(made, memory_bytes=int(1.02 * made.peak_bytes(-(-share // parts))))


@case_source("single")
def single_jobs(rng: Any) -> list[Case]:
    jobs = [drawn_job(rng, ranks=1, loading=one, short=short) for one, short in ((0.45, 0), (1.3, 0), (0.7, 1))]
    return [Case(given=job.to_dict()) for job in (*jobs, _of_one_unit(jobs[0]))]


@case_source("scaled")
def scaled_jobs(rng: Any) -> list[Case]:
    aims = ((2, 0.45, 0), (4, 0.7, 0), (2, 1.3, 1))
    jobs = [drawn_job(rng, ranks=ranks, loading=one, short=short) for ranks, one, short in aims]
    return [Case(given=job.to_dict()) for job in (*jobs, _of_one_unit(jobs[0]))]


def _of_one_unit(job: TrainingJob) -> TrainingJob:
    """A job whose GPUs have one unit each in a step, memory for it to the last byte, and links that cost nearly naught.

    Sums have one backward pass to hide behind there, so that slower links would leave no program near the lower bound.
    """
    return replace(job, units=job.ranks, memory_bytes=job.peak_bytes(1), alpha_s=1e-6, link_byte_per_s=1e12)


@case_source("score")
def budgets(rng: Any) -> list[Case]:
    tight = int(rng.choice([1, 2]))
    return [Case(given=_within(rng, int(aim), tight=aim == tight)) for aim in rng.permutation([1, 2, 4])]


def _within(rng: Any, aim: int, *, tight: bool) -> dict[str, Any]:
    """A job and a budget that pays for `aim` GPUs and not for more: each doubling has a higher price.

    A tight one pays for the next doubling too, for a program at the lower bound; no program is that fast. The
    memory holds all that a GPU has in a step.
    """
    made = drawn_job(rng, ranks=4, steps=_BUDGET_STEPS, loading=float(rng.uniform(*_BUDGET_LOADING)))
    alpha_s = _LONG_ALPHA_S if aim == 4 else made.alpha_s
    job = replace(
        made,
        alpha_s=alpha_s,
        pinned_byte_per_s=_COPY_BYTE_PER_S,
        pageable_byte_per_s=_COPY_BYTE_PER_S * made.pageable_byte_per_s / made.pinned_byte_per_s,
        memory_bytes=int(1.02 * made.peak_bytes(made.units // aim)),
    )
    price, prices = 1.0, {}
    for ranks in (1, 2, 4, 8):
        if job.units % ranks == 0:
            prices[ranks] = round(price, 2)
        price *= float(rng.uniform(1.6, 1.9))
    budget = round(_SLACK * lower_bound(job.on(aim)).seconds * aim * prices[aim], 4)
    if tight:
        next_s = lower_bound(job.on(2 * aim)).seconds
        prices[2 * aim] = round(budget / _BEYOND / (2 * aim * next_s), 4)
    offers = [{"ranks": ranks, "price_per_gpu_s": price} for ranks, price in prices.items()]
    return {"job": job.to_dict(), "offers": offers, "budget": budget}
