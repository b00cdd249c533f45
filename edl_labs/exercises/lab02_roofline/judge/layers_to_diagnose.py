"""The cases of diagnose: the same layers on several machines, each with another answer.

Each layer lies close to its thresholds on each machine, but not so close that a rounded number decides. What a layer is
tells nothing then, since the same one has every answer, and what a machine is next to nothing, since layers that lie
one step apart meet the same machine from both sides.
"""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source

_TILE_M, _TILE_N, _ELEMENTS = 256, 128, 1024  # deck [002]'s tile, and a block of 1024 threads
_TILES = {"tile_m": _TILE_M, "tile_n": _TILE_N, "elements_per_block": _ELEMENTS}
_LIMITERS = ("latency", "math", "memory")
_LEVELS = 4  # products that come with each of the three answers
# An intensity is so many times the ridge or one part of it; nearer, a rounded peak or bandwidth would decide.
_CLEAR, _FAR = 1.2, 1.3
_STEP = 1.56  # from level to level: a ridge above one intensity is a ridge below the next, 1.25 squared
_FIRST_FLOP_PER_BYTE = (60, 90)  # ridges then reach from 46 to 450: an A100's in TF32, an H200's in FP8
_FIRST_BLOCKS, _MORE_BLOCKS = (70, 100), 1.12  # SMs then reach from 62 to 160: 80 to 132 are real ones


@case_source("diagnose")
def layers(rng: Any) -> list[Case]:
    reach = float(rng.uniform(*_FIRST_FLOP_PER_BYTE))
    reaches = [reach * _STEP**level for level in range(_LEVELS)]
    blocks = float(rng.uniform(*_FIRST_BLOCKS))
    counts = [blocks * _MORE_BLOCKS**level for level in range(_LEVELS)]
    products = [_product(rng, counts[i], reaches[j]) for j, i in enumerate(rng.permutation(_LEVELS))]
    cases = [_on(rng, product, limiter) for product in products for limiter in _LIMITERS]
    # As many of each answer: products make up for the other kinds, which no machine of today limits by math.
    again = _product(rng, float(rng.choice(counts)), float(rng.choice(reaches)))
    cases += [_on(rng, again, "math"), _on(rng, again, "math", spare=0)]
    cases += [case for layer in (_relu(rng, counts), _norm(rng, counts)) for case in _twice(rng, layer, reaches)]
    return [Case(given=cases[i]) for i in rng.permutation(len(cases))]


def _product(rng: Any, blocks: float, reach: float) -> dict[str, Any]:
    """A product of about so many tiles, the last ones not full, and of an intensity of `reach` FLOP/B.

    The intensity of a 2-byte product is the harmonic sum of its sides, deck [002].
    """
    while True:
        rows = int(rng.integers(2, 21))
        m = _TILE_M * rows - int(rng.integers(1, 200))
        n = _TILE_N * max(1, round(blocks / rows)) - int(rng.integers(1, 100))
        rest = 1 / reach - 1 / m - 1 / n
        if rest > 0.1 / reach:
            break
    names = ("m", "n", "k") if rng.random() < 0.5 else ("batch", "outputs", "inputs")
    kind = "gemm" if "m" in names else "linear"
    return {"kind": kind, "itemsize": 2, **dict(zip(names, (m, n, round(1 / rest)), strict=True))}


def _on(rng: Any, layer: dict[str, Any], limiter: str, *, spare: int | None = None) -> dict[str, Any]:
    """A product on a machine where `limiter` limits it, with `spare` blocks more than SMs (drawn where it is None)."""
    m, n, k = _sides(layer)
    tiles = -(-m // _TILE_M) * -(-n // _TILE_N)
    more = int(rng.integers(1, round((_MORE_BLOCKS - 1) * tiles))) if spare is None else spare
    sms = tiles + more if limiter == "latency" else tiles - more
    above = limiter == "math" or (limiter == "latency" and rng.random() < 0.5)
    times = float(rng.uniform(_CLEAR, _FAR))
    reach = 1 / (1 / m + 1 / n + 1 / k)
    return {"layer": dict(layer), "machine": _machine(rng, sms, reach / times if above else reach * times)}


def _sides(layer: dict[str, Any]) -> tuple[int, int, int]:
    names = ("m", "n", "k") if layer["kind"] == "gemm" else ("batch", "outputs", "inputs")
    m, n, k = (layer[name] for name in names)
    return m, n, k


def _machine(rng: Any, sms: int, ridge: float) -> dict[str, Any]:
    bandwidth = round(float(rng.uniform(900, 4800))) * 1e9
    peak = round(ridge * bandwidth / 1e11) * 1e11
    return {"sms": sms, "peak_flop_per_s": peak, "bandwidth_byte_per_s": bandwidth, **_TILES}


def _relu(rng: Any, counts: list[float]) -> dict[str, Any]:
    elements = _ELEMENTS * round(float(rng.choice(counts))) - int(rng.integers(1, 1000))
    return {"kind": "relu", "elements": elements, "itemsize": 2}


def _norm(rng: Any, counts: list[float]) -> dict[str, Any]:
    """A norm whose last block would be full with a row more."""
    features = int(rng.integers(65, 500))
    rows = (_ELEMENTS * round(float(rng.choice(counts)))) // features
    return {"kind": "layer_norm", "rows": rows, "features": features, "itemsize": 2}


def _twice(rng: Any, layer: dict[str, Any], reaches: list[float]) -> list[dict[str, Any]]:
    """On a machine with as many SMs as the layer has blocks, and on one with an SM more."""
    blocks = -(-layer.get("elements", layer.get("rows", 0) * layer.get("features", 0)) // _ELEMENTS)
    ridges = [float(rng.choice(reaches)) * float(rng.uniform(_CLEAR, _FAR)) for _ in range(2)]
    return [{"layer": dict(layer), "machine": _machine(rng, blocks + i, ridge)} for i, ridge in enumerate(ridges)]
