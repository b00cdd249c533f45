"""The cases of split_a_block: MLP and attention, sizes that divide by the ranks and sizes that do not."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source


@case_source("split_a_block")
def blocks(rng: Any) -> list[Case]:
    def case(kind: str, ranks: int, **sizes: int) -> dict[str, Any]:
        seed, tokens = int(rng.integers(1, 10**6)), int(rng.integers(3, 6))
        return {"kind": kind, "ranks": ranks, "seed": seed, "tokens": tokens, "heads": 0, "hidden": 0, **sizes}

    cases = [
        case("mlp", 2, width=4, hidden=8),
        case("attention", 2, width=8, heads=4),
        case("mlp", 4, width=int(rng.integers(3, 6)), hidden=16),
        case(
            "mlp", 3, width=5, hidden=int(rng.choice([7, 10, 13, 16]))
        ),  # 1 more than a multiple: rounding up is not fair
        case("attention", 2, width=int(rng.choice([6, 9])), heads=3),
        case("attention", 4, width=12, heads=6),
        # 2 more: rounding down leaves both to the last rank.
        case("mlp", 4, width=int(rng.integers(3, 6)), hidden=int(rng.choice([6, 10, 14]))),
    ]
    return [Case(given=one, hidden={"values_seed": int(rng.integers(2**31))}) for one in cases]
