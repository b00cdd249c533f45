"""The lower bound of a training job's time: no program that does all its work ends sooner (docs/lower_bound.md)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from edl_labs.units import seconds
from edl_labs.values import Value
from edl_labs.virtual.budget.training_job import TrainingJob


@dataclass(frozen=True, repr=False)
class LowerBound(Value):
    """A lower bound of a job's time: the largest of the times that its resources need at least."""

    bounds: Mapping[str, float]

    @property
    def seconds(self) -> float:
        """The bound, in seconds."""
        return max(self.bounds.values())

    @property
    def resource(self) -> str:
        """The resource that sets the bound: "compute", "loader", "copies" or "links"."""
        return max(self.bounds, key=self.bounds.__getitem__)

    def __str__(self) -> str:
        each = ", ".join(f"{name} {seconds(value)}" for name, value in self.bounds.items())
        return f"at least {seconds(self.seconds)}, limited by {self.resource} ({each})"


def lower_bound(job: TrainingJob) -> LowerBound:
    """The lower bound of a job on its `ranks` GPUs."""
    passes_s = _passes_s(job, job.share)
    unit_s = _passes_s(job, 1)
    sums_s = job.all_reduce_s(job.elements[0])
    first_update_s = job.update_s(0, 1)
    copy_s = job.copy_s(job.inputs, pinned=True)
    head_s = job.decode_s + copy_s
    step_s = max(passes_s + sums_s + first_update_s, passes_s + job.update_s(0, job.layers))
    tail_s = unit_s + sums_s + first_update_s
    latency_s = job.copy_s(0, pinned=True)
    bounds = {
        "compute": head_s + job.steps * step_s,
        "loader": job.steps * job.share * job.decode_s + copy_s + tail_s,
        "copies": job.decode_s + job.steps * (latency_s + job.share * (copy_s - latency_s)) + tail_s,
    }
    if job.ranks > 1:
        whole_s = job.all_reduce_s(sum(job.elements))
        forward_s = sum(job.kernel_s + job.share * one for one in job.forward_s)
        begins_s = head_s + forward_s + 2 * job.kernel_s + job.share * job.backward_s[-1]
        bounds["links"] = begins_s + job.steps * whole_s + job.kernel_s
    return LowerBound(bounds)


@dataclass(frozen=True)
class Offer:
    """GPUs that can be rented together, and what each of them costs a second."""

    ranks: int
    price_per_gpu_s: float


def best_lower_bound(job: TrainingJob, offers: Iterable[Offer], *, budget: float) -> float:
    """The least seconds that a budget can buy: no run on any offer ends sooner and costs no more; inf if none can."""
    found = []
    for offer in offers:
        least_s = lower_bound(job.on(offer.ranks)).seconds
        if least_s * offer.ranks * offer.price_per_gpu_s <= budget:
            found.append(least_s)
    return min(found, default=math.inf)


def _passes_s(job: TrainingJob, units: int) -> float:
    """Forward, loss and backward of so many units, in as few kernels as there can be."""
    kernels = 2 * job.layers + 1
    return kernels * job.kernel_s + units * (sum(job.forward_s) + sum(job.backward_s))
