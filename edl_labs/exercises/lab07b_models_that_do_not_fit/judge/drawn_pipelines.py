"""The cases of pipeline: few and many micro-batches, GPipe, 1F1B and interleaved stages."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source


@case_source("pipeline")
def pipelines(rng: Any) -> list[Case]:
    cases = [
        _case(rng, "gpipe", 4, 6),
        _case(rng, "1f1b", 4, 16),
        _case(rng, "gpipe", int(rng.integers(2, 6)), int(rng.integers(6, 11))),
        _case(rng, "1f1b", int(rng.integers(3, 6)), int(rng.integers(7, 11))),
        _case(rng, "1f1b", 5, int(rng.integers(2, 4))),  # fewer micro-batches than stages
        _case(rng, "1f1b", 2, int(rng.integers(3, 8))),
        _case(rng, "gpipe", 3, 1),
        _case(rng, "interleaved", int(rng.integers(3, 7)), int(rng.integers(8, 17)), chunks=int(rng.integers(2, 5))),
    ]
    return [Case(given=one) for one in cases]


def _case(rng: Any, schedule: str, stages: int, micro: int, *, chunks: int = 1) -> dict[str, Any]:
    forward_s = round(float(rng.uniform(2.0, 6.0)) * 1e-3, 6)
    return {
        "schedule": schedule,
        "stages": stages,
        "micro": micro,
        "chunks": chunks,
        "forward_s": forward_s,
        "backward_s": round(forward_s * float(rng.uniform(1.8, 2.2)), 6),
        "elements": int(rng.integers(100, 200)) * 1000,
        "kept": int(rng.integers(20, 40)) * 100_000,
    }
