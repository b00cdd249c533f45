"""The cases of mend_the_step: small models whose sizes cannot be mistaken for each other."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source


@case_source("mend_the_step")
def trainings(rng: Any) -> list[Case]:
    return [_case(rng, blocks) for blocks in (1, 2)]


def _case(rng: Any, blocks: int) -> Case:
    given = {
        "blocks": blocks,
        "width": 4 * int(rng.integers(2, 6)),
        "words": int(rng.integers(40, 60)),
        "tokens": int(rng.choice([7, 9, 11, 13])),  # odd: no size of the model is the same
        "batch": int(rng.integers(2, 5)),
    }
    return Case(given=given, hidden={"seed": int(rng.integers(2**31))})
