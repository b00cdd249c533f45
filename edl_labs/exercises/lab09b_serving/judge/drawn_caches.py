"""The cases of kv_cache: rows of different lengths, grouped heads, tokens that are all alike; memories and models."""

from __future__ import annotations

import math
from typing import Any

from edl_labs.checks import Case, case_source
from edl_labs.exercises.slip_digests import digest

_APART = 0.02  # of a factor: 8 sequences of the fewest, and judge_fits takes up to 3 for rounding


@case_source("kv_cache")
def caches(rng: Any) -> list[Case]:
    cases = [
        # Fractions on both sides of a half, and numbers of every size: the first tells most mistakes apart.
        _case(rng, lengths=_spread(rng, 3), heads=4, kv_heads=2, steps=2, alike=True, part=0.6, number_bytes=2),
        _case(
            rng,
            lengths=[int(rng.integers(4, 6)), int(rng.integers(6, 8))],
            heads=2,
            kv_heads=2,
            steps=2,
            alike=False,
            part=0.1,
            number_bytes=1,
        ),
        _case(
            rng,
            lengths=[int(rng.integers(3, 6))],
            heads=6,
            kv_heads=2,
            steps=3,
            alike=False,
            part=0.6,
            number_bytes=4,
        ),
        _case(rng, lengths=_spread(rng, 3)[::-1], heads=4, kv_heads=1, steps=2, alike=True, part=0.1, number_bytes=2),
    ]
    return [Case.split(one, "slips") for one in cases]


def _spread(rng: Any, rows: int) -> list[int]:
    """Lengths of which no two are the same."""
    return [int(n) for n in rng.permutation([2, 4, 5, 7])[:rows]]


def _case(
    rng: Any, *, lengths: list[int], heads: int, kv_heads: int, steps: int, alike: bool, part: float, number_bytes: int
) -> dict[str, Any]:
    model, tokens, room = _memory(rng, part=part, number_bytes=number_bytes)
    weights = model["parameters"] * number_bytes
    small = int(weights * float(rng.uniform(0.3, 0.8)))
    return {
        "rows": len(lengths), "lengths": lengths, "heads": heads, "kv_heads": kv_heads, "steps": steps, "alike": alike,
        "seed": int(rng.integers(1, 10**6)),
        "chip": {"memory_bytes": weights + room}, "small_chip": {"memory_bytes": small},
        "model": model, "tokens": tokens, "slips": _slips(model, weights + room, tokens),
    }  # fmt: skip


def _memory(rng: Any, *, part: float, number_bytes: int) -> tuple[dict[str, int], int, int]:
    """A model, a sequence's tokens and the bytes beside the weights.

    Some are left where numbers have two bytes, and who forgets the weights is not off by a factor of another mistake.
    """
    while True:
        group = int(rng.choice([3, 5, 6]))  # no size of a number: 8 times too many is not a matter of heads
        model = {
            "parameters": int(rng.integers(3, 14)) * 10**9,
            "layers": int(rng.integers(24, 49)),
            "heads": 8 * group,
            "kv_heads": 8,
            "head_size": int(rng.choice([64, 96, 128])),
            "number_bytes": number_bytes,
        }
        token = 2 * model["layers"] * model["kv_heads"] * model["head_size"] * number_bytes
        tokens = int(rng.integers(40, 300))
        # Hundreds of sequences, not a whole number of them: no ratio is hidden by rounding.
        room = int((int(rng.integers(400, 2000)) + part + float(rng.uniform(0, 0.3))) * tokens * token)
        without_weights = 1 + model["parameters"] * number_bytes / room
        others = (2, model["layers"])  # keys or values left out, one layer counted
        alike = any(math.isclose(without_weights, one, rel_tol=_APART) for one in others)
        if room > model["parameters"] * (2 - number_bytes) and not alike:
            return model, tokens, room


def _slips(model: dict[str, int], memory_bytes: int, tokens: int) -> dict[str, list[str]]:
    """How many fit where weights or cache have numbers of another size: digests of both the whole and the fraction."""
    size = model["number_bytes"]
    found = {}
    for name, in_weights, in_cache in (
        ("parameters as bytes", 1, size), ("two bytes", 2, 2), ("two bytes cached", size, 2)
    ):  # fmt: skip
        sequence = 2 * model["layers"] * model["kv_heads"] * model["head_size"] * in_cache * tokens
        fit = (memory_bytes - model["parameters"] * in_weights) / sequence
        found[name] = [digest([math.floor(fit)]), digest([fit])]
    return found
