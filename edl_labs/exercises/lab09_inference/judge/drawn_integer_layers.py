"""The cases of int8_product: layers whose outputs fill their grid, and no output near a tie."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source
from edl_labs.exercises.lab09_inference.integer_products import _values

_TRIES = 50  # nearly every second draw has no tie
_TIE = 1e-4  # of a step: float32 and float64 round the same way beyond


@case_source("int8_product")
def layers(rng: Any) -> list[Case]:
    return [Case(given=_layer(rng, relu=at % 2 == 1)) for at in range(4)]


def _layer(rng: Any, *, relu: bool) -> dict[str, Any]:
    import torch  # a second that a process which draws nothing need not take

    for _ in range(_TRIES):
        depth, columns = int(rng.integers(260, 400)), int(rng.integers(3, 6))
        x_zero = int(rng.choice([-1, 1])) * int(rng.integers(20, 120))
        case: dict[str, Any] = {
            "seed": int(rng.integers(1, 10**6)),
            "rows": int(rng.integers(2, 5)),
            "depth": depth,
            "x_scale": round(float(rng.uniform(0.01, 0.1)), 5),
            "x_zero": x_zero,
            "weight_scale": [round(float(one), 6) for one in rng.uniform(0.001, 0.01, columns)],
            "weight_zero": [
                int(one) * int(sign)
                for one, sign in zip(rng.integers(3, 40, columns), _signs(rng, columns), strict=True)
            ],
            "out_zero": int(rng.choice([-1, 1])) * int(rng.integers(5, 60)),
            "relu": relu,
        }
        scale = case["x_scale"] * torch.tensor(case["weight_scale"], dtype=torch.float64)
        case["bias"] = [round(float(one), 4) for one in rng.uniform(-1, 1, columns) * scale.numpy() * 40_000]
        values = {name: one.long() for name, one in _values({**case}).items() if name != "bias"}
        sums = (values["x"] - x_zero) @ (values["weight"] - torch.tensor(case["weight_zero"]))
        real = sums * scale + torch.tensor(case["bias"], dtype=torch.float64)
        case["out_scale"] = round(float(real.abs().max()) / 110, 4)
        steps = (sums + torch.round(torch.tensor(case["bias"]) / scale)) * scale / case["out_scale"]
        ties = (torch.tensor(case["bias"]) / scale % 1 - 0.5).abs().min(), (steps % 1 - 0.5).abs().min()
        if min(map(float, ties)) > _TIE:
            return case
    raise AssertionError("every drawn layer had an output on a tie")


def _signs(rng: Any, count: int) -> Any:
    return rng.choice([-1, 1], count)
