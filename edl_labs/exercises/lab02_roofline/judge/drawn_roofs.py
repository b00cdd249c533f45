"""The cases of ridge_and_bound, minibatch_crossover and amdahl: machines with work, layers, profiles."""

from __future__ import annotations

import math
from typing import Any

from edl_labs.checks import Case, case_source
from edl_labs.exercises.lab02_roofline.answer_forms import tidy

_LEVELS = ("L2", "HBM")
_DTYPES = ("fp32", "fp16")


@case_source("ridge_and_bound")
def roofs(rng: Any) -> list[Case]:
    deck = {
        "machine": {"peak_flop_per_s": {"fp32": 6e12}, "bandwidth_byte_per_s": {"DRAM": 300e9}},
        "work": {"flop": 2 * 1024 * 512, "dtype": "fp32", "moved_bytes": {"DRAM": 4 * (1024 * 512 + 512 + 1024)}},
        "dtype": "fp32",
        "level": "DRAM",
    }
    limiters = ["compute", "HBM", "L2"] * 3
    # What computes in the slower dtype tells who takes the faster peak, and the other way round.
    dtypes = [dtype for dtype in ("fp32", "fp16", "fp32") for _ in range(3)]
    drawn = [_bounded(rng, limiter, dtype) for limiter, dtype in zip(limiters, dtypes, strict=True)]
    return [Case(given=one) for one in [deck, *drawn, _bounded(rng, "HBM", "fp16", flop=0.0), _all_below(rng)]]


def _bounded(rng: Any, limiter: str, dtype: str, *, flop: float | None = None) -> dict[str, Any]:
    """Work on a drawn machine whose longest time is that of `limiter`, by a fifth at least."""
    plain = float(rng.integers(8, 100)) * 1e12
    peak = {"fp32": plain, "fp16": plain * int(rng.integers(2, 5))}
    bandwidth = dict(
        zip(_LEVELS, (float(rng.integers(40, 120)) * 1e11, float(rng.integers(3, 35)) * 1e11), strict=True)
    )
    longest_s = float(rng.uniform(2e-6, 5e-3))
    # Where the arithmetic decides, it does so with another dtype's peak too, and that time says whose peak was used.
    shares = (0.1, 0.2) if limiter == "compute" else (0.2, 0.8)
    spent_s = {name: longest_s * float(rng.uniform(*shares)) for name in ("compute", *_LEVELS)}
    spent_s[limiter] = longest_s
    return {
        "machine": {"peak_flop_per_s": peak, "bandwidth_byte_per_s": bandwidth},
        "work": {
            "flop": tidy(peak[dtype] * spent_s["compute"]) if flop is None else flop,
            "dtype": dtype,
            "moved_bytes": {level: tidy(bandwidth[level] * spent_s[level]) for level in _LEVELS},
        },
        "dtype": str(rng.choice(_DTYPES)),
        "level": str(rng.choice(_LEVELS)),
    }


def _all_below(rng: Any) -> dict[str, Any]:
    """Work below the ridges of all levels, of which the first takes longest."""
    case = _bounded(rng, _LEVELS[0], "fp32")
    case["work"]["flop"] = tidy(case["work"]["flop"] / 8)
    return case


@case_source("minibatch_crossover")
def layers_and_ridges(rng: Any) -> list[Case]:
    deck = [_layer(n, n, 20.0, 4) for n in (512, 1024, 2048, 64, 80)]
    square = [_layer(n, n, *_machine(rng)) for n in rng.integers(400, 9000, size=2).tolist()]
    never = _layer(int(rng.integers(40, 150)), int(rng.integers(40, 150)), round(float(rng.uniform(160, 300)), 2), 2)
    # A hair above the limit; and layers whose narrow or wide side alone says something else than both.
    barely = _layer(80, 80, 19.9999, 4)
    cases = [*deck, *square, never, *(_oblong(rng) for _ in range(6)), barely, *_uneven(rng)]
    return [Case(given=one) for one in cases]


def _layer(inputs: int, outputs: int, ridge: float, itemsize: int) -> dict[str, Any]:
    return {"inputs": inputs, "outputs": outputs, "ridge": ridge, "itemsize": itemsize}


def _machine(rng: Any) -> tuple[float, int]:
    return round(float(rng.uniform(8, 90)), 2), int(rng.choice([2, 4]))


def _oblong(rng: Any) -> dict[str, Any]:
    return _layer(int(rng.integers(700, 9000)), int(rng.integers(700, 9000)), *_machine(rng))


def _uneven(rng: Any) -> list[dict[str, Any]]:
    """Both ways round: a side below the width limit beside one that makes up for it, and one that does not."""
    ridge, itemsize = _machine(rng)
    limit = ridge * itemsize
    saved = int(limit * rng.uniform(0.65, 0.9)), int(limit * rng.uniform(4, 12))
    lost = int(limit * rng.uniform(0.2, 0.4)), int(limit * rng.uniform(4, 12))
    return [_layer(*sides, ridge, itemsize) for pair in (saved, lost) for sides in (pair, pair[::-1])]


@case_source("amdahl")
def profiles(rng: Any) -> list[Case]:
    table = {"tensor contraction": (99.80, 61.0), "normalization": (0.17, 25.5), "element-wise": (0.03, 13.5)}
    deck = {name: {"flop_share": round(f / 100, 6), "time_share": t / 100} for name, (f, t) in table.items()}
    free = {"normalization": math.inf, "element-wise": math.inf}
    asked = [{"tensor contraction": math.inf}, free, {"tensor contraction": 8.0}]
    cases = [{"classes": deck, "faster": faster} for faster in asked]
    cases += [*(_profile(rng) for _ in range(6)), _slowed(rng)]
    return [Case(given=one) for one in cases]


def _slowed(rng: Any) -> dict[str, Any]:
    """A profile in which the class that takes longest becomes slower."""
    case = _profile(rng)
    longest = max(case["classes"], key=lambda name: case["classes"][name]["time_share"])
    return {**case, "faster": {**case["faster"], longest: 0.5}}


def _shares(drawn: list[float]) -> list[float]:
    """Shares of three decimals that still add up to 1."""
    first = [round(share, 3) for share in drawn[:-1]]
    return [*first, round(max(0.0, 1 - sum(first)), 3)]


def _profile(rng: Any) -> dict[str, Any]:
    names = [f"class {letter}" for letter in "ABCDE"[: int(rng.integers(2, 6))]]
    times, flops = (_shares(rng.dirichlet([weight] * len(names)).tolist()) for weight in (2.0, 0.4))
    rows = zip(names, flops, times, strict=True)
    changed = [name for name in names[1:] if rng.random() < 0.6] or [names[0]]
    factors = {name: float(rng.choice([0.5, 1.5, 2.0, 4.0, 10.0, math.inf])) for name in changed}
    return {"classes": {name: {"flop_share": f, "time_share": t} for name, f, t in rows}, "faster": factors}
