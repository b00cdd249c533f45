"""The cases of ring: numbers of ranks, even and odd, and buffers that divide evenly, do not, or are too short."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source


@case_source("ring")
def rings(rng: Any) -> list[Case]:
    """First what is easy; then a remainder, more ranks than elements, and a single rank."""
    cases = [_case(rng, ranks, ranks * int(rng.integers(100, 1000))) for ranks in (4, int(rng.choice([5, 7])))]
    ranks = int(rng.choice([3, 5, 6]))
    cases.append(_case(rng, ranks, ranks * int(rng.integers(100, 1000)) + ranks - 2))
    # torch's chunk gives 4 pieces of 2, or 3 of 3, where 5 or 4 are wanted.
    ranks, numel = ((5, 6), (4, 5), (6, 8))[int(rng.integers(3))]
    cases.append(_case(rng, ranks, numel))
    ranks = int(rng.integers(5, 9))
    cases.append(_case(rng, ranks, int(rng.integers(2, ranks - 1))))
    cases.append(_case(rng, 2, int(rng.integers(1000, 5000))))
    cases.append(_case(rng, 1, int(rng.integers(10, 100))))
    return [Case(given=one) for one in cases]


def _case(rng: Any, ranks: int, numel: int) -> dict[str, Any]:
    return {
        "ranks": ranks,
        "numel": numel,
        "dtype": str(rng.choice(["fp32", "bf16"])),
        "alpha_s": float(rng.choice([2e-6, 5e-6, 20e-6])),
        "byte_per_s": float(rng.choice([1e9, 6e9, 50e9])),
    }
