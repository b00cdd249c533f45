"""The cases of best_segments and place_checkpoints: equal chains, and unequal ones with a budget that is tight."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from edl_labs.checks import Case, case_source

_MIB = 1 << 20  # sizes that are easily read


@case_source("best_segments")
def equal_chains(rng: Any) -> list[Case]:
    # With two tensors each, two numbers of segments hold equally few in the first of these chains.
    squares = [int(rng.choice([16, 64, 100, 144])), int(rng.choice([25, 36, 49, 81, 121]))]
    others = [int(n) for n in rng.choice([23, 29, 37, 47, 53, 61, 73, 83, 97, 120, 150, 180], size=4, replace=False)]
    saved = [2, 1, *(int(n) for n in rng.permutation([1, 2, 3, 5]))]
    cases = [{"layers": layers, "saved": count} for layers, count in zip([*squares, *others], saved, strict=True)]
    cases += [
        {"layers": int(rng.integers(2, 5)), "saved": 1},
        # So much is saved that every layer is best a segment of its own.
        {"layers": int(rng.integers(3, 6)), "saved": int(rng.integers(9, 13))},
    ]
    return [Case(given=one) for one in cases]


@case_source("place_checkpoints")
def unequal_chains(rng: Any) -> list[Case]:
    """Budgets between the least that any placement needs and what keeping everything takes, and one with room."""
    cases = [_case(rng, count, once, share) for count, once, share in _DRAWN]
    cases.append(_with_a_dear_first_layer(_case(rng, 7, 1, 1.0)))
    # In the next one a byte is missing to keep everything; what came later is drawn last, so that the others stay.
    short = _case(rng, 6, 1, 1.0)
    cases.append({**short, "budget_bytes": short["budget_bytes"] - 1})
    cases += [_case(rng, count, once, share, is_even=False) for count, once, share in _UNEVEN]
    return [
        Case.split({**case, "summed_again_s": least_again_by_sum(case)}, "least_bytes", "summed_again_s")
        for case in cases
    ]


def _with_a_dear_first_layer(case: dict[str, Any]) -> dict[str, Any]:
    """The case in which running the first layer again costs more than the 2 % that any placement may lose."""
    first, *others = case["layers"]
    forward_s = max(first["forward_s"], 2e-3)
    dear = {**first, "forward_s": forward_s, "backward_s": round(2 * forward_s, 6)}
    return {**case, "layers": [dear, *others]}


# Layers, how many of them may run only once, and where the budget lies between the least and keeping all.
_DRAWN = ((6, 0, 0.5), (7, 0, 0.15), (8, 0, 0.0), (7, 1, 0.3), (8, 2, 0.1), (8, 1, 0.6), (9, 1, 0.0))
_UNEVEN = ((7, 0, 0.4), (8, 1, 0.3), (8, 0, 0.2))  # what is fast forward is slow backward


def _case(rng: Any, count: int, once: int, share: float, *, is_even: bool = True) -> dict[str, Any]:
    marked = {int(i) for i in rng.choice(range(1, count), size=once, replace=False)}
    layers: list[dict[str, Any]] = []
    for i in range(count):
        output = int(rng.integers(1, 9))
        forward_s = round(float(rng.uniform(0.2, 3.0)), 2) * 1e-3
        layers.append(
            {
                "name": f"layer{i}",
                "activation_bytes": (output + int(rng.integers(0, 25))) * _MIB,
                "output_bytes": output * _MIB,
                "forward_s": round(forward_s, 6),
                "backward_s": round(2 * (forward_s if is_even else 3.3e-3 - forward_s), 6),
                "once": i in marked,
            }
        )
    whole = sum(layer["activation_bytes"] for layer in layers)
    least = _least(layers, 0, 0)
    budget = least + int(share * (whole - least)) // _MIB * _MIB
    return {"layers": layers, "budget_bytes": budget, "least_bytes": least}


def _least(layers: list[Any], first: int, held: int) -> int:
    """The smallest peak that any placement of the layers from `first` on has, with `held` bytes before it."""
    if first == len(layers):
        return held
    kept = held + layers[first]["activation_bytes"]
    found, whole = [max(kept, _least(layers, first + 1, kept))], held
    for stop in range(first + 1, len(layers) + 1):
        if layers[stop - 1]["once"]:
            break
        whole += layers[stop - 1]["activation_bytes"]
        found.append(max(whole, _least(layers, stop, held + layers[stop - 1]["output_bytes"])))
    return min(found)


def least_again_by_sum(case: Any) -> list[float]:
    """The least seconds of second runs where the peak is taken for a sum, -1 where nothing fits then.

    By the first rule that is all that waits after the forward pass and all that the largest stretch saves; by the
    second the stretch's own output is not counted twice.
    """
    found = [-1.0, -1.0]
    for again_s, waiting, largest in _summed(case["layers"], 0):
        for rule, most in enumerate(largest):
            if waiting + most <= case["budget_bytes"] and not 0 <= found[rule] <= again_s:
                found[rule] = again_s
    return [round(least_s, 9) for least_s in found]


def _summed(layers: list[Any], first: int) -> Iterator[tuple[float, int, tuple[int, int]]]:
    """Of each placement of the layers from `first` on: seconds run again, bytes that wait, largest stretch by rule."""
    if first == len(layers):
        yield 0.0, 0, (0, 0)
        return
    for again_s, waiting, largest in _summed(layers, first + 1):
        yield again_s, waiting + layers[first]["activation_bytes"], largest
    for stop in range(first + 1, len(layers) + 1):
        if layers[stop - 1]["once"]:
            return
        whole, output = sum(one["activation_bytes"] for one in layers[first:stop]), layers[stop - 1]["output_bytes"]
        longer_s = sum(one["forward_s"] for one in layers[first:stop])
        for again_s, waiting, (most, apart) in _summed(layers, stop):
            yield again_s + longer_s, waiting + output, (max(most, whole), max(apart, whole - output))
