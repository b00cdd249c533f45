"""first_layers: stems of networks priced layer by layer, what is computed and what is moved asked apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from edl_labs.checks import close, exercise
from edl_labs.errors import Wrong
from edl_labs.units import byte_rate

_FREE = 1e40  # per second: what computes or moves at this rate costs nothing
_CLOSEST = 1e-13  # what free things still cost, in seconds
_PARTS = {"FLOP": {"byte_per_s": _FREE}, "bytes": {"flop_per_s": _FREE}}


@exercise("first_layers")
class FirstLayers:
    """`stem_s` of each layer alone, of the layers up to each, and of the stem; FLOP alone, bytes alone, and both."""

    def probe(self, student: Any, case: Any) -> Any:
        def asked(layers: Any, **changed: float) -> Any:
            stem = {"input": tuple(case["input"]), "layers": [{**one} for one in layers]}
            return student.stem_s(stem, {**case["machine"], **changed})

        layers = case["layers"]
        return {
            "alone": {part: [asked([one], **free) for one in layers] for part, free in _PARTS.items()},
            "upto": {
                part: [asked(layers[: at + 1], **free) for at in range(len(layers))] for part, free in _PARTS.items()
            },
            "seconds": asked(layers),
        }

    def compare(self, case: Any, got: Any, want: Any) -> None:
        for part in _PARTS:
            for layer, found, right in zip(case["layers"], got["alone"][part], want["alone"][part], strict=True):
                if not close(found, right, atol=_CLOSEST):
                    why = f"a {layer['kind']} as the only layer: {_as_counts(case, part, found)} for {_as_counts(case, part, right)}"
                    raise Wrong(f"a layer's {part} are others", why=why, next="its row of the table, column by column")
        for at, layer in enumerate(case["layers"]):
            for part in _PARTS:
                found, right = got["upto"][part][at], want["upto"][part][at]
                if not close(found, right, atol=_CLOSEST):
                    before = case["layers"][at - 1]["kind"]
                    why = f"alone every layer is right; with what comes before it, the {layer['kind']} behind a {before} is not"
                    then = "which channels, height and width does each kind hand on?"
                    raise Wrong("a layer does not get the shape that the one before puts out", why=why, next=then)
        if not close(got["seconds"], want["seconds"]):
            why = f"{got['seconds']:.4g} s for {want['seconds']:.4g} s; FLOP alone and bytes alone are right"
            raise Wrong("the two times of a layer are not put together", why=why, next="the longer of the two, layer by layer")

    def throughout(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """The slip that gives what all layers have alone; where these are right, the one that gives all stems."""
        asked = [(case, part, layer) for case in cases for part in _PARTS for layer in case["layers"]]
        found, right = ([price for one in all_ for part in _PARTS for price in one["alone"][part]] for all_ in (got, want))
        if not _alike(found, right):
            for slip, what, why, then in _SLIPS:
                if _alike(found, [slip(*one, price) for one, price in zip(asked, right, strict=True)]):
                    return Wrong(what, why=why, next=then)
            return None
        if not all(_alike(one["upto"][part], other["upto"][part]) for one, other in zip(got, want, strict=True) for part in _PARTS):
            for kind, what, why, then in _SHAPES:
                if all(_is_off_behind(kind, *one) for one in zip(cases, got, want, strict=True)):
                    return Wrong(what, why=why, next=then)
            return None
        for rule, what, why, then in _TOTALS:
            if _alike([one["seconds"] for one in got], [rule(one["alone"], one["upto"]) for one in want]):
                return Wrong(what, why=why, next=then)
        return None

    def show(self, case: Any) -> str:
        """The stem and the machine."""
        layers = ", ".join(_named(one) for one in case["layers"])
        machine = case["machine"]
        return (
            f"input {tuple(case['input'])}: {layers}; {machine['flop_per_s']:.3g} FLOP/s, "
            f"{byte_rate(machine['byte_per_s'])}, multiples of {machine['multiple']}"
        )

    def yours(self, case: Any, got: Any) -> str:
        """The stem's price."""
        return f"{got['seconds']:.4g} s in all"


def _named(layer: Any) -> str:
    fields = ", ".join(f"{name} {value}" for name, value in layer.items() if name != "kind")
    return f"{layer['kind']} ({fields})" if fields else str(layer["kind"])


def _as_counts(case: Any, part: str, took_s: float) -> str:
    rate = case["machine"]["flop_per_s" if part == "FLOP" else "byte_per_s"]
    return f"{took_s * rate:.4g} {part}"


def _alike(got: list[Any], want: list[Any]) -> bool:
    return all(close(one, other, atol=_CLOSEST) for one, other in zip(got, want, strict=True))


def _is_off_behind(kind: str, case: Any, got: Any, want: Any) -> bool:
    """Whether stems are right up to the layer behind the first one of this kind, and wrong from there on."""
    kinds = [one["kind"] for one in case["layers"]]
    right = [
        all(close(got["upto"][part][at], want["upto"][part][at], atol=_CLOSEST) for part in _PARTS)
        for at in range(len(kinds))
    ]
    if kind not in kinds[:-1]:
        return all(right)
    return right.index(False) > kinds.index(kind) if False in right else False


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


def _floored(case: Any, layer: Any) -> float:
    height, width = case["input"][2:]
    return (height // layer["stride"]) * (width // layer["stride"]) * _sides(case, layer) / (height * width)


def _weights(case: Any, layer: Any) -> float:
    inputs = case["input"][1]
    return float(layer["kernel"] ** 2 * inputs * (layer["channels"] if layer["kind"] == "conv" else 1))


_ALL = "in all cases, and all else is right"
_BOTH = "conv, depthwise"
_SLIPS: tuple[tuple[_Slip, str, str, str], ...] = (
    (_of("conv", "FLOP", lambda case, layer: 1 / _padded(case)), "tensor cores compute a multiple of channels", f"a dense convolution's FLOP were those of its real input channels {_ALL}", "round its input channels up before counting FLOP"),
    (_of("conv", "FLOP", lambda case, layer: case["machine"]["multiple"] * (layer["channels"] // -case["machine"]["multiple"] * -1) / layer["channels"]), "input channels are padded, and output channels are not", f"both were {_ALL}", "whose multiple does the text speak of?"),
    (_of("depthwise", "FLOP", lambda case, layer: _padded(case)), "depth-wise convolutions are not padded", f"their channels were rounded up {_ALL}", "only dense ones run on tensor cores"),
    (_of("depthwise", "FLOP", lambda case, layer: case["input"][1]), "a depth-wise convolution has one input channel for each output", f"it was counted as a dense one {_ALL}", "2 FLOP for each output element and element of the kernel"),
    (_of("conv", "FLOP", lambda case, layer: 1 / _padded(case) / case["input"][1]), "a dense convolution sums over all input channels", f"they were left out of its FLOP {_ALL}", "each output element is a sum over the kernel and over channels"),
    (_of(_BOTH, "FLOP", lambda case, layer: 0.5), "a multiplication and an addition are two operations", f"each pair was counted once {_ALL}", "2 FLOP for each"),
    (_of(_BOTH, "FLOP", _sides), "FLOP go with what is put out", f"they were counted for every pixel of the input {_ALL}", "a stride skips pixels"),
    (_of(_BOTH, "FLOP", lambda case, layer: 1 / layer["kernel"]), "a kernel has two sides", f"FLOP went with one of them {_ALL}", "kernel × kernel elements"),
    (_less(_BOTH, _weights), "weights are moved too", f"convolutions moved input and output alone {_ALL}", "how many weights does each kind have?"),
    (_less(_BOTH, lambda case, layer: _came(case)), "the input is moved too", f"convolutions moved weights and output alone {_ALL}", "what has to be read?"),
    (_of("conv, depthwise, unshuffle, layer_norm, se", "bytes", lambda case, layer: 2.0), "an element has 2 bytes", f"4 were counted {_ALL}", "2-byte types"),
    (_of("conv, depthwise, unshuffle, layer_norm, se", "bytes", lambda case, layer: 0.5), "an element has 2 bytes", f"1 was counted {_ALL}", "2-byte types"),
    (_less("conv", lambda case, layer: (1 - _padded(case)) * _came(case)), "zeros of the padding are computed, and not moved", f"a dense convolution's input was padded {_ALL}", "bytes are those of the real input"),
    (_of("se", "bytes", lambda case, layer: 2 / 3), "squeeze-and-excitation reads its input twice", f"once was counted {_ALL}", "the average must be there before the first element can be scaled"),
    (_of("se", "bytes", lambda case, layer: 1 / 3), "squeeze-and-excitation scales what it has averaged", f"its average alone was counted {_ALL}", "what is read again, and what is written?"),
    (_of("layer_norm", "bytes", lambda case, layer: 1.5), "layer normalization reads its input once", f"twice was counted {_ALL}", "a position's channels fit into registers"),
    (_of("layer_norm", "bytes", lambda case, layer: 0.5), "layer normalization writes what it reads", f"one way was counted {_ALL}", "input and output"),
    (_of("unshuffle", "bytes", lambda case, layer: 0.5), "rearranging reads and writes", f"one way was counted {_ALL}", "input and output"),
    (_of("unshuffle", "bytes", lambda case, layer: 0.0), "rearranging pixels moves them", f"it was taken for a view {_ALL}", "a permuted copy is read and written"),
    (_less("batch_norm, relu", lambda case, layer: -2 * _came(case)), "what is folded moves nothing", f"normalization and activation read and wrote {_ALL}", "they run inside the convolution before them"),
    (_less("relu", lambda case, layer: -2 * _came(case)), "an activation behind a convolution moves nothing", f"it read and wrote {_ALL}", "it runs inside the convolution before it"),
    (_less("batch_norm", lambda case, layer: -2 * _came(case)), "batch normalization behind a convolution moves nothing", f"it read and wrote {_ALL}", "it runs inside the convolution before it"),
)  # fmt: skip
_SHAPES: tuple[tuple[str, str, str, str], ...] = (
    ("unshuffle", "pixels are unshuffled the wrong way, or not at all", "what comes behind an unshuffle has another input in all cases", "f² times the channels, each side over f"),
    ("depthwise", "a depth-wise convolution hands on another shape", "what comes behind it has another input in all cases", "its channels stay, its sides go with the stride"),
    ("conv", "a convolution hands on another shape", "what comes behind it has another input in all cases", "its own channels, and sides over the stride, rounded up"),
)  # fmt: skip
_Total = Callable[[Any, Any], float]
_TOTALS: tuple[tuple[_Total, str, str, str], ...] = (
    (lambda alone, upto: upto["FLOP"][-1], "FLOP are no seconds: bytes are left out", "stems take what their FLOP take, in all cases", "which layers wait for memory?"),
    (lambda alone, upto: upto["bytes"][-1], "bytes alone are counted", "stems take what their bytes take, in all cases", "which layers compute?"),
    (lambda alone, upto: upto["FLOP"][-1] + upto["bytes"][-1], "computing and moving overlap", "both times of a layer were added, in all cases", "the longer of the two"),
    (lambda alone, upto: max(upto["FLOP"][-1], upto["bytes"][-1]), "each layer has a longer time of its own", "the longer one of the whole stem was taken, in all cases", "layers run one after the other: compare within each"),
)  # fmt: skip
