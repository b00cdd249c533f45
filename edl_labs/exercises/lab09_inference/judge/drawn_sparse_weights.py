"""The cases of two_of_four: weights with whole groups that are small, and packed ones with any places."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source


@case_source("two_of_four")
def weights(rng: Any) -> list[Case]:
    return [Case(given=_weight(rng, inputs, outputs)) for inputs, outputs in ((16, 6), (8, 8), (32, 5), (24, 7))]


def _weight(rng: Any, inputs: int, outputs: int) -> dict[str, Any]:
    values = [[round(float(one), 3) for one in row] for row in rng.normal(size=(inputs // 2, outputs))]
    pairs = [sorted(int(one) for one in rng.choice(4, 2, replace=False)) for _ in range(inputs // 4 * outputs)]
    nibbles = [low | high << 2 for low, high in pairs]
    places = [
        [nibbles[2 * row * outputs + at] | nibbles[(2 * row + 1) * outputs + at] << 4 for at in range(outputs)]
        for row in range(inputs // 8)
    ]
    speed_ups = [[1.3, 2.0]] + [
        [round(float(rng.uniform(1.05, 1.5)), 3), round(float(rng.uniform(1.6, 2)), 2)] for _ in range(2)
    ]
    return {
        "seed": int(rng.integers(1, 10**6)),
        "inputs": inputs,
        "outputs": outputs,
        "tied": _tied(rng, outputs),
        "packed": {"values": values, "places": places},
        "speed_ups": speed_ups,
    }


def _tied(rng: Any, outputs: int) -> list[list[float]]:
    """Weights of eight inputs in which magnitudes meet: where the second largest is, or in all four."""
    columns = []
    for _ in range(outputs):
        large, small = sorted((int(one) / 2 for one in rng.choice(range(1, 9), 2, replace=False)), reverse=True)
        first, second = [large, small, small, 0.0], [small] * 4
        signs = rng.choice([-1.0, 1.0], 8)
        whole = [*rng.permutation(first), *rng.permutation(second)]
        columns.append([float(one * sign) + 0.0 for one, sign in zip(whole, signs, strict=True)])
    return [list(row) for row in zip(*columns, strict=True)]
