"""The cases of pick_collective: clusters and messages on which each of the four algorithms is cheapest somewhere."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source


@case_source("pick_collective")
def clusters(rng: Any) -> list[Case]:
    """Two levels first, nodes of a power of two, then one node; powers of two in all, and other numbers of ranks."""
    shapes = [(4, 8), (int(rng.choice([3, 5])), 4), (int(rng.choice([3, 6])), 2), (1, 8), (1, 6), (8, 1)]
    cases = [_case(rng, *shape, float(rng.choice([1e6, 1e8, 1e9]))) for shape in shapes]
    cases += [_case(rng, int(rng.choice([4, 8])), int(rng.choice([2, 4, 8])), size) for size in (1e3, 3e4)]
    cases += [_case(rng, 1, int(rng.choice([3, 5, 7, 12])), size) for size in (1e3, 3e7)]
    return [Case(given=one) for one in cases]


def _case(rng: Any, nodes: int, each: int, size: float) -> dict[str, Any]:
    return {
        "nodes": nodes,
        "ranks_per_node": each,
        "message_bytes": int(size * float(rng.integers(10, 40)) / 10),
        "inside": {"alpha_s": float(rng.choice([2e-6, 3e-6])), "byte_per_s": float(rng.choice([150e9, 450e9]))},
        "between": {"alpha_s": float(rng.choice([5e-6, 20e-6])), "byte_per_s": float(rng.choice([6e9, 25e9, 50e9]))},
        "sum_byte_per_s": float(rng.choice([200e9, 1e12])),
    }
