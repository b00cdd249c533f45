"""What a number of sequences that fit into a memory says of how they were counted."""

from __future__ import annotations

from typing import Any

from edl_labs.errors import Wrong
from edl_labs.exercises.slip_digests import digest

_SIZES = (0.25, 4, 8, 16)  # bytes of a number, beside 2: eight times fewer, float32, float64, bits
# What a case's `slips` hold, as digests, and what is said of each.
_SLIPS = {
    "parameters as bytes": ("parameters are counted as bytes", "each has number_bytes"),
    "two bytes": (
        "a number has 2 bytes, whatever number_bytes says",
        "number_bytes applies to weights and cache alike",
    ),
    "two bytes cached": (
        "a number of the cache has 2 bytes, whatever number_bytes says",
        "number_bytes applies to weights and cache alike",
    ),
}


def judge_fits(case: Any, found: Any, right: Any) -> None:
    """Wrong where the number of sequences that fit is wrong: the rule that gives it, where one is known."""
    if found == right:
        return
    model = case["model"]
    why = f"{found:,} sequences of {case['tokens']:,} tokens for {right:,}"

    def is_about(ratio: float) -> bool:
        return abs(found - ratio * right) <= ratio + 1  # both are rounded down

    for slip, (what, then) in _SLIPS.items():
        if digest([found]) in case["slips"][slip]:
            raise Wrong(what, why=f"{why}; this gives your result", next=then)
    weights = model["parameters"] * model["number_bytes"]
    if 0 < found - right <= 1:
        raise Wrong("the last sequence does not fit whole", why=why, next="round down")
    if model["heads"] != model["kv_heads"] and is_about(model["kv_heads"] / model["heads"]):
        then = "with grouped queries several heads share them: count kv_heads"
        raise Wrong("keys and values are counted for every head", why=why, next=then)
    if is_about(2.0):
        raise Wrong("keys or values are left out", why=why, next="a token leaves both, in every layer")
    if is_about(case["chip"]["memory_bytes"] / (case["chip"]["memory_bytes"] - weights)):
        raise Wrong("the weights take no room", why=why, next="they are in the same memory")
    if is_about(model["layers"]):
        raise Wrong("one layer's cache is counted", why=why, next="every layer keeps its own keys and values")
    if any(is_about(model["number_bytes"] / size) for size in _SIZES):
        then = "number_bytes applies to weights and cache alike"
        raise Wrong("a number of the cache has another size", why=why, next=then)
    raise Wrong(
        "the number of sequences that fit is wrong", why=why, next="(memory - weights) over the bytes of a sequence"
    )
