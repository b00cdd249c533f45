"""The cases of two_of_four: weights with whole groups that are small, and packed ones with any places."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import draws


@draws("two_of_four")
def weights(rng: Any) -> list[Any]:
    return [_weight(rng, inputs, outputs) for inputs, outputs in ((16, 6), (8, 8), (32, 5), (24, 7))]


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
        "packed": {"values": values, "places": places},
        "speed_ups": speed_ups,
    }
