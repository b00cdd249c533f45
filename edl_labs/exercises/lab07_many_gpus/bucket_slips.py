"""buckets: rules that give a student's groups in every case, and leave the links or the layers out."""

from __future__ import annotations

from typing import Any

from edl_labs.errors import Wrong
from edl_labs.units import byte_count

Groups = list[list[int]]


def in_common(cases: list[Any], groups: list[Groups], why: str) -> Wrong | None:
    """The sentence for the rule that gives all groups; None where none of these does."""
    if cap := _cap(cases, groups):
        told = f"{why}; in every case, your buckets are sent once they have about {byte_count(cap, digits=2)}"
        then = "your rule ignores both `link` and `backward_s`: what determines when each sum ends?"
        return Wrong("your function fills each bucket to a fixed number of bytes", why=told, next=then)
    if count := _fixed_count(cases, groups):
        told = f"{why}; in every case, your buckets have {count} layers, except perhaps the last bucket"
        then = "your rule ignores both `link` and the layers: what determines when each sum ends?"
        return Wrong("your function puts a fixed number of layers into each bucket", why=told, next=then)
    if all(_sent_when_free(case) == found for case, found in zip(cases, groups, strict=True)):
        told = f"{why}; in every case, your buckets end with the first layer after which the link is free"
        then = "compare several ways to group the layers: waiting for one more layer may save all rounds of a sum"
        return Wrong("your function ends a bucket as soon as the link is free", why=told, next=then)
    return None


def _cap(cases: list[Any], groups: list[Groups]) -> float:
    """A number of bytes at which, or before which, the buckets of all cases close; 0 where there is none."""
    at_bounds, before_bounds = [0.0, float("inf")], [0.0, float("inf")]
    closed = 0
    for case, found in zip(cases, groups, strict=True):
        sizes = [layer["gradient_bytes"] for layer in case["layers"]]
        if [number for one in found for number in one] != list(reversed(range(len(sizes)))):
            return 0.0
        for one, after in zip(found, [*found[1:], None], strict=True):
            held = sum(sizes[number] for number in one)
            at_bounds[0] = max(at_bounds[0], held - sizes[one[-1]])
            before_bounds[0] = max(before_bounds[0], held if len(one) > 1 else 0)
            if after:
                at_bounds[1] = min(at_bounds[1], held)
                before_bounds[1] = min(before_bounds[1], held + sizes[after[0]])
                closed += len(one) > 1
    low, high = at_bounds if at_bounds[0] < at_bounds[1] else before_bounds
    return high if closed >= 2 * len(cases) // 3 and low < high else 0.0


def _fixed_count(cases: list[Any], groups: list[Groups]) -> int:
    """How many layers each bucket but the last one of each case has; 0 where they differ."""
    counts = {len(one) for found in groups for one in found[:-1]}
    (count,) = counts if len(counts) == 1 else (0,)
    return count if count > 1 and all(len(found[-1]) <= count for found in groups) else 0


def _sent_when_free(case: Any) -> Groups:
    """All that is there is sent whenever nothing is on its way."""
    link, layers = case["link"], case["layers"]
    found, one, now_s, free_s = list[list[int]](), list[int](), 0.0, 0.0
    for number in reversed(range(len(layers))):
        one.append(number)
        now_s += layers[number]["backward_s"]
        if free_s <= now_s:
            held = sum(layers[other]["gradient_bytes"] for other in one)
            free_s = now_s + 2 * (link["ranks"] - 1) * (link["alpha_s"] + held / link["ranks"] / link["byte_per_s"])
            found, one = [*found, one], []
    return [*found, one] if one else found
