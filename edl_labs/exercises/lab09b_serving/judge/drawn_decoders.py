"""The cases of decode_bound: chips and decoders, with contexts on both sides of where no batch reaches the ridge."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import draws

_CHIPS = ((125e12, 0.9e12), (312e12, 1.555e12), (312e12, 2.039e12), (989e12, 3.35e12))  # V100, A100s, H100: datasheets


@draws("decode_bound")
def decoders(rng: Any) -> list[Any]:
    return [_case(rng, _CHIPS[at]) for at in rng.permutation(len(_CHIPS))]


def _case(rng: Any, rates: tuple[float, float]) -> dict[str, Any]:
    heads = int(rng.choice([16, 32, 40]))
    model = {
        "parameters": int(rng.integers(1000, 30_000)) * 10**6,
        "layers": int(rng.integers(16, 61)),
        "heads": heads,
        "kv_heads": heads // int(rng.choice([2, 4, 8])),
        "head_size": 128,
        "number_bytes": 2,
    }
    chip = {"flop_per_s": rates[0], "memory_byte_per_s": rates[1]}
    per_token = _cache_bytes(model) * rates[0] / rates[1] - 4 * model["layers"] * heads * 128
    limit = 2 * model["parameters"] / per_token  # the context at which no batch reaches the ridge any more
    contexts = [max(1, int(limit * float(rng.uniform(low, low + 0.2)))) for low in (0.1, 0.6, 1.1, 3.0)]
    return {
        "chip": chip,
        "model": model,
        "tokens": int(rng.integers(100, 3000)),
        "batch": int(rng.integers(3, 60)),
        "context": int(rng.integers(500, 6000)),
        "contexts": contexts,
    }


def _cache_bytes(model: Any) -> int:
    return int(2 * model["layers"] * model["kv_heads"] * model["head_size"] * model["number_bytes"])
