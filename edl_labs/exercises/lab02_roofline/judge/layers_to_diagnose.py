"""The cases of diagnose: layers and machines, so many of each limiter, none near the ridge."""

from __future__ import annotations

import math
from typing import Any

from edl_labs.checks import draws
from edl_labs.exercises.lab02_roofline.judge.drawn_operations import OPERATIONS

_CLEAR = 1.15  # nearer to the ridge, a rounded peak or bandwidth would decide
# Tiles along the two sides of a product that make as many blocks as there are SMs.
_GRIDS = {80: (8, 10), 108: (9, 12), 132: (11, 12)}
# Six of each, with those of `_edges`: limiter, whether the intensity suggests another one, whether it is a product.
# Half of the latency-limited ones lie above the ridge, and two memory-limited ones above a V100's ridge. Kinds tell
# little: of 14 products 4, 6 and 4 are limited by latency, math and memory, of the 4 others 2 by latency, 2 by memory.
_QUOTA = {
    ("latency", True, True): 3,
    ("latency", False, True): 1,
    ("latency", False, False): 1,
    ("math", False, True): 5,
    ("memory", True, True): 2,
    ("memory", False, True): 2,
}
_TEMPTING_FLOP_PER_BYTE = 150  # above a V100's ridge of 139
# SMs, FP16 tensor FLOP/s, bytes per second: V100, A100 of 40 and 80 GB, H100, H200 (datasheets, dense).
_MACHINES = (
    {"sms": 80, "peak_flop_per_s": 125e12, "bandwidth_byte_per_s": 900e9},
    {"sms": 108, "peak_flop_per_s": 312e12, "bandwidth_byte_per_s": 1555e9},
    {"sms": 108, "peak_flop_per_s": 312e12, "bandwidth_byte_per_s": 2039e9},
    {"sms": 132, "peak_flop_per_s": 989e12, "bandwidth_byte_per_s": 3350e9},
    {"sms": 132, "peak_flop_per_s": 989e12, "bandwidth_byte_per_s": 4800e9},
)


# How often each of _MACHINES is drawn: two have no tempting layer, and plain memory-limited ones make up for that.
_ANY = (0.2, 0.2, 0.2, 0.2, 0.2)
_HOW_OFTEN = {("memory", True): (0, 1 / 3, 0, 1 / 3, 1 / 3), ("memory", False): (0.4, 1 / 15, 0.4, 1 / 15, 1 / 15)}


@draws("diagnose")
def layers(rng: Any) -> list[Any]:
    wanted = [kind for kind, count in _QUOTA.items() for _ in range(count)]
    cases = [_fitting(rng, kind) for kind in wanted]
    cases += _edges(rng)
    return [cases[i] for i in rng.permutation(len(cases))]


def _machine(rng: Any, how_often: tuple[float, ...] = _ANY) -> dict[str, Any]:
    drawn = _MACHINES[int(rng.choice(len(_MACHINES), p=how_often))]
    return {**drawn, "tile_m": 256, "tile_n": 128, "elements_per_block": 1024}


def _edges(rng: Any) -> list[dict[str, Any]]:
    """As many blocks as SMs, some of them not full: a product (math), a ReLU and a norm (memory); and a block fewer."""
    wide, plain, normed, fewer = (_machine(rng) for _ in range(4))
    rows, columns = _GRIDS[wide["sms"]]
    product = {"kind": "gemm", "itemsize": 2, "k": int(rng.integers(4096, 8192))}
    product |= {"m": 256 * rows - int(rng.integers(1, 200)), "n": 128 * columns - int(rng.integers(1, 100))}
    relu = {"kind": "relu", "elements": 1024 * plain["sms"] - int(rng.integers(1, 1000)), "itemsize": 2}
    # The last blocks of the first norm hold few elements, those of the second would be full with a row more.
    norm, short = (
        {
            "kind": "layer_norm",
            "rows": (1024 * (machine["sms"] - less)) // features,
            "features": features,
            "itemsize": 2,
        }
        for machine, less, features in ((normed, 0, int(rng.integers(65, 500))), (fewer, 1, int(rng.integers(65, 500))))
    )
    made = zip((product, relu, norm, short), (wide, plain, normed, fewer), strict=True)
    return [{"layer": layer, "machine": machine} for layer, machine in made]


def _fitting(rng: Any, kind: tuple[str, bool, bool]) -> dict[str, Any]:
    """A layer of a kind, on a machine that is drawn first, so that the machine does not tell the limiter."""
    machine = _machine(rng, _HOW_OFTEN.get(kind[:2], _ANY))
    while _kind(case := _draw(rng, machine)) != kind:
        pass
    return case


def _draw(rng: Any, machine: dict[str, Any]) -> dict[str, Any]:
    kind = str(rng.choice(["gemm", "gemm", "gemm", "linear", "linear", "relu", "layer_norm"]))
    layer = {"kind": kind, **(OPERATIONS[kind](rng) if kind in ("relu", "layer_norm") else {}), "itemsize": 2}
    powers = [int(2 ** float(rng.uniform(4, 13.5))) for _ in range(3)]
    if kind == "gemm":
        layer |= dict(zip(("m", "n", "k"), powers, strict=True))
    elif kind == "linear":
        layer |= dict(zip(("batch", "outputs", "inputs"), powers, strict=True))
    elif kind == "relu" and rng.random() < 0.5:
        layer["elements"] = int(rng.integers(2000, 120_000))
    elif kind == "layer_norm" and rng.random() < 0.5:
        layer |= {"rows": int(rng.integers(8, 60)), "features": int(rng.integers(64, 1500))}
    return {"layer": layer, "machine": dict(machine)}


def _kind(case: Any) -> tuple[str, bool, bool]:
    """The limiter of a case that no rounding decides (or nothing), whether its intensity suggests another, and kind."""
    machine, reach, is_product = case["machine"], _reach(case["layer"]), bool(_sides(case["layer"]))
    over = reach * machine["bandwidth_byte_per_s"] / machine["peak_flop_per_s"]
    if _blocks(**case) < machine["sms"]:
        return "latency", over > 1, is_product
    limiter = "math" if over > _CLEAR else "memory" if over < 1 / _CLEAR else ""
    return limiter, limiter == "memory" and reach > _TEMPTING_FLOP_PER_BYTE, is_product


def _sides(layer: Any) -> list[int]:
    """Rows, columns and inner side of a product; nothing for the other kinds."""
    names = {"gemm": ("m", "n", "k"), "linear": ("batch", "outputs", "inputs")}.get(layer["kind"], ())
    return [layer[name] for name in names]


def _reach(layer: Any) -> float:
    # FLOP/B of a 2-byte product: the harmonic sum of its sides, deck [002]. Others are far below every ridge.
    return 1 / sum(1 / side for side in _sides(layer)) if _sides(layer) else 0.0


def _blocks(layer: Any, machine: Any) -> int:
    if _sides(layer):
        m, n, _ = _sides(layer)
        return math.ceil(m / machine["tile_m"]) * math.ceil(n / machine["tile_n"])
    elements = layer.get("elements") or layer["rows"] * layer["features"]
    return math.ceil(elements / machine["elements_per_block"])
