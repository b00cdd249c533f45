"""The cases of decode_bound: chips and decoders, with contexts on both sides of where no batch reaches the ridge."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source

_EXACT_RIDGE = 128  # FLOP/B: a power of two, so that whoever compares FLOPs, bytes or seconds meets the same equality
_CHIPS = ((125e12, 0.9e12), (312e12, 1.555e12), (312e12, 2.039e12), (989e12, 3.35e12))  # V100, A100s, H100: datasheets


@case_source("decode_bound")
def decoders(rng: Any) -> list[Case]:
    sizes = (2, 1, 4, 2)  # bytes of a number
    drawn = [_case(rng, _CHIPS[at], size) for at, size in zip(rng.permutation(len(_CHIPS)), sizes, strict=True)]
    return [Case(given=one) for one in [*drawn, _at_the_limit(rng)]]


def _case(rng: Any, rates: tuple[float, float], number_bytes: int) -> dict[str, Any]:
    heads = int(rng.choice([16, 32, 40]))
    model = {
        "parameters": int(rng.integers(1000, 30_000)) * 10**6,
        "layers": int(rng.integers(16, 61)),
        "heads": heads,
        "kv_heads": heads // int(rng.choice([4, 8])),
        "head_size": 128,
        "number_bytes": number_bytes,
    }
    chip = {"flop_per_s": rates[0], "memory_byte_per_s": rates[1]}
    per_token = _cache_bytes(model) * rates[0] / rates[1] - 4 * model["layers"] * heads * 128
    limit = 2 * model["parameters"] / per_token  # the context at which no batch reaches the ridge any more
    shares = (
        rng.uniform(low, low + wide) for low, wide in ((0.1, 0.2), (0.6, 0.2), (0.95, 0.02), (1.1, 0.2), (3, 0.2))
    )
    contexts = [max(1, int(limit * float(share))) for share in shares]
    return {
        "chip": chip,
        "model": model,
        "tokens": int(rng.integers(100, 3000)),
        "batch": int(rng.integers(3, 60)),
        "context": int(rng.integers(500, 6000)),
        "contexts": contexts,
    }


def _at_the_limit(rng: Any) -> dict[str, Any]:
    """A decoder and a context at which one sequence more adds as many FLOPs as bytes times the ridge: no batch does."""
    case = _case(rng, (_EXACT_RIDGE * 2e12, 2e12), 2)
    model, context = case["model"], 8 * int(rng.integers(20, 60))
    looks = 4 * model["layers"] * model["heads"] * model["head_size"]
    model["parameters"] = context * (_EXACT_RIDGE * _cache_bytes(model) - looks) // 2
    return {**case, "contexts": [context // 4, 3 * context // 4, context, 2 * context]}


def _cache_bytes(model: Any) -> int:
    return int(2 * model["layers"] * model["kv_heads"] * model["head_size"] * model["number_bytes"])
