"""The cases of lora: small whole numbers, whose products are exact in any order, and known mistakes."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source
from edl_labs.exercises.slip_digests import digest


@case_source("lora")
def adapters(rng: Any) -> list[Case]:
    return [_case(rng, int(rank)) for rank in rng.permutation([3, 4, 5])]


def _case(rng: Any, rank: int) -> Case:
    rows, columns = (int(one) for one in rng.permutation([int(rng.integers(5, 9)), int(rng.integers(9, 13))]))
    given: dict[str, Any] = {
        "x": _whole(rng, 3, columns),
        "weight": _whole(rng, rows, columns),
        "down": _whole(rng, rank, columns),
        "up": _whole(rng, rows, rank),
        "alpha": rank * int(rng.integers(2, 5)),
        "layers": [_layer(rng) for _ in range(3)],
    }
    return Case(given=given, hidden={"slips": _slips(given)})


def _whole(rng: Any, rows: int, columns: int) -> list[list[float]]:
    """Numbers from -4 to 4 without 0."""
    return [[float(rng.integers(1, 5) * rng.choice([-1, 1])) for _ in range(columns)] for _ in range(rows)]


def _layer(rng: Any) -> list[int]:
    """Positions, rows, columns, rank, of sizes whose sums and products differ."""
    rows, columns = rng.choice([1024, 2048, 4096, 11008, 14336], 2, replace=False)
    return [int(rng.choice([512, 2048, 8192])), int(rows), int(columns), int(rng.choice([4, 8, 16, 64]))]


def _slips(given: Any) -> dict[str, dict[str, str]]:
    """Digests of what each known mistake gives, by part of the evidence."""
    found = {"adapted": _outputs(given), "merged": _weights(given)}
    layers = given["layers"]
    numbers = {
        "bytes": {name: [rule(*one[1:]) for one in layers] for name, rule in _BYTES.items()},
        "flop": {name: [rule(*one) for one in layers] for name, rule in _FLOP.items()},
    }
    tables = {part: {name: value.reshape(-1) for name, value in some.items()} for part, some in found.items()}
    return {
        part: {name: digest(float(one) for one in value) for name, value in some.items()}
        for part, some in {**tables, **numbers}.items()
    }


def _outputs(given: Any) -> dict[str, Any]:
    import numpy as np

    x, weight, down, up = (np.array(given[name]) for name in ("x", "weight", "down", "up"))
    plain, thin, factor = x @ weight.T, x @ (up @ down).T, given["alpha"] / len(down)
    return {
        "alpha_alone": plain + given["alpha"] * thin,
        "no_factor": plain + thin,
        "factor_on_all": factor * (plain + thin),
        "adapter_alone": factor * thin,
    }


def _weights(given: Any) -> dict[str, Any]:
    import numpy as np

    weight, change = np.array(given["weight"]), np.array(given["up"]) @ np.array(given["down"])
    factor = given["alpha"] / len(given["down"])
    return {
        "alpha_alone": weight + given["alpha"] * change,
        "no_factor": weight + change,
        "factor_on_all": factor * (weight + change),
        "adapter_alone": factor * change,
        "in_place": weight + 2 * factor * change,
        "subtracted": weight - factor * change,
    }


# By rows, columns and rank; the sizes of the three matrices differ.
_BYTES = {
    "frozen_trained": lambda rows, columns, rank: 16 * (rows * columns + rank * (rows + columns)),
    "frozen_forgotten": lambda rows, columns, rank: 16 * rank * (rows + columns),
    "no_gradients": lambda rows, columns, rank: 2 * rows * columns + 14 * rank * (rows + columns),
    "one_matrix": lambda rows, columns, rank: 2 * rows * columns + 16 * rank * columns,
}


def _flop(frozen_products: int, thin_products: int) -> Any:
    def rule(positions: int, rows: int, columns: int, rank: int) -> int:
        return positions * (2 * frozen_products * rows * columns + 2 * thin_products * rank * (rows + columns))

    return rule


_FLOP = {
    "frozen_gradient": _flop(3, 3),
    "forward_alone": _flop(1, 1),
    "stops_at_adapter": _flop(1, 3),
    "adapter_like_frozen": _flop(2, 2),
    "multiplied_out": lambda positions, rows, columns, rank: (
        4 * positions * rows * columns + 6 * (positions + rank) * rows * columns
    ),
}
