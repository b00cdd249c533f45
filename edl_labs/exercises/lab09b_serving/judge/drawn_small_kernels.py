"""The cases of streams: kernels that leave most SMs idle or fill them all, and loops that launches dominate."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source


@case_source("streams")
def requests(rng: Any) -> list[Case]:
    cases = [
        # Four times the 3 µs of a launch are less than a kernel: the host keeps up where it takes turns.
        _case(rng, share=float(rng.uniform(0.21, 0.24)), block_s=18e-6),
        _case(rng, share=1.0, block_s=60e-6),
        _case(rng, share=float(rng.uniform(0.10, 0.12)), block_s=8e-6, fusible=True),
        _case(rng, share=float(rng.uniform(0.3, 0.33)), block_s=80e-6),
    ]
    return [Case(given=one) for one in cases]


def _case(rng: Any, *, share: float, block_s: float, fusible: bool = False) -> dict[str, Any]:
    """Requests of which one kernel takes a share of the SMs."""
    sm_count = int(rng.integers(80, 133))
    one: dict[str, Any] = {
        "steps": int(rng.integers(6, 10)),
        "blocks": max(1, int(share * sm_count)),
        "block_s": round(block_s * float(rng.uniform(0.9, 1.1)), 8),
        "fusible": fusible,
    }
    # Of three groups that fill the chip the last one lacks a request: nobody may be left over.
    count = 3 * (sm_count // one["blocks"]) - 1 if share < 1 else int(rng.integers(5, 8))
    return {"sm_count": sm_count, "launch_s": 3e-6, "requests": [one] * count}
