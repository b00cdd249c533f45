"""The cases of own_checkpoint: blocks with dropout, under autocast, with inputs that need no gradient."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source


@case_source("own_checkpoint")
def blocks(rng: Any) -> list[Case]:
    def case(
        *,
        dropout: bool = False,
        autocast: str = "",
        offset: bool = False,
        factor: bool = False,
        between: bool = False,
        attached: bool = False,
    ) -> Any:
        return {
            "seed": int(rng.integers(1, 10**6)),
            "dropout": float(rng.choice([0.3, 0.5])) if dropout else 0.0,
            "autocast": autocast,
            "offset": offset,
            "factor": round(float(rng.uniform(0.5, 2.0)), 3) if factor else 0.0,
            "is_between": between,
            "is_attached": attached,  # the offset needs a gradient, too
        }

    cases = [
        case(),
        case(offset=True),
        case(factor=True),
        case(dropout=True),
        case(dropout=True, offset=True, factor=True),
        case(autocast="bfloat16"),
        case(autocast="bfloat16", dropout=True, offset=True),
        case(autocast="float16"),
        case(offset=True, factor=True, between=True),
        case(offset=True, factor=True, between=True, attached=True),
    ]
    return [Case(given=one, hidden={"values_seed": int(rng.integers(2**31))}) for one in cases]
