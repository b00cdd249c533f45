"""Mistakes about first layers: the sentence of each, and what right prices show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_ALL = "in all cases, and all else is right"
SAID: dict[str, tuple[str, str, str]] = {
    "no bytes": (
        "FLOP are no seconds: bytes are left out",
        f"layers took what their FLOP take {_ALL}",
        "which layers wait for memory?",
    ),
    "no FLOP": (
        "bytes are not all: FLOP are left out",
        f"layers took what their bytes take {_ALL}",
        "which layers compute?",
    ),
    "real channels": (
        "tensor cores compute a multiple of channels",
        f"a dense convolution's FLOPs were those of its real input channels {_ALL}",
        "round its input channels up before counting FLOPs",
    ),
    "outputs padded": (
        "input channels are padded, and output channels are not",
        f"both were {_ALL}",
        "the text speaks of a multiple: of which channels?",
    ),
    "depthwise padded": (
        "depth-wise convolutions are not padded",
        f"their channels were rounded up {_ALL}",
        "only dense ones run on tensor cores",
    ),
    "depthwise dense": (
        "a depth-wise convolution has one input channel for each output",
        f"it was counted as a dense one {_ALL}",
        "2 FLOP for each output element and element of the kernel",
    ),
    "no inputs summed": (
        "a dense convolution sums over all input channels",
        f"they were left out of its FLOP {_ALL}",
        "each output element is a sum over the kernel and over channels",
    ),
    "a pair once": (
        "a multiplication and an addition are two operations",
        f"each pair was counted once {_ALL}",
        "2 FLOP for each",
    ),
    "input pixels": (
        "FLOPs scale with the output, not the input",
        f"they were counted for every pixel of the input {_ALL}",
        "a stride skips pixels",
    ),
    "one side": ("both sides of a kernel count", f"FLOP went with one of them {_ALL}", "kernel × kernel elements"),
    "no weights": (
        "weights are moved too",
        f"convolutions moved input and output alone {_ALL}",
        "how many weights does each kind have?",
    ),
    "no weights of conv": (
        "a dense convolution moves its weights too",
        f"it moved input and output alone {_ALL}",
        "as many as kernel² for each pair of an input and an output channel",
    ),
    "no weights of depthwise": (
        "a depth-wise convolution moves its weights too",
        f"it moved input and output alone {_ALL}",
        "they are few, and the table says: all",
    ),
    "padded weights": (
        "weights are not padded in memory",
        f"a dense convolution's weights were moved with their channels rounded up {_ALL}",
        "no byte is padded: the multiple is for FLOP alone",
    ),
    "padded input and weights": (
        "neither input nor weights are padded in memory",
        f"a dense convolution's were both moved with their channels rounded up {_ALL}",
        "no byte is padded: the multiple is for FLOP alone",
    ),
    "at least the multiple": (
        "more channels than the multiple are rounded up too",
        f"a dense convolution's FLOPs were those of its channels, or of the multiple, whichever is more {_ALL}",
        "33 channels in multiples of 32 are 64",
    ),
    "no input": (
        "the input is moved too",
        f"convolutions moved weights and output alone {_ALL}",
        "what has to be read?",
    ),
    "4 bytes": ("an element has 2 bytes", f"4 were counted {_ALL}", "2-byte types"),
    "1 byte": ("an element has 2 bytes", f"1 was counted {_ALL}", "2-byte types"),
    "padded bytes": (
        "zeros of the padding are computed, and not moved",
        f"a dense convolution's input was padded {_ALL}",
        "bytes are those of the real input",
    ),
    "se once": (
        "squeeze-and-excitation reads its input twice",
        f"once was counted {_ALL}",
        "the average must be there before the first element can be scaled",
    ),
    "se average alone": (
        "squeeze-and-excitation scales what it has averaged",
        f"its average alone was counted {_ALL}",
        "what is read again, and what is written?",
    ),
    "norm twice": (
        "layer normalization reads its input once",
        f"twice was counted {_ALL}",
        "a position's channels fit into registers",
    ),
    "norm one way": ("layer normalization writes what it reads", f"one way was counted {_ALL}", "input and output"),
    "unshuffle one way": ("rearranging reads and writes", f"one way was counted {_ALL}", "input and output"),
    "unshuffle a view": (
        "rearranging pixels moves them",
        f"it was taken for a view {_ALL}",
        "a permuted copy is read and written",
    ),
    "folded moves": (
        "what is folded moves nothing",
        f"normalization and activation read and wrote {_ALL}",
        "they run inside the convolution before them",
    ),
    "relu moves": (
        "an activation after a convolution moves nothing",
        f"it read and wrote {_ALL}",
        "it runs inside the convolution before it",
    ),
    "norm moves": (
        "batch normalization after a convolution moves nothing",
        f"it read and wrote {_ALL}",
        "it runs inside the convolution before it",
    ),
    "sides rounded down": (
        "sides over the stride are rounded up",
        f"they were rounded down {_ALL}",
        "207 pixels at every second place: how many places?",
    ),
    "sides of conv rounded down": (
        "sides of a dense convolution are rounded up",
        f"they were rounded down {_ALL}",
        "207 pixels at every second place: how many places?",
    ),
    "sides of depthwise rounded down": (
        "sides of a depth-wise convolution are rounded up",
        f"they were rounded down {_ALL}",
        "207 pixels at every second place: how many places?",
    ),
    "kernel of conv once": (
        "a dense convolution's kernel has two sides",
        f"its FLOP and weights went with one of them {_ALL}",
        "kernel × kernel elements",
    ),
    "kernel of depthwise once": (
        "a depth-wise convolution's kernel has two sides",
        f"its FLOP and weights went with one of them {_ALL}",
        "kernel × kernel elements",
    ),
    "kernel once": (
        "a kernel has two sides",
        f"FLOP and weights went with one of them {_ALL}",
        "kernel × kernel elements",
    ),
    "multiple added": (
        "channels are rounded up to a multiple, and no more",
        f"the multiple was added to a dense convolution's input channels {_ALL}",
        "3 channels in multiples of 8 are 8",
    ),
}
HANDED: dict[str, tuple[str, str, str]] = {
    "shuffled": (
        "pixels are shuffled, not unshuffled",
        "what comes after an unshuffle has fewer channels and larger sides in all cases",
        "f² times the channels, each side over f",
    ),
    "channels times f": (
        "an unshuffle gives f² times the channels, not f times",
        "what comes after it has f times its input's channels in all cases",
        "as many elements come out as went in: both sides are over f",
    ),
    "channels stay": (
        "an unshuffle makes more channels",
        "what comes after it has its input's channels in all cases",
        "as many elements come out as went in",
    ),
    "sides stay": (
        "an unshuffle makes sides smaller",
        "what comes after it has its input's sides in all cases",
        "as many elements come out as went in",
    ),
    "nothing unshuffled": (
        "an unshuffle passes on the wrong shape than it gets",
        "what comes after it has its input's shape in all cases",
        "f² times the channels, each side over f",
    ),
}
SHAPES: tuple[tuple[str, str, str, str], ...] = (
    (
        "unshuffle",
        "an unshuffle passes on the wrong shape",
        "what comes after an unshuffle has another input in all cases",
        "f² times the channels, each side over f",
    ),
    (
        "depthwise",
        "a depth-wise convolution passes on the wrong shape",
        "what comes after it has another input in all cases",
        "its channels stay, its sides go with the stride",
    ),
    (
        "conv",
        "a convolution passes on the wrong shape",
        "what comes after it has another input in all cases",
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
