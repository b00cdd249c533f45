"""The cases of dynamic_scale, bug_hunt and train_it: scripts of gradients, batches that overflow, settings."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from edl_labs.checks import Case, case_source
from edl_labs.exercises.lab03_mixed_precision.bug_hunt import (
    EACH,
    FEATURES,
    LOOPS,
    SOUND,
    most_rounded,
)
from edl_labs.exercises.lab03_mixed_precision.loop_slips import OVERFLOWING, OVERFLOWING_SCALED

_NEARLY_INFINITE = 2e38  # fp32 ends at 3.4e38: two of these no longer have a sum
_HUGE = 3e9  # its square times any scale of the script has no square in fp32, without the scale it has
_LARGE_SCALE = 2.0**16  # torch's first one
_SMALL_LOSS, _TINY_LOSS = 1e-8, 4e-4  # the size of train_static's targets, and that of some beside the others
_TOO_SMALL_SCALE = 2.0**14  # 1e-8 becomes 1.6e-4, as it should; 1e-12 a quarter of fp16's smallest number
_PLAIN = 4.0  # twice what is allowed
_STEPS = 26  # several growth intervals and several overflows


_CASES = 3  # each trains: more would take seconds


@case_source("dynamic_scale")
def scripts(rng: Any) -> list[Case]:
    return [Case(given=one) for one in [*(_script(rng, i) for i in range(8)), _small_script(rng)]]


@case_source("bug_hunt")
def loops(rng: Any) -> list[Case]:
    drawn = {loop: partial(_loop_case, loop=loop) for loop in LOOPS} | {"train_static": _static_case}
    cases = [drawn[loop](rng) for loop in LOOPS for _ in range(EACH)]
    logged = [case for case in cases if case["loop"] == "train_logged"]
    logged[-1]["batches"][-1]["x"][0][0] = _HUGE
    logged[-1]["init_scale"] = _LARGE_SCALE
    _overflow_behind_a_finite_loss([case for case in cases if case["loop"] == "train_scheduled"][-1])
    return [Case(given=one) for one in cases]


def _overflow_behind_a_finite_loss(case: dict[str, Any]) -> None:
    """One of its overflows is of the gradients alone, whatever the weights are (about 2) and the scale (from 2^10)."""
    batch = next(batch for batch in case["batches"] if batch["x"][0][0] == OVERFLOWING)
    batch["x"][0][0], batch["y"][0][0] = OVERFLOWING_SCALED, -4 * OVERFLOWING_SCALED
    case["init_scale"] = _LARGE_SCALE


@case_source("train_it")
def trainings(rng: Any) -> list[Case]:
    settings = [
        {
            "seed": int(rng.integers(2**31)),
            "loss_weight": float(2.0 ** -rng.integers(24, 27)),
            "init_scale": float(2.0 ** rng.integers(45, 48)),
            "growth_interval": int(rng.integers(40, 70)),
        }
        for _ in range(_CASES)
    ]
    return [Case(given=one, hidden={"held_out_seed": int(rng.integers(2**31))}) for one in settings]


def _script(rng: Any, index: int) -> dict[str, Any]:
    interval = int(rng.integers(2, 6))
    settings = {
        "init_scale": float(2.0 ** rng.integers(10, 18)),
        "growth_factor": float(rng.choice([2.0, 4.0])),
        "backoff_factor": float(rng.choice([0.5, 0.25])),
        "growth_interval": interval,
        "max_scale": math.inf,
    }
    sizes = [int(size) for size in rng.integers(1, 5, size=2)]
    steps = [_scripted(rng, sizes, _kind(rng, number, interval)) for number in range(_STEPS)]
    for step in steps[:: 3 + index % 2]:
        step["unscale"] = "once"
    steps[int(rng.integers(1, _STEPS))]["unscale"] = "twice"
    if index % 4 == 1:
        # Half a growth step away, so that a scale that may not grow in full still grows.
        settings |= {"growth_factor": 4.0, "max_scale": 2 * settings["init_scale"]}
    return {"settings": settings, "sizes": sizes, "steps": steps, "through": "float16"}


def _small_script(rng: Any) -> dict[str, Any]:
    """Gradients as large as fp32 has them, through bf16, whose range is as wide: scales of 1 and less."""
    settings = {"init_scale": 1.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 3}
    kinds = ["clean", "inf", "clean", "nan", *(str(rng.choice(["clean", "clean", "inf"])) for _ in range(8))]
    sizes = [int(rng.integers(1, 4)), int(rng.integers(2, 4))]
    steps = [_scripted(rng, sizes, kind) for kind in kinds]
    steps[0]["gradients"][1][:2] = [_NEARLY_INFINITE] * 2
    steps[2]["unscale"] = "once"
    return {"settings": {**settings, "max_scale": math.inf}, "sizes": sizes, "steps": steps, "through": "bfloat16"}


def _kind(rng: Any, number: int, interval: int) -> str:
    # A bad step just before the scale would grow tells a counter that is set back from one that is not.
    if number == 0:
        return "clean"
    if number == interval - 1:
        return "inf"
    if number < 3 * interval:
        return "clean"
    return str(rng.choice(["clean", "clean", "clean", "clean", "inf", "nan", "large"]))


def _scripted(rng: Any, sizes: list[int], kind: str) -> dict[str, Any]:
    """A step's true gradients: small enough for any scale, or with one value that no scale of the script survives."""
    gradients = [[float(x) for x in rng.choice([-1, 1], size=n) * 2.0 ** rng.uniform(-12, -5, size=n)] for n in sizes]
    part = gradients[int(rng.integers(len(gradients)))]
    bad = {"inf": math.inf, "nan": math.nan, "large": 3e5}
    if kind in bad:
        part[int(rng.integers(len(part)))] = bad[kind] * (1 if kind == "nan" else float(rng.choice([-1, 1])))
    return {"gradients": gradients, "unscale": ""}


def _static_case(rng: Any) -> dict[str, Any]:
    """A case of train_static in which a scale for the large gradients alone is seen in the weights."""
    while True:
        case = _loop_case(rng, "train_static")
        off = zip(trained_static(case, _TOO_SMALL_SCALE), trained_static(case, SOUND), most_rounded(case), strict=True)
        if max(abs(mine - right) / most for mine, right, most in off) > _PLAIN:
            return case


def trained_static(case: Any, scale: float) -> list[float]:
    """The weights that train_static leaves with this scale, in fp32 with gradients that are rounded to fp16."""
    import numpy

    short, full = numpy.float16, numpy.float32
    weights = numpy.array(case["weights"], dtype=full)
    for batch in case["batches"]:
        x, y = numpy.array(batch["x"], dtype=full), numpy.array(batch["y"], dtype=full).ravel()
        scaled = (full(2 / len(y) * scale) * (x @ weights - y)).astype(short).astype(full)
        weights = weights - full(case["lr"]) * ((x.T @ scaled) / full(scale))
    return [float(weight) for weight in weights]


def _loop_case(rng: Any, loop: str) -> dict[str, Any]:
    count = 8 + 2 * int(rng.integers(3))
    small = _SMALL_LOSS if loop == "train_static" else 1.0
    true = [float(value) for value in rng.uniform(0.5, 2, size=FEATURES)]
    batches = [_batch(rng, true, small) for _ in range(count)]
    if loop == "train_static":
        for number, batch in enumerate(batches):
            _split(batch, true, tiny=bool(number % 2))
    else:
        # Not before the first step: with weights of 0 even this gradient is finite.
        for i in rng.choice(count // 2 - 2, size=2, replace=False):
            batches[2 * int(i) + 3]["x"][0][0] = OVERFLOWING
    return {
        "loop": loop,
        "weights": [0.0] * FEATURES,
        "batches": batches,
        "lr": float(rng.uniform(0.02, 0.06)),
        "init_scale": float(2.0 ** rng.integers(8, 17)),
        "max_norm": float(rng.uniform(0.3, 0.8)),
    }


def _batch(rng: Any, true: list[float], small: float) -> dict[str, Any]:
    x = [[float(value) for value in rng.normal(size=FEATURES)] for _ in range(4)]
    y = [[small * sum(a * b for a, b in zip(row, true, strict=True))] for row in x]
    return {"x": x, "y": y}


def _split(batch: dict[str, Any], true: list[float], *, tiny: bool) -> None:
    """Leave a batch either the last feature alone, with tiny targets, or all the others."""
    keep = [i for i in range(FEATURES) if (i == FEATURES - 1) is tiny]
    size = _SMALL_LOSS * (_TINY_LOSS if tiny else 1.0)
    batch["x"] = [[value if i in keep else 0.0 for i, value in enumerate(row)] for row in batch["x"]]
    batch["y"] = [[size * sum(row[i] * true[i] for i in keep)] for row in batch["x"]]
