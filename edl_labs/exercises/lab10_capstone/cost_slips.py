"""Mistakes about the price of a run: what each is, and what to do next."""

from __future__ import annotations

SLIPS = {
    "no activations": (
        "activations are missing from the memory",
        "add the activations: each GPU holds those of its own samples",
    ),
    "recomputed activations": (
        "activations are not counted when they are recomputed",
        "always count run['activation_bytes']: each GPU holds them, with or without recomputation",
    ),
    "shared activations": (
        "activations are divided by the number of GPUs",
        "do not divide run['activation_bytes']: each GPU holds them, however many GPUs there are",
    ),
    "whole state": (
        "each GPU is counted with the whole state",
        "divide the state: each GPU holds 1 / gpus of the state",
    ),
    "no memory": ("the memory limit is ignored", "take only numbers of GPUs for which fits() returns True"),
    "no deadline": ("the deadline is ignored", "take only numbers of GPUs that finish within run['deadline_h']"),
    "set-up in no time": (
        "only the training time is compared with the deadline",
        "add the hours of the set-up, which also count towards the deadline",
    ),
    "fewest": (
        "the smallest number of GPUs is taken, not the cheapest",
        "you also pay for a node's idle GPUs: what would the run cost if they trained, too?",
    ),
    "most": (
        "the fastest run is taken, not the cheapest",
        "take the lowest cost: with more GPUs, more of them wait during the set-up",
    ),
    "any number": ("the batch is not divisible by the number of GPUs", "take only divisors of run['batch']"),
    "strictly less": (
        "a run that fills the memory exactly is rejected",
        "accept such a run: a GPU may be filled to the last byte",
    ),
    "strictly in time": (
        "a run that ends exactly at the deadline is rejected",
        "accept it: ending exactly at the deadline is in time",
    ),
    "nodes in part": (
        "more than chip['most_gpus'] GPUs are rented",
        "compare the rented GPUs with chip['most_gpus']: only whole nodes can be rented",
    ),
    "whole nodes": (
        "only numbers of GPUs that fill whole nodes are tried",
        "try all divisors of run['batch']: the GPUs that train need not fill the last node",
    ),
    "rented hold": (
        "the memory is checked for the number of rented GPUs",
        "call fits() with the number of GPUs that train: idle GPUs hold no share of the state",
    ),
    "rented train": (
        "the deadline is checked for the number of rented GPUs",
        "call hours() with the number of GPUs that train: idle GPUs do not speed up the run",
    ),
    "from a node on": (
        "numbers below the size of a node are not tried",
        "begin with 1: `gpus` may be any number, although whole nodes are rented",
    ),
    "two samples each": ("one sample per GPU is not tried", "also try run['batch'] GPUs, one for each sample"),
    "last left out": (
        "chip['most_gpus'] GPUs are not tried",
        "include this number in the search: range(1, n) ends before n",
    ),
    "first minimum": (
        "the search ends as soon as more GPUs cost more",
        "calculate the cost for every number: as whole nodes are rented, the cost can rise and fall again",
    ),
}
