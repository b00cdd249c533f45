"""Mistakes about the price of a run: what each is, and what to do next."""

from __future__ import annotations

SLIPS = {
    "no activations": (
        "your function leaves the activations out of the memory",
        "add the activations: each GPU holds those of its own samples",
    ),
    "recomputed activations": (
        "your function does not count activations when they are recomputed",
        "always count run['activation_bytes']: each GPU holds them, with or without recomputation",
    ),
    "shared activations": (
        "your function divides the activations by the number of GPUs",
        "do not divide run['activation_bytes']: each GPU holds them, however many GPUs there are",
    ),
    "whole state": (
        "your function counts the whole state on each GPU",
        "divide the state: each GPU holds 1 / gpus of the state",
    ),
    "no memory": ("your function ignores the memory limit", "take only numbers of GPUs for which fits() returns True"),
    "no deadline": (
        "your function ignores the deadline",
        "take only numbers of GPUs that finish within run['deadline_h']",
    ),
    "set-up in no time": (
        "your function compares only the training time with the deadline",
        "add the hours of the set-up, which also count towards the deadline",
    ),
    "fewest": (
        "your function takes the smallest number of GPUs, not the cheapest",
        "you also pay for a node's idle GPUs: what would the run cost if they trained, too?",
    ),
    "most": (
        "your function takes the fastest run, not the cheapest",
        "take the lowest cost: with more GPUs, more of them wait during the set-up",
    ),
    "any number": ("your number of GPUs does not divide the batch", "take only divisors of run['batch']"),
    "strictly less": (
        "your function rejects a run that fills the memory exactly",
        "accept such a run: a GPU may be filled to the last byte",
    ),
    "strictly in time": (
        "your function rejects a run that ends exactly at the deadline",
        "accept such a run: ending exactly at the deadline is in time",
    ),
    "nodes in part": (
        "your function rents more than chip['most_gpus'] GPUs",
        "compare the rented GPUs with chip['most_gpus']: only whole nodes can be rented",
    ),
    "whole nodes": (
        "your function tries only numbers of GPUs that fill whole nodes",
        "try all divisors of run['batch']: the GPUs that train need not fill the last node",
    ),
    "rented hold": (
        "your function checks the memory for the number of rented GPUs",
        "call fits() with the number of GPUs that train: idle GPUs hold no share of the state",
    ),
    "rented train": (
        "your function checks the deadline for the number of rented GPUs",
        "call hours() with the number of GPUs that train: idle GPUs do not speed up the run",
    ),
    "from a node on": (
        "your function does not try numbers below the size of a node",
        "begin with 1: you rent whole nodes, but fewer GPUs may train",
    ),
    "two samples each": (
        "your function does not try one sample per GPU",
        "also try run['batch'] GPUs, one for each sample",
    ),
    "last left out": (
        "your function does not try chip['most_gpus'] GPUs",
        "include this number in the search: range(1, n) ends before n",
    ),
    "first minimum": (
        "your search ends as soon as more GPUs cost more",
        "calculate the cost for every number: as whole nodes are rented, the cost can rise and fall again",
    ),
}
