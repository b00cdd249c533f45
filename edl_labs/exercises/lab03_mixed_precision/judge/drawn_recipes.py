"""The cases of autocast_dtype, bytes_per_parameter and aligned_shapes: operators, recipes and matrix products."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source

OPERATORS = (
    *("linear", "matmul", "conv2d", "scaled_dot_product_attention", "add", "cat", "relu", "gelu", "max_pool2d"),
    *("batch_norm", "layer_norm", "softmax", "sum", "mean", "exp", "mse_loss", "cross_entropy"),
)


BINARY = ("linear", "matmul", "conv2d", "add", "cat", "mse_loss")


# In the linear algebra of one operator, float64 never meets another dtype: torch refuses that.
_MIXED = BINARY


# What torch lets them meet in, and whether float64 comes first: no rule gets more of these than CHANCE.
_PROMOTED = ("add", "cat", "mse_loss")
_FLOAT64_BESIDE = (("low", False), ("float32", False), ("low", True))


# fp16 under autocast to bf16 and the other way round: some are cast, some stay as they are (cat raises).
_FROM_THE_OTHER = ("linear", "matmul", "conv2d", "scaled_dot_product_attention", "relu", "gelu", "max_pool2d")


# Not cast, and of two dtypes: who takes the first one is right by luck where float32 comes first.
_WIDENED = ("add", "cat")


_LOW = ("float16", "bfloat16")


PRECISIONS = ("fp32", "autocast", "deck 000", "deck 002", "bf16")


OPTIMIZERS = ("sgd", "momentum", "adam", "adam 8 bit")


BITS = {"fp64": 64, "tf32": 32, "fp16": 16, "bf16": 16, "int8": 8}


_KINDS = ("leave", "near", "aligned", "small")


@case_source("autocast_dtype")
def operators(rng: Any) -> list[Case]:
    found = []
    for op in OPERATORS:
        for device_type in ("cpu", "cuda"):
            found += [_asked(rng, op, kind, device_type) for kind in _kinds(rng, op)]
    mixed = [found[int(i)] for i in rng.permutation(len(found))]
    mixed += [_beside_float64(rng, op, other, first) for op in _PROMOTED for other, first in _FLOAT64_BESIDE]
    mixed += [_in_the_other_short_type(rng, op) for op in _FROM_THE_OTHER]
    return [Case(given=one) for one in (mixed + [_wider_comes_second(rng, op) for op in _WIDENED])]


@case_source("bytes_per_parameter")
def recipes(rng: Any) -> list[Case]:
    plain = [(precision, "adam") for precision in PRECISIONS]
    plain += [("fp32", "adam 8 bit"), ("deck 002", "adam 8 bit"), ("fp32", "momentum"), ("bf16", "momentum")]
    drawn = [(str(rng.choice(PRECISIONS)), str(rng.choice(OPTIMIZERS))) for _ in range(10)]
    spread = [_spread(rng, *one, index) for index, one in enumerate(drawn)]
    # What comes and goes is whole even where everything else is split.
    partly = [_spread(rng, *one, index) for index, one in enumerate([*drawn[:4], ("autocast", "adam")])]
    for recipe in partly:
        recipe["trained"] = float(rng.choice([0.5, 0.25, 0.125]))
    # Eight bits are a byte, whatever the precision of the other state is.
    apart = [_recipe("autocast", "adam", zero=3, gpus=4), *partly, _recipe("bf16", "adam 8 bit")]
    # The master copy belongs to the precision: it is there where the optimizer keeps nothing.
    apart += [_recipe("deck 002", "sgd"), _recipe("deck 000", "sgd", zero=1, gpus=4)]
    cases = [*(_recipe(*one) for one in plain), *spread, *apart]
    return [Case(given=one) for one in cases]


@case_source("aligned_shapes")
def shapes(rng: Any) -> list[Case]:
    deck = [_ask(rng, shape, "fp16") for shape in ([64, 1024, 512], [5120, 1024, 33708])]
    drawn = [_ask(rng, _shape(rng, BITS[dtype], rule), dtype) for dtype in BITS for rule in (0, 16, 128)]
    padded = [_pad(rng, str(rng.choice(["tf32", "fp16", "bf16", "int8"])), kind) for kind in _KINDS * 2]
    two = [_pad_two(rng, dtype) for dtype in ("tf32", str(rng.choice(["fp16", "bf16", "int8"])))]
    return [Case.split(one, "dtype") for one in [*deck, *drawn, *padded, *two]]


def _kinds(rng: Any, op: str) -> list[str]:
    kinds = (
        ["float32", "low", "low"]
        if op in ("layer_norm", "softmax", "sum", "exp", "relu", "gelu")
        else ["float32", "low"]
    )
    if op in _MIXED:
        kinds += ["float32", "mixed"]
    if op in ("linear", "matmul", "conv2d", "scaled_dot_product_attention", "mse_loss", "cross_entropy"):
        kinds += ["float32"]
    return kinds + (["float64"] if rng.random() < 0.15 else [])


def _asked(rng: Any, op: str, kind: str, device_type: str) -> dict[str, Any]:
    dtype = str(rng.choice(_LOW))
    pair = {"float32": ["float32"] * 2, "low": [dtype] * 2, "float64": ["float64"] * 2}.get(kind)
    if pair is None:
        pair = [dtype, "float32"] if rng.random() < 0.5 else ["float32", dtype]
    return {"op": op, "inputs": pair if op in BINARY else pair[:1], "device_type": device_type, "dtype": dtype}


def _beside_float64(rng: Any, op: str, other: str, first: bool) -> dict[str, Any]:
    """An operator of two inputs, one of which is float64."""
    dtype = str(rng.choice(_LOW))
    pair = [dtype if other == "low" else other, "float64"]
    device_type = str(rng.choice(["cpu", "cuda"]))
    return {"op": op, "inputs": pair[::-1] if first else pair, "device_type": device_type, "dtype": dtype}


def _in_the_other_short_type(rng: Any, op: str) -> dict[str, Any]:
    other, dtype = (_LOW[int(i)] for i in rng.permutation(2))
    device_type = str(rng.choice(["cpu", "cuda"]))
    return {"op": op, "inputs": [other] * (2 if op in BINARY else 1), "device_type": device_type, "dtype": dtype}


def _wider_comes_second(rng: Any, op: str) -> dict[str, Any]:
    dtype, device_type = str(rng.choice(_LOW)), str(rng.choice(["cpu", "cuda"]))
    return {"op": op, "inputs": [dtype, "float32"], "device_type": device_type, "dtype": dtype}


def _recipe(precision: str, optimizer: str, *, zero: int = 0, gpus: int = 1, offload: bool = False) -> dict[str, Any]:
    whole = {"precision": precision, "optimizer": optimizer, "zero_stage": zero, "gpus": gpus, "offload": offload}
    return {**whole, "trained": 1.0}


def _spread(rng: Any, precision: str, optimizer: str, index: int) -> dict[str, Any]:
    stages = [0, 1, 1, 2, 2, 3, 3, 0, 1, int(rng.integers(4))]
    gpus = int(rng.choice([2, 4, 8, 64]))
    return _recipe(precision, optimizer, zero=stages[index], gpus=gpus, offload=index in (2, 4, 7, 8))


def _ask(rng: Any, shape: list[int], dtype: str) -> dict[str, Any]:
    return {"ask": "alignment", "dtype": dtype, "bits": BITS[dtype], "shape": [int(side) for side in shape]}


def _shape(rng: Any, bits: int, rule: int) -> list[int]:
    """Three sides that obey the rule of so many bytes (0: none) and nothing stricter."""
    narrow, sides = 128 // bits, [int(side) * 1024 // bits for side in rng.integers(2, 60, size=3)]
    odd = 2 * int(rng.integers(1, 30)) + 1
    if rule < 128:
        # Half of the narrow rule is where one who forgets the element's size is caught.
        sides[int(rng.integers(3))] = odd * (narrow if rule else int(rng.choice([1, max(1, narrow // 2)])))
    return sides


def _pad_two(rng: Any, dtype: str) -> dict[str, Any]:
    """Two sides that pay for different rules, each by itself, and for the smaller one together."""
    narrow = 128 // BITS[dtype]
    sides = [12 * narrow + narrow // 2, 4 * narrow + narrow // 2, int(rng.integers(6, 40)) * 8 * narrow]
    peak = float(rng.integers(100, 900)) * 1e12
    rates = {"none": rng.uniform(0.3, 0.5) * peak, "16 B": rng.uniform(0.66, 0.78) * peak, "128 B": peak}
    shape = [sides[int(i)] for i in rng.permutation(3)]
    return {"ask": "padding", "dtype": dtype, "bits": BITS[dtype], "shape": shape, "rates": rates}


def _pad(rng: Any, dtype: str, kind: str) -> dict[str, Any]:
    wide, narrow = 1024 // BITS[dtype], 128 // BITS[dtype]
    sides = [int(side) * wide for side in rng.integers(6, 40, size=3)]
    # Of one side: just above a rule, just below one, on the smaller rule only, just above a small multiple.
    odd = {"leave": wide + 1, "near": 9 * wide - 1, "aligned": 2 * wide + narrow, "small": wide + narrow - 1}[kind]
    sides[int(rng.integers(3))] = odd
    slow, middle = {
        "leave": (rng.uniform(0.93, 0.98), 0.99),
        "near": (rng.uniform(0.3, 0.6), rng.uniform(0.7, 0.9)),
        "aligned": (rng.uniform(0.3, 0.6), rng.uniform(0.5, 0.98)),
        "small": (rng.uniform(0.3, 0.6), rng.uniform(0.8, 0.95)),
    }[kind]
    peak = float(rng.integers(100, 900)) * 1e12
    rates = {"none": float(slow) * peak, "16 B": float(middle) * peak, "128 B": peak}
    return {"ask": "padding", "dtype": dtype, "bits": BITS[dtype], "shape": sides, "rates": rates}
