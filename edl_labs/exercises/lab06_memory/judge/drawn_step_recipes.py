"""The cases of memory_timeline: layers, optimizers, first steps and later ones."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source


@case_source("memory_timeline")
def recipes(rng: Any) -> list[Case]:
    cases = [
        _case(rng, "sgd", first=True, set_to_none=True),
        _case(rng, "adam", first=False, set_to_none=True),
        _case(rng, "adam", first=True, set_to_none=True),
        _case(rng, "adam", first=False, set_to_none=False),
        _case(rng, "momentum", first=True, set_to_none=False),
        _case(rng, "sgd", first=False, set_to_none=False, is_heavy=True),
        _case(rng, "momentum", first=False, set_to_none=True, is_heavy=True),
        _case(rng, "sgd", first=False, set_to_none=True, ends_in_place=True),
    ]
    return [Case(given=one) for one in cases]


def _case(
    rng: Any, optimizer: str, *, first: bool, set_to_none: bool, is_heavy: bool = False, ends_in_place: bool = False
) -> dict[str, Any]:
    """With `is_heavy`, parameters outweigh activations, so that the peak is not at the end of the forward pass.

    With `ends_in_place`, two moments have the peak: the last layer saves nothing of its own.
    """
    count = int(rng.integers(3, 6))
    sizes = [int(n) for n in rng.choice(range(200, 900), size=2 * count, replace=False)]
    inplace = {count - 1 if ends_in_place else int(rng.integers(1, count - 1))}
    layers = [
        {
            "parameters": sizes[i] * (40 if is_heavy else 3),
            "activation_bytes": sizes[count + i] * 4 * (3 if is_heavy else 20),
            "inplace": i in inplace,
        }
        for i in range(count)
    ]
    return {"layers": layers, "optimizer": optimizer, "first": first, "set_to_none": set_to_none}
