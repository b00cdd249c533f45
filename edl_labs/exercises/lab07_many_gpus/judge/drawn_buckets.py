"""The cases of buckets: chains of layers whose sums take about as long as the backward pass, in unlike profiles."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source


@case_source("buckets")
def chains(rng: Any) -> list[Case]:
    """Many even layers where each sum's rounds are dear; bytes that grow to either end; a large first layer."""
    cases = [
        _case(rng, 14, load=1.0, rounds=0.6, lean=0.0),
        _case(rng, 12, load=0.7, rounds=0.3, lean=-1.5),
        _case(rng, 16, load=1.2, rounds=1.0, lean=0.0),
        _case(rng, 13, load=1.0, rounds=0.8, lean=1.5),
        _case(rng, 10, load=0.6, rounds=0.4, lean=0.0, first_bytes=int(rng.integers(20, 40)) * 1_000_000),
    ]
    return [Case(given=one) for one in cases]


def _case(rng: Any, count: int, *, load: float, rounds: float, lean: float, first_bytes: int = 0) -> dict[str, Any]:
    """`load` is sending over computing, `rounds` what all layers' own rounds would add, `lean` where the bytes are."""
    ranks = int(rng.choice([4, 6, 8]))
    byte_per_s = float(rng.choice([6e9, 25e9]))
    scale = float(rng.choice([0.2e6, 1e6, 4e6]))
    sizes = [int(scale * rng.uniform(0.5, 1.5) * 2.718 ** (lean * number / count)) * 4 for number in range(count)]
    sizes[0] = first_bytes or sizes[0]
    sending_s = 2 * (ranks - 1) * sum(sizes) / ranks / byte_per_s
    link = {"ranks": ranks, "byte_per_s": byte_per_s}
    link["alpha_s"] = float(f"{rounds * sending_s / (2 * (ranks - 1) * count):.2g}")
    weights = [float(rng.uniform(0.5, 1.5)) for _ in sizes]
    backward_s = [float(f"{sending_s / load * weight / sum(weights):.3g}") for weight in weights]
    layers = [{"gradient_bytes": size, "backward_s": lasts} for size, lasts in zip(sizes, backward_s, strict=True)]
    return {"layers": layers, "link": link, "update_s": float(f"{0.02 * sending_s:.3g}")}
