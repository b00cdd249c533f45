"""score: how many GPUs to rent, and what to run on them, for the shortest time that a budget pays."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from edl_labs.checks import Exercise, exercise
from edl_labs.checks.plain_forms import whole
from edl_labs.errors import Wrong
from edl_labs.exercises.lab10b_within_the_budget.training_evidence import (
    evidence,
    public_facts,
    replayed_training,
    require_training,
    slow_cause,
)
from edl_labs.units import byte_count, counted, seconds
from edl_labs.virtual.budget import Offer, TrainingJob, TrainingSteps, best_lower_bound, lower_bound, training_steps

MARGIN = 1.02  # an offer that only a program with an efficiency above 98 % could pay is none: as announced
STEPS = ((0.88, 1.0), (0.78, 0.75), (0.55, 0.5), (0.30, 0.25))  # efficiency, and what it earns: as announced

_EACH = (
    "how long does the job run on each offer, `job.on(offer.ranks)`, and what does that cost? Choose the fastest offer "
    "that you can pay for"
)


def offers_of(case: Any) -> list[Offer]:
    """What can be rented."""
    return [Offer(**offer) for offer in case["offers"]]


def rented(case: Any, ranks: int) -> TrainingJob:
    """The job on an offer of the case."""
    price = next(offer["price_per_gpu_s"] for offer in case["offers"] if offer["ranks"] == ranks)
    return TrainingJob.from_dict({**case["job"], "ranks": ranks, "price_per_gpu_s": price})


def bought_s(case: Any, job: TrainingJob) -> float:
    """The least time that the budget of a case can buy: the lower bound, with a little money to spare."""
    return best_lower_bound(job, offers_of(case), budget=case["budget"] / MARGIN)


def entry_of(case: Any, got: Any) -> dict[str, float]:
    """What a leaderboard says of a run: efficiency, seconds, bytes at the peak of a GPU, and money."""
    job = rented(case, got["gpus"])
    run = replayed_training(got["programs"], job)
    efficiency = min(1.0, bought_s(case, job) / run.makespan_s)
    return {"efficiency": efficiency, "makespan_s": run.makespan_s, "peak_bytes": run.peak_bytes, "money": run.money}


def steps_of(case: Any, got: Any) -> TrainingSteps:
    """A run step by step, as its first GPU saw it."""
    job = rented(case, got["gpus"])
    return training_steps(replayed_training(got["programs"], job), job)


@exercise("score", timeout_s=150.0)
class BudgetScore(Exercise):
    """A job within a budget, as fast as can be: the geometric mean of the efficiencies.

    `choose_gpus(job, offers, budget)` says how many GPUs, `train_within(trainer)` runs on each. The evidence is that
    number, and the programs.
    """

    answers = "all"

    answer_form: ClassVar[Any] = {"gpus": 0, "programs": ""}

    def probe(self, student: Any, given: Any) -> Any:
        job = rented(given, given["offers"][0]["ranks"])
        chosen = whole(student.choose_gpus(job, offers_of(given), given["budget"]))
        gpus = chosen if type(chosen) is int else -1
        if gpus not in [offer["ranks"] for offer in given["offers"]]:
            return {"gpus": gpus, "programs": ""}
        return {"gpus": gpus, **evidence(rented(given, gpus), student.train_within)}

    def student_inputs(self, case: Any) -> Any:
        """The arguments of choose_gpus, by name."""
        job = rented(case, case["offers"][0]["ranks"])
        return {"job": job, "offers": offers_of(case), "budget": case["budget"]}

    def public_want(self, case: Any, want: Any) -> Any:
        """The losses alone."""
        return public_facts(want, rented(case, want["gpus"])) if "programs" in want else want

    def compare(self, case: Any, got: Any, want: Any) -> float:
        if got["gpus"] not in [offer["ranks"] for offer in case["offers"]]:
            known = ", ".join(str(offer["ranks"]) for offer in case["offers"])
            if got["gpus"] == -1:
                why = (
                    f"the offers have {known} GPUs; did your function return the offer itself, its time, or its price?"
                )
                then = "return the `ranks` of the offer that you choose"
                raise Wrong("choose_gpus() did not return a number of GPUs", why=why, next=then)
            why = f"choose_gpus() returned {got['gpus']}, but the offers have {known} GPUs"
            if 0 <= got["gpus"] < len(case["offers"]):
                then = "return the `ranks` of the offer, not its index"
                raise Wrong("choose_gpus() returned an offer's position in the list", why=why, next=then)
            raise Wrong("no offer has your number of GPUs", why=why, next="return the `ranks` of an offer")
        job = rented(case, got["gpus"])
        run = replayed_training(got["programs"], job)
        require_training(run, job, self.public_want(case, want)["losses"])
        bound_s = bought_s(case, job)
        if run.money > case["budget"]:
            each = f"{run.makespan_s:.4g} s x {counted(job.ranks, 'GPU')} x {job.price_per_gpu_s:g} per second"
            why = f"{each} = {run.money:.3g}, but the budget is {case['budget']:.3g}"
            if run.money * run.efficiency > case["budget"]:
                then = "compute seconds x GPUs x price per GPU and second; no run is faster than the lower bound"
                raise Wrong("the budget does not pay for your number of GPUs", why=why, next=then)
            if run.money * run.efficiency * MARGIN > case["budget"]:
                then = "leave a margin: which efficiency does your program reach?"
                raise Wrong(
                    "the budget would pay for your number of GPUs only at an efficiency of nearly 100 %",
                    why=why,
                    next=then,
                )
            raise Wrong(
                "your run is too slow for its budget", why=why, next="take fewer GPUs, or make the program faster"
            )
        efficiency = min(1.0, bound_s / run.makespan_s)
        if efficiency >= STEPS[0][0]:
            return efficiency
        if run.efficiency >= STEPS[0][0] or bound_s < STEPS[0][0] * lower_bound(job).seconds:  # at the lower bound, too
            many = counted(job.ranks, "GPU")
            why = (
                f"your run takes {seconds(run.makespan_s)} on {many}: this is {efficiency:.0%} of the speed that the "
                "budget could buy"
            )
            raise Wrong("the budget pays for more GPUs than you chose", why=why, next=_EACH, keeps=efficiency)
        slow = slow_cause(run, job, STEPS[0][0])
        raise Wrong(slow.what, why=slow.why, next=slow.next, keeps=efficiency)

    def explain_exception(self, case: Any, error: str) -> Wrong | None:
        """What a ValueError says: there was nothing to take the least of."""
        if error != "ValueError":
            return None
        why = "your code raised ValueError, as min() of no values does, but the budget pays for at least one offer"
        then = "does your code compare each price with the whole budget, and use each offer's own run time?"
        return Wrong("your code leaves no offer to choose from", why=why, next=then)

    def combine(self, fractions: list[float]) -> float:
        """What the geometric mean of the efficiencies earns, by steps."""
        if not fractions or min(fractions) <= 0:
            return 0.0
        mean = math.prod(fractions) ** (1 / len(fractions))
        return next((earned for least, earned in STEPS if mean >= least), 0.0)

    def leaderboard_metrics(self, cases: list[Any], got: list[Any]) -> dict[str, float]:
        """What accompanies the mark: the mean efficiency, the most bytes, the money, and each case's seconds."""
        each = [entry_of(case, one) for case, one in zip(cases, got, strict=True)]
        mean = math.prod(one["efficiency"] for one in each) ** (1 / len(each))
        total = {"efficiency": mean, "peak_bytes": max(one["peak_bytes"] for one in each)}
        return (
            total
            | {"money": sum(one["money"] for one in each)}
            | {f"makespan_s {at}": one["makespan_s"] for at, one in enumerate(each)}
        )

    def leaderboard_timelines(self, cases: list[Any], got: list[Any], want: list[Any]) -> dict[str, Any]:
        """What ran when, theirs and the reference's, in the job that pays for the most GPUs: sums count there."""
        at = max(range(len(cases)), key=lambda index: int(want[index]["gpus"]))
        both = {"theirs": got[at], "reference": want[at]}
        return {"case": "the job whose budget pays for the most GPUs"} | {
            who: steps_of(cases[at], one).to_plain() for who, one in both.items()
        }

    def format_case(self, case: Any) -> str:
        """The job, the offers and the budget in words."""
        job = rented(case, case["offers"][0]["ranks"])
        offers = ", ".join(
            f"{counted(offer['ranks'], 'GPU')} at {offer['price_per_gpu_s']:g}" for offer in case["offers"]
        )
        return (
            f"{job.steps} steps of {job.units} units, {job.layers} layers, GPUs with {byte_count(job.memory_bytes)}; "
            f"{offers} (price per GPU and second); a budget of {case['budget']:.3f}"
        )
