"""What known mistakes about first layers give instead of a right price: digests of it are all that cases hold."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from edl_labs.exercises.lab08_kernels.first_layer_prices import CLOSEST, PARTS
from edl_labs.exercises.slip_digests import digest

_Shape = tuple[float, float, float, float]
_Slip = Callable[[Any, str, Any, float], float]


def _of(kind: str, part: str, factor: Callable[[Any, Any], float]) -> _Slip:
    """The right price times a factor of case and layer, in one part of one kind (or of several)."""
    kinds, parts = kind.split(", "), part.split(", ")
    return lambda case, asked, layer, right: (
        right * factor(case, layer) if layer["kind"] in kinds and asked in parts else right
    )


def _less(kind: str, elements: Callable[[Any, Any], float]) -> _Slip:
    """The right price less the time of these elements; a negative number of them is too much."""

    def slip(case: Any, asked: str, layer: Any, right: float) -> float:
        if layer["kind"] not in kind.split(", ") or asked != "bytes":
            return right
        return right - 2 * elements(case, layer) / case["machine"]["byte_per_s"]

    return slip


def _came(case: Any, layer: Any = None) -> int:
    batch, channels, height, width = case["input"]
    return int(batch * channels * height * width)


def _padded(case: Any) -> float:
    channels, step = case["input"][1], case["machine"]["multiple"]
    return float(-(-channels // step) * step / channels)


def _sides(case: Any, layer: Any) -> float:
    """Pixels of the input for each that is put out."""
    height, width = case["input"][2:]
    return float(height * width / (-(-height // layer["stride"]) * -(-width // layer["stride"])))


def _weights(case: Any, layer: Any) -> float:
    inputs = case["input"][1]
    return float(layer["kernel"] ** 2 * inputs * (layer["channels"] if layer["kind"] == "conv" else 1))


_BOTH = "conv, depthwise"
_EVERY = f"{_BOTH}, unshuffle, layer_norm, se"


def _floored(*kinds: str) -> _Slip:
    """Sides over strides rounded down."""

    def slip(case: Any, asked: str, layer: Any, right: float) -> float:
        if layer["kind"] not in kinds:
            return right
        batch, channels, height, width = case["input"]
        due, less = (
            math.prod(side(one / layer["stride"]) for one in (height, width)) for side in (math.ceil, math.floor)
        )
        if asked == "FLOP":
            return right * less / due
        return right - 2 * batch * layer.get("channels", channels) * (due - less) / case["machine"]["byte_per_s"]

    return slip


def _one_side(*kinds: str) -> _Slip:
    """kernel for kernel², in FLOP and in weights."""

    def slip(case: Any, asked: str, layer: Any, right: float) -> float:
        if layer["kind"] not in kinds:
            return right
        if asked == "FLOP":
            return right / layer["kernel"]
        return right - 2 * _weights(case, layer) * (1 - 1 / layer["kernel"]) / case["machine"]["byte_per_s"]

    return slip


def _multiple_added(case: Any, layer: Any) -> float:
    return (case["input"][1] + case["machine"]["multiple"]) / case["input"][1] / _padded(case)


def after(layer: Any, shape: _Shape) -> _Shape:
    """What a layer puts out: batch, channels, height, width."""
    batch, channels, height, width = shape
    if layer["kind"] == "unshuffle":
        return batch, channels * layer["factor"] ** 2, height // layer["factor"], width // layer["factor"]
    stride = layer.get("stride", 1)
    return batch, layer.get("channels", channels), -(-height // stride), -(-width // stride)


def layer_s(layer: Any, shape: _Shape, machine: Any) -> float:
    """The longer of a layer's two times."""
    came, went = math.prod(shape), math.prod(after(layer, shape))
    flop, elements = 0, came + went
    if layer["kind"] in ("batch_norm", "relu"):
        return 0.0
    if layer["kind"] == "se":
        elements += came
    if layer["kind"] in ("conv", "depthwise"):
        inputs = shape[1] if layer["kind"] == "conv" else 1
        elements += layer["kernel"] ** 2 * inputs * after(layer, shape)[1]
        padded = math.ceil(inputs / machine["multiple"]) * machine["multiple"] if layer["kind"] == "conv" else 1
        flop = 2 * went * padded * layer["kernel"] ** 2
    return float(max(flop / machine["flop_per_s"], 2 * elements / machine["byte_per_s"]))


def _upto(case: Any, part: str, shapes: Callable[[Any, _Shape], _Shape]) -> Iterator[float]:
    """The time of the layers up to each, where layers hand on these shapes."""
    shape, total, machine = tuple(case["input"]), 0.0, {**case["machine"], **PARTS[part]}
    for layer in case["layers"]:
        total += layer_s(layer, shape, machine)
        yield total
        shape = shapes(layer, shape)


def _unshuffling(factors: Callable[[int], tuple[float, float]]) -> Callable[[Any, _Shape], _Shape]:
    """An unshuffle that hands on other channels and sides: times these."""

    def shapes(layer: Any, shape: _Shape) -> _Shape:
        if layer["kind"] != "unshuffle":
            return after(layer, shape)
        wide, side = factors(layer["factor"])
        return shape[0], shape[1] * wide, shape[2] * side, shape[3] * side

    return shapes


def slips(case: Any) -> dict[str, str]:
    """Of each slip, the digest of its prices of all layers alone."""
    every = [
        (part, layer, layer_s(layer, tuple(case["input"]), {**case["machine"], **free}))
        for part, free in PARTS.items()
        for layer in case["layers"]
    ]
    return {
        name: digest((slip(case, part, layer, right) for part, layer, right in every), least=CLOSEST)
        for name, slip in _SLIPS.items()
    }


def handing_on(case: Any) -> dict[str, str]:
    """Of each slip about shapes, the digest of its prices of the layers up to each."""
    return {
        name: digest((price for part in PARTS for price in _upto(case, part, shapes)), least=CLOSEST)
        for name, shapes in _SHAPES.items()
    }


_SHAPES: dict[str, Callable[[Any, _Shape], _Shape]] = {
    "shuffled": _unshuffling(lambda factor: (1 / factor**2, factor)),
    "channels times f": _unshuffling(lambda factor: (factor, 1 / factor)),
    "channels stay": _unshuffling(lambda factor: (1, 1 / factor)),
    "sides stay": _unshuffling(lambda factor: (factor**2, 1)),
    "nothing unshuffled": _unshuffling(lambda factor: (1, 1)),
}
_SLIPS: dict[str, _Slip] = {
    "no bytes": _of(_EVERY, "bytes", lambda case, layer: 0.0),
    "no FLOP": _of(_EVERY, "FLOP", lambda case, layer: 0.0),
    "real channels": _of("conv", "FLOP", lambda case, layer: 1 / _padded(case)),
    "outputs padded": _of(
        "conv",
        "FLOP",
        lambda case, layer: (
            case["machine"]["multiple"] * (layer["channels"] // -case["machine"]["multiple"] * -1) / layer["channels"]
        ),
    ),
    "depthwise padded": _of("depthwise", "FLOP", lambda case, layer: _padded(case)),
    "depthwise dense": _of("depthwise", "FLOP", lambda case, layer: case["input"][1]),
    "no inputs summed": _of("conv", "FLOP", lambda case, layer: 1 / _padded(case) / case["input"][1]),
    "a pair once": _of(_BOTH, "FLOP", lambda case, layer: 0.5),
    "input pixels": _of(_BOTH, "FLOP", _sides),
    "one side": _of(_BOTH, "FLOP", lambda case, layer: 1 / layer["kernel"]),
    "no weights": _less(_BOTH, _weights),
    "no weights of conv": _less("conv", _weights),
    "no weights of depthwise": _less("depthwise", _weights),
    "padded weights": _less("conv", lambda case, layer: (1 - _padded(case)) * _weights(case, layer)),
    "padded input and weights": _less(
        "conv", lambda case, layer: (1 - _padded(case)) * (_weights(case, layer) + _came(case))
    ),
    "at least the multiple": _of(
        "conv",
        "FLOP",
        lambda case, layer: max(1.0, case["machine"]["multiple"] / case["input"][1]) / _padded(case),
    ),
    "no input": _less(_BOTH, lambda case, layer: _came(case)),
    "4 bytes": _of(_EVERY, "bytes", lambda case, layer: 2.0),
    "1 byte": _of(_EVERY, "bytes", lambda case, layer: 0.5),
    "padded bytes": _less("conv", lambda case, layer: (1 - _padded(case)) * _came(case)),
    "se once": _of("se", "bytes", lambda case, layer: 2 / 3),
    "se average alone": _of("se", "bytes", lambda case, layer: 1 / 3),
    "norm twice": _of("layer_norm", "bytes", lambda case, layer: 1.5),
    "norm one way": _of("layer_norm", "bytes", lambda case, layer: 0.5),
    "unshuffle one way": _of("unshuffle", "bytes", lambda case, layer: 0.5),
    "unshuffle a view": _of("unshuffle", "bytes", lambda case, layer: 0.0),
    "folded moves": _less("batch_norm, relu", lambda case, layer: -2 * _came(case)),
    "relu moves": _less("relu", lambda case, layer: -2 * _came(case)),
    "norm moves": _less("batch_norm", lambda case, layer: -2 * _came(case)),
    "sides rounded down": _floored("conv", "depthwise"),
    "sides of conv rounded down": _floored("conv"),
    "sides of depthwise rounded down": _floored("depthwise"),
    "kernel once": _one_side("conv", "depthwise"),
    "kernel of conv once": _one_side("conv"),
    "kernel of depthwise once": _one_side("depthwise"),
    "multiple added": _of("conv", "FLOP", _multiple_added),
}
