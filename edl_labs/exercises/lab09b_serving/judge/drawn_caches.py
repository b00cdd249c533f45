"""The cases of kv_cache: rows of different lengths, grouped heads, tokens that are all alike; memories and models."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import draws


@draws("kv_cache")
def caches(rng: Any) -> list[Any]:
    return [
        _case(rng, lengths=_spread(rng, 3), heads=4, kv_heads=2, steps=2, alike=True),
        _case(
            rng, lengths=[int(rng.integers(4, 6)), int(rng.integers(6, 8))], heads=2, kv_heads=2, steps=2, alike=False
        ),
        _case(rng, lengths=[int(rng.integers(3, 6))], heads=6, kv_heads=2, steps=3, alike=False),
        _case(rng, lengths=_spread(rng, 3)[::-1], heads=4, kv_heads=1, steps=2, alike=True),
    ]


def _spread(rng: Any, rows: int) -> list[int]:
    """Lengths of which no two are the same."""
    return [int(n) for n in rng.permutation([2, 4, 5, 7])[:rows]]


def _case(rng: Any, *, lengths: list[int], heads: int, kv_heads: int, steps: int, alike: bool) -> dict[str, Any]:
    group = int(rng.choice([3, 5, 6]))  # no size of a number: 8 times too many is not a matter of heads
    model = {
        "parameters": int(rng.integers(3, 14)) * 10**9,
        "layers": int(rng.integers(24, 49)),
        "heads": 8 * group,
        "kv_heads": 8,
        "head_size": int(rng.choice([64, 96, 128])),
        "number_bytes": 2,
    }
    weights = model["parameters"] * model["number_bytes"]
    token = 2 * model["layers"] * model["kv_heads"] * model["head_size"] * model["number_bytes"]
    tokens = int(rng.integers(40, 300))
    # Hundreds of sequences, not a whole number of them: no ratio is hidden by rounding.
    room = int(rng.integers(400, 2000)) * tokens * token + int(rng.integers(1, tokens * token))
    return {
        "rows": len(lengths), "lengths": lengths, "heads": heads, "kv_heads": kv_heads, "steps": steps, "alike": alike,
        "seed": int(rng.integers(1, 10**6)), "chip": {"memory_bytes": weights + room}, "model": model, "tokens": tokens,
    }  # fmt: skip
