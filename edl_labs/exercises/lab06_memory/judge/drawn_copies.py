"""The cases of offload_or_recompute: chains whose copies are fast, slow or in between, and one with room."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source

_MIB = 1 << 20  # sizes that are easily read
# Copies in units of what the passes' own bytes a second are, and the budget's share of keeping everything.
_DRAWN = (
    *((0.1, 0.5), (20.0, 0.8), (20.0, 0.65), (1.5, 0.8), (1.5, 0.65)),
    *((4.0, 0.5), (0.5, 0.6), (0.1, 0.7), (1.0, 1.0)),
    # Where a few copies are enough, and only those that come back early are free.
    *((1.0, 0.9), (1.5, 0.9)),
)


@case_source("offload_or_recompute")
def chains(rng: Any) -> list[Case]:
    return [Case(given=_case(rng, rate, share)) for rate, share in _DRAWN]


def _case(rng: Any, rate: float, share: float) -> dict[str, Any]:
    layers: list[dict[str, Any]] = []
    for i in range(5):
        output = int(rng.integers(1, 5))
        forward_s = round(float(rng.uniform(0.3, 3.0)) * 1e-3, 6)
        layers.append(
            {
                "name": f"layer{i}",
                "activation_bytes": (output + int(rng.integers(4, 25))) * _MIB,
                "output_bytes": output * _MIB,
                "forward_s": forward_s,
                "backward_s": round(2 * forward_s, 6),
            }
        )
    whole = sum(layer["activation_bytes"] for layer in layers)
    # What running every layer again takes, so that each case has a plan.
    least = sum(layer["output_bytes"] for layer in layers)
    least += max(layer["activation_bytes"] - layer["output_bytes"] for layer in layers)
    passes_s = sum(layer["forward_s"] for layer in layers)
    return {
        "layers": layers,
        "copy_byte_per_s": round(rate * whole / passes_s),
        "budget_bytes": max(least, int(share * whole) // _MIB * _MIB),
    }
