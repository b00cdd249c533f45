"""Mistakes about the price of a run: what each is, and what to do next."""

from __future__ import annotations

SLIPS = {
    "no activations": ("activations are left out of the memory", "each GPU holds its own activations too"),
    "recomputed activations": (
        "activations are left out where they are recomputed",
        "run['activation_bytes'] is what each GPU holds, recomputation or not",
    ),
    "shared activations": (
        "activations are shared by all GPUs",
        "run['activation_bytes'] is what each GPU holds, however many there are",
    ),
    "whole state": ("each GPU is made to hold the whole state", "the state is sharded: each holds 1 / gpus of it"),
    "no memory": ("memory limits nothing", "take only numbers of GPUs for which `fits` says yes"),
    "no deadline": ("the deadline limits nothing", "take only numbers of GPUs that end by run['deadline_h']"),
    "set-up in no time": (
        "only the training time was compared with the deadline",
        "setting up takes part of the time, too",
    ),
    "fewest": ("the fewest GPUs are not the cheapest", "idle GPUs of a node are paid: what would they cost in use?"),
    "most": ("the fastest run is not the cheapest", "more GPUs wait during the set-up; take the least money"),
    "any number": ("the batch cannot be shared by so many GPUs", "only divisors of run['batch'] will do"),
    "strictly less": (
        "what fits exactly is said not to fit",
        "a GPU may be filled to the last byte",
    ),
    "strictly in time": (
        "a run that ends at the deadline is said to be late",
        "within run['deadline_h'] is in time, to the last second",
    ),
    "nodes in part": (
        "more GPUs are rented than there are",
        "a node is rented as a whole, or not at all: is `rented` within chip['most_gpus']?",
    ),
    "whole nodes": (
        "whole nodes train, though fewer GPUs would do",
        "a number of GPUs need not fill its last node: look at all divisors of run['batch']",
    ),
    "rented hold": (
        "memory is asked of the GPUs that are rented",
        "idle GPUs hold no share of the state: call `fits` with the number of GPUs that train",
    ),
    "rented train": (
        "the deadline is asked of the GPUs that are rented",
        "idle GPUs do not train: call `hours` with the number of GPUs that do",
    ),
    "from a node on": (
        "fewer GPUs than a node has are not tried",
        "`gpus` may be any number, though a whole node is rented: begin with 1",
    ),
    "two samples each": ("a sample a GPU is not tried", "as many GPUs as the batch has samples may train, too"),
    "last left out": ("chip['most_gpus'] GPUs are not tried", "range(1, n) ends before n"),
    "first minimum": (
        "the search ends as soon as more GPUs cost more",
        "money falls and rises with whole nodes: work it out for every number",
    ),
}
