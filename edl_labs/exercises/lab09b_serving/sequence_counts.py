"""What a number of sequences that fit into a memory says of how they were counted."""

from __future__ import annotations

from typing import Any

from edl_labs.errors import Wrong
from edl_labs.exercises.slip_digests import digest

_SIZES = (0.25, 4, 8, 16)  # bytes of a number, beside 2: eight times fewer, float32, float64, bits
# What a case's `slips` hold, as digests, and what is said of each.
_SLIPS = {
    "parameters as bytes": (
        "your function counts each parameter as one byte",
        "multiply the number of parameters by `number_bytes`",
    ),
    "two bytes": (
        "your function counts every number with 2 bytes instead of `number_bytes`",
        "use `number_bytes` for both the weights and the cache",
    ),
    "two bytes cached": (
        "your function counts the numbers in the cache with 2 bytes instead of `number_bytes`",
        "use `number_bytes` for both the weights and the cache",
    ),
}


def judge_fits(case: Any, found: Any, right: Any) -> None:
    """Wrong where the number of sequences that fit is wrong: the rule that gives it, where one is known."""
    if found == right:
        return
    model = case["model"]
    why = f"got {found:,} sequences of {case['tokens']:,} tokens, expected {right:,}"

    def is_about(ratio: float) -> bool:
        return abs(found - ratio * right) <= ratio + 1  # both are rounded down

    for slip, (what, then) in _SLIPS.items():
        if digest([found]) in case["slips"][slip]:
            raise Wrong(what, why=f"{why}; this mistake gives exactly your result", next=then)
    weights = model["parameters"] * model["number_bytes"]
    if 0 < found - right <= 1:
        raise Wrong("in your result, the last sequence does not fit completely", why=why, next="round down")
    if model["heads"] != model["kv_heads"] and is_about(model["kv_heads"] / model["heads"]):
        then = "multiply by `kv_heads`: with grouped queries, several heads share keys and values"
        raise Wrong("your function counts keys and values for every head", why=why, next=then)
    if is_about(2.0):
        raise Wrong(
            "your function leaves out keys or values", why=why, next="count both, for every token in every layer"
        )
    if is_about(case["chip"]["memory_bytes"] / (case["chip"]["memory_bytes"] - weights)):
        raise Wrong(
            "your function does not subtract the weights",
            why=why,
            next="subtract the weights: they are in the same memory",
        )
    if is_about(model["layers"]):
        raise Wrong(
            "your function counts the cache of only one layer", why=why, next="count the keys and values of every layer"
        )
    if any(is_about(model["number_bytes"] / size) for size in _SIZES):
        then = "use `number_bytes` for both the weights and the cache"
        raise Wrong("your function uses the wrong size for a number in the cache", why=why, next=then)
    raise Wrong(
        "your number of sequences that fit is wrong",
        why=why,
        next="divide (memory - weights) by the bytes of one sequence",
    )
