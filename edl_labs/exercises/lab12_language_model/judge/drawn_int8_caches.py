"""The cases of kv_int8: lines of every kind, tokens that fill blocks or do not, and models with grouped heads."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source

_CLEAR = 2e-3  # of an integer: how far a value is from a tie; fp32 errs by 1e-5
_TRIES = 2000  # one line in two or more is clear
# A block's tokens, appended tokens, size, queries, and whole blocks and recent tokens of the cache that attends.
_SIZES = ((4, 9, 8, 3, 2, 1), (3, 6, 6, 2, 2, 0), (5, 3, 7, 4, 0, 3), (2, 5, 9, 2, 3, 1))


@case_source("kv_int8")
def caches(rng: Any) -> list[Case]:
    return [_case(rng, *size) for size in _SIZES]


def _case(rng: Any, block: int, tokens: int, size: int, queries: int, blocks: int, recent: int) -> Case:
    given = {
        "tables": [_turned(_lines(rng, size + 1, 7)), _lines(rng, size, 6)],
        "block": block,
        "new_keys": _keys(rng, block, tokens, size),
        "new_values": _lines(rng, tokens, size),
        "queries": _normal(rng, queries, size),
        "cache": _cache(rng, block, size, blocks, recent),
        "models": [_model(rng) for _ in range(3)],
        "latents": [_latent(rng) for _ in range(3)],
    }
    return Case(given=given, hidden={})


def _turned(table: Any) -> list[list[float]]:
    return [list(column) for column in zip(*table, strict=True)]


def _normal(rng: Any, rows: int, columns: int) -> list[list[float]]:
    import numpy as np

    return np.float32(np.round(rng.normal(size=(rows, columns)), 3)).astype(float).tolist()


def _lines(rng: Any, count: int, length: int) -> list[list[float]]:
    """Lines with a scale each, in any order: zeros, one of ties, one that hangs on the rounded scale, plain ones."""
    lines = [[0.0] * length, _ties(rng, length), _hanging(rng, length)]
    lines += [_plain(rng, length, 8.0 if at % 2 else 1.0) for at in range(count - 3)]
    return [lines[at] for at in rng.permutation(count)]


def _ties(rng: Any, length: int) -> list[float]:
    """Its scale is a power of two, so that n + 1/2 scales are exact: with even n and with odd n."""
    import numpy as np

    halves = np.array([2.5, -2.5, 3.5, -3.5]) + 4 * rng.integers(0, 12, 4) * np.array([1, -1, 1, -1])
    rest = rng.integers(-60, 60, length - 5)
    line = rng.permutation([127.0 * rng.choice([-1, 1]), *halves, *rest]) * 2.0 ** -int(rng.integers(3, 8))
    return [float(one) for one in line]


def _hanging(rng: Any, length: int) -> list[float]:
    """Its scale is rounded to a larger number of fp16; one value would round up with the scale that was not rounded."""
    import numpy as np

    scale = float(np.float16(2.0 ** -int(rng.integers(3, 6)) * (1 + int(rng.integers(1, 20)) * 2.0**-10)))
    places = rng.integers(-60, 60, length) + 0.2
    places[:2] = [-127 * (1 - 2e-4), 100.49]
    return [float(np.float32(one)) for one in rng.permutation(places) * scale]


def _plain(rng: Any, length: int, factor: float) -> list[float]:
    """Values of which none is near a tie, and a largest magnitude whose scale is not near one in fp16 either."""
    import numpy as np

    for _ in range(_TRIES):
        line = np.float32(np.round(factor * rng.normal(size=length), 3)).astype(float)
        near = [np.float16(abs(line).max() / 127 * (1 + off)) for off in (-1e-6, 1e-6)]
        places = abs(line) / max(float(near[0]), 1e-9)
        if near[0] == near[1] and line.all() and np.all(abs(places - np.floor(places) - 0.5) > _CLEAR):
            return [float(one) for one in line]
    raise AssertionError("every line is near a tie; draw others")


def _keys(rng: Any, block: int, tokens: int, size: int) -> list[list[float]]:
    """Keys, block by block: one channel is large, and one is zero."""
    import numpy as np

    large, empty = (int(one) for one in rng.permutation(size)[:2])
    parts = []
    for first in range(0, tokens, block):
        length = min(block, tokens - first)
        columns = [_plain(rng, length, 40.0 if at == large else 1.0) for at in range(size)]
        columns[empty] = [0.0] * length
        parts += _turned(columns)
    return np.asarray(parts).tolist()


def _cache(rng: Any, block: int, size: int, blocks: int, recent: int) -> dict[str, Any]:
    import numpy as np

    def scales(rows: int, columns: int) -> list[list[float]]:
        return np.float16(rng.uniform(0.005, 0.03, (rows, columns))).astype(float).tolist()

    tokens = blocks * block + recent
    return {
        "keys": rng.integers(-127, 128, (blocks * block, size)).tolist(),
        "key_scales": scales(blocks, size),
        "recent": _normal(rng, recent, size),
        "values": rng.integers(-127, 128, (tokens, size)).tolist(),
        "value_scales": scales(tokens, 1),
    }


def _model(rng: Any) -> list[int]:
    """Layers, heads, heads of keys and values, size, block: with groups of query heads."""
    kv_heads = int(rng.choice([2, 4, 8]))
    size, block = int(rng.choice([64, 96, 128])), int(rng.choice([32, 48, 64]))
    return [int(rng.integers(16, 81)), kv_heads * int(rng.choice([3, 4, 6, 8])), kv_heads, size, block]


def _latent(rng: Any) -> list[int]:
    """Layers, heads, latent, rope, bits."""
    latent, rope = int(rng.choice([256, 512, 768])), int(rng.choice([32, 48, 64]))
    return [int(rng.integers(16, 81)), int(rng.choice([16, 64, 128])), latent, rope, int(rng.choice([8, 16]))]
