"""Mistakes about first layers: what each would give in place of a layer's right price, and its sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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


_ALL = "in all cases, and all else is right"
_BOTH = "conv, depthwise"
_EVERY = f"{_BOTH}, unshuffle, layer_norm, se"
SLIPS: tuple[tuple[_Slip, str, str, str], ...] = (
    (
        _of(_EVERY, "bytes", lambda case, layer: 0.0),
        "FLOP are no seconds: bytes are left out",
        f"layers took what their FLOP take {_ALL}",
        "which layers wait for memory?",
    ),
    (
        _of(_EVERY, "FLOP", lambda case, layer: 0.0),
        "bytes are not all: FLOP are left out",
        f"layers took what their bytes take {_ALL}",
        "which layers compute?",
    ),
    (
        _of("conv", "FLOP", lambda case, layer: 1 / _padded(case)),
        "tensor cores compute a multiple of channels",
        f"a dense convolution's FLOP were those of its real input channels {_ALL}",
        "round its input channels up before counting FLOP",
    ),
    (
        _of(
            "conv",
            "FLOP",
            lambda case, layer: (
                case["machine"]["multiple"]
                * (layer["channels"] // -case["machine"]["multiple"] * -1)
                / layer["channels"]
            ),
        ),
        "input channels are padded, and output channels are not",
        f"both were {_ALL}",
        "whose multiple does the text speak of?",
    ),
    (
        _of("depthwise", "FLOP", lambda case, layer: _padded(case)),
        "depth-wise convolutions are not padded",
        f"their channels were rounded up {_ALL}",
        "only dense ones run on tensor cores",
    ),
    (
        _of("depthwise", "FLOP", lambda case, layer: case["input"][1]),
        "a depth-wise convolution has one input channel for each output",
        f"it was counted as a dense one {_ALL}",
        "2 FLOP for each output element and element of the kernel",
    ),
    (
        _of("conv", "FLOP", lambda case, layer: 1 / _padded(case) / case["input"][1]),
        "a dense convolution sums over all input channels",
        f"they were left out of its FLOP {_ALL}",
        "each output element is a sum over the kernel and over channels",
    ),
    (
        _of(_BOTH, "FLOP", lambda case, layer: 0.5),
        "a multiplication and an addition are two operations",
        f"each pair was counted once {_ALL}",
        "2 FLOP for each",
    ),
    (
        _of(_BOTH, "FLOP", _sides),
        "FLOP go with what is put out",
        f"they were counted for every pixel of the input {_ALL}",
        "a stride skips pixels",
    ),
    (
        _of(_BOTH, "FLOP", lambda case, layer: 1 / layer["kernel"]),
        "a kernel has two sides",
        f"FLOP went with one of them {_ALL}",
        "kernel × kernel elements",
    ),
    (
        _less(_BOTH, _weights),
        "weights are moved too",
        f"convolutions moved input and output alone {_ALL}",
        "how many weights does each kind have?",
    ),
    (
        _less(_BOTH, lambda case, layer: _came(case)),
        "the input is moved too",
        f"convolutions moved weights and output alone {_ALL}",
        "what has to be read?",
    ),
    (
        _of(_EVERY, "bytes", lambda case, layer: 2.0),
        "an element has 2 bytes",
        f"4 were counted {_ALL}",
        "2-byte types",
    ),
    (
        _of(_EVERY, "bytes", lambda case, layer: 0.5),
        "an element has 2 bytes",
        f"1 was counted {_ALL}",
        "2-byte types",
    ),
    (
        _less("conv", lambda case, layer: (1 - _padded(case)) * _came(case)),
        "zeros of the padding are computed, and not moved",
        f"a dense convolution's input was padded {_ALL}",
        "bytes are those of the real input",
    ),
    (
        _of("se", "bytes", lambda case, layer: 2 / 3),
        "squeeze-and-excitation reads its input twice",
        f"once was counted {_ALL}",
        "the average must be there before the first element can be scaled",
    ),
    (
        _of("se", "bytes", lambda case, layer: 1 / 3),
        "squeeze-and-excitation scales what it has averaged",
        f"its average alone was counted {_ALL}",
        "what is read again, and what is written?",
    ),
    (
        _of("layer_norm", "bytes", lambda case, layer: 1.5),
        "layer normalization reads its input once",
        f"twice was counted {_ALL}",
        "a position's channels fit into registers",
    ),
    (
        _of("layer_norm", "bytes", lambda case, layer: 0.5),
        "layer normalization writes what it reads",
        f"one way was counted {_ALL}",
        "input and output",
    ),
    (
        _of("unshuffle", "bytes", lambda case, layer: 0.5),
        "rearranging reads and writes",
        f"one way was counted {_ALL}",
        "input and output",
    ),
    (
        _of("unshuffle", "bytes", lambda case, layer: 0.0),
        "rearranging pixels moves them",
        f"it was taken for a view {_ALL}",
        "a permuted copy is read and written",
    ),
    (
        _less("batch_norm, relu", lambda case, layer: -2 * _came(case)),
        "what is folded moves nothing",
        f"normalization and activation read and wrote {_ALL}",
        "they run inside the convolution before them",
    ),
    (
        _less("relu", lambda case, layer: -2 * _came(case)),
        "an activation behind a convolution moves nothing",
        f"it read and wrote {_ALL}",
        "it runs inside the convolution before it",
    ),
    (
        _less("batch_norm", lambda case, layer: -2 * _came(case)),
        "batch normalization behind a convolution moves nothing",
        f"it read and wrote {_ALL}",
        "it runs inside the convolution before it",
    ),
)
SHAPES: tuple[tuple[str, str, str, str], ...] = (
    (
        "unshuffle",
        "pixels are unshuffled the wrong way, or not at all",
        "what comes behind an unshuffle has another input in all cases",
        "f² times the channels, each side over f",
    ),
    (
        "depthwise",
        "a depth-wise convolution hands on another shape",
        "what comes behind it has another input in all cases",
        "its channels stay, its sides go with the stride",
    ),
    (
        "conv",
        "a convolution hands on another shape",
        "what comes behind it has another input in all cases",
        "its own channels, and sides over the stride, rounded up",
    ),
)
_Total = Callable[[Any, Any], float]
TOTALS: tuple[tuple[_Total, str, str, str], ...] = (
    (
        lambda alone, upto: upto["FLOP"][-1] + upto["bytes"][-1],
        "computing and moving overlap",
        "both times of a layer were added, in all cases",
        "the longer of the two",
    ),
    (
        lambda alone, upto: max(upto["FLOP"][-1], upto["bytes"][-1]),
        "each layer has a longer time of its own",
        "the longer one of the whole stem was taken, in all cases",
        "layers run one after the other: compare within each",
    ),
)
