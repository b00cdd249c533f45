"""Mistakes about first layers: the sentence of each, and what right prices show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_ALL = "in all cases, and everything else is right"
SAID: dict[str, tuple[str, str, str]] = {
    "no bytes": (
        "bytes are left out of a layer's time",
        f"each layer takes only the time for its FLOP {_ALL}",
        "which layers are limited by memory?",
    ),
    "no FLOP": (
        "FLOP are left out of a layer's time",
        f"each layer takes only the time for its bytes {_ALL}",
        "which layers are limited by computing?",
    ),
    "real channels": (
        "the input channels of dense convolutions are not rounded up",
        f"their FLOP are those of the real input channels {_ALL}",
        "round the input channels up before you count FLOP",
    ),
    "outputs padded": (
        "output channels are rounded up as well as input channels",
        f"a dense convolution's FLOP include the padding of both {_ALL}",
        "which channels does the text round up to a multiple?",
    ),
    "depthwise padded": (
        "channels of depth-wise convolutions are rounded up",
        f"their FLOP include padded channels {_ALL}",
        "pad only dense convolutions, which run on tensor cores",
    ),
    "depthwise dense": (
        "depth-wise convolutions are counted as dense ones",
        f"their FLOP include a sum over all input channels {_ALL}",
        "count 2 FLOP for each output element and element of the kernel",
    ),
    "no inputs summed": (
        "a dense convolution's sum over input channels is left out",
        f"its FLOP do not grow with the input channels {_ALL}",
        "for each output element, sum over the kernel and over input channels",
    ),
    "a pair once": (
        "a multiplication and an addition are counted as one operation",
        f"each pair is counted once {_ALL}",
        "count 2 FLOP for each pair",
    ),
    "input pixels": (
        "FLOP are counted for input pixels instead of output pixels",
        f"every pixel of the input is counted {_ALL}",
        "count output elements: a stride skips pixels",
    ),
    "one side": (
        "FLOP include only one side of the kernel",
        f"FLOP grow with one side instead of two {_ALL}",
        "count kernel × kernel elements",
    ),
    "no weights": (
        "the bytes of the weights are left out",
        f"convolutions move only input and output {_ALL}",
        "how many weights does each kind have?",
    ),
    "no weights of conv": (
        "the weights of dense convolutions are left out",
        f"these layers move only input and output {_ALL}",
        "count kernel² weights for each pair of an input and an output channel",
    ),
    "no weights of depthwise": (
        "the weights of depth-wise convolutions are left out",
        f"these layers move only input and output {_ALL}",
        "count their weights too: they are few, but the table says `all`",
    ),
    "padded weights": (
        "the bytes of the weights are padded",
        f"dense convolutions move weights with their channels rounded up {_ALL}",
        "round channels up only for FLOP, not for bytes",
    ),
    "padded input and weights": (
        "the bytes of input and weights are padded",
        f"dense convolutions move both with their channels rounded up {_ALL}",
        "round channels up only for FLOP, not for bytes",
    ),
    "at least the multiple": (
        "channels above the multiple are not rounded up",
        f"a dense convolution's FLOP use the larger of its channels and the multiple {_ALL}",
        "round every number of channels up: 33 channels in multiples of 32 are 64",
    ),
    "no input": (
        "the bytes of the input are left out",
        f"convolutions move only weights and output {_ALL}",
        "what must a convolution read?",
    ),
    "4 bytes": (
        "elements are counted with 4 bytes instead of 2",
        f"every layer moves twice its bytes {_ALL}",
        "use 2 bytes per element",
    ),
    "1 byte": (
        "elements are counted with 1 byte instead of 2",
        f"every layer moves half of its bytes {_ALL}",
        "use 2 bytes per element",
    ),
    "padded bytes": (
        "the bytes of the input are padded",
        f"dense convolutions move the zeros of the padding {_ALL}",
        "count the bytes of the real input: zeros are computed, not moved",
    ),
    "se once": (
        "squeeze-and-excitation reads its input only once",
        f"one of the two reads is missing {_ALL}",
        "what must be known before the first element can be scaled?",
    ),
    "se average alone": (
        "squeeze-and-excitation only averages its input",
        f"the bytes for scaling it are missing {_ALL}",
        "what is read again, and what is written?",
    ),
    "norm twice": (
        "layer normalization reads its input twice",
        f"its bytes include a second read {_ALL}",
        "count one read: a position's channels fit into registers",
    ),
    "norm one way": (
        "layer normalization only reads, or only writes",
        f"its bytes are those of one tensor {_ALL}",
        "count both input and output",
    ),
    "unshuffle one way": (
        "rearranging pixels only reads, or only writes",
        f"its bytes are those of one tensor {_ALL}",
        "count both input and output",
    ),
    "unshuffle a view": (
        "rearranging pixels moves no bytes",
        f"it is counted as a view {_ALL}",
        "count a permuted copy, which is read and written",
    ),
    "folded moves": (
        "folded layers move bytes",
        f"normalization and activation read and write {_ALL}",
        "count no bytes for them: they run inside the convolution before them",
    ),
    "relu moves": (
        "an activation after a convolution moves bytes",
        f"it reads and writes {_ALL}",
        "count no bytes for it: it runs inside the convolution before it",
    ),
    "norm moves": (
        "batch normalization after a convolution moves bytes",
        f"it reads and writes {_ALL}",
        "count no bytes for it: it runs inside the convolution before it",
    ),
    "sides rounded down": (
        "the output sides of convolutions are rounded down",
        f"outputs are too small where the stride does not divide a side {_ALL}",
        "if you take every second pixel of 207, how many do you take?",
    ),
    "sides of conv rounded down": (
        "the output sides of dense convolutions are rounded down",
        f"their outputs are too small where the stride does not divide a side {_ALL}",
        "if you take every second pixel of 207, how many do you take?",
    ),
    "sides of depthwise rounded down": (
        "the output sides of depth-wise convolutions are rounded down",
        f"their outputs are too small where the stride does not divide a side {_ALL}",
        "if you take every second pixel of 207, how many do you take?",
    ),
    "kernel of conv once": (
        "only one side of a dense convolution's kernel is counted",
        f"its FLOP and weights grow with one side instead of two {_ALL}",
        "count kernel × kernel elements",
    ),
    "kernel of depthwise once": (
        "only one side of a depth-wise convolution's kernel is counted",
        f"its FLOP and weights grow with one side instead of two {_ALL}",
        "count kernel × kernel elements",
    ),
    "kernel once": (
        "only one side of the kernel is counted",
        f"FLOP and weights grow with one side instead of two {_ALL}",
        "count kernel × kernel elements",
    ),
    "multiple added": (
        "the multiple is added to the channels instead of rounding up",
        f"a dense convolution's FLOP use input channels plus the multiple {_ALL}",
        "round up to a multiple: 3 channels in multiples of 8 are 8",
    ),
}
HANDED: dict[str, tuple[str, str, str]] = {
    "shuffled": (
        "pixels are shuffled, not unshuffled",
        "the layer after an unshuffle gets fewer channels and larger sides in all cases",
        "pass on f² times the channels, with each side divided by f",
    ),
    "channels times f": (
        "an unshuffle passes on f times the channels instead of f² times",
        "the layer after it gets f times the channels of its input in all cases",
        "pass on as many elements as went in: both sides are divided by f",
    ),
    "channels stay": (
        "an unshuffle passes on too few channels",
        "the layer after it gets the channels of its input in all cases",
        "pass on as many elements as went in",
    ),
    "sides stay": (
        "an unshuffle passes on sides that are too large",
        "the layer after it gets the sides of its input in all cases",
        "pass on as many elements as went in",
    ),
    "nothing unshuffled": (
        "an unshuffle passes on its input's shape",
        "the layer after it gets this shape in all cases",
        "pass on f² times the channels, with each side divided by f",
    ),
}
SHAPES: tuple[tuple[str, str, str, str], ...] = (
    (
        "unshuffle",
        "an unshuffle passes on the wrong shape",
        "the layer after it gets a wrong input in all cases",
        "pass on f² times the channels, with each side divided by f",
    ),
    (
        "depthwise",
        "a depth-wise convolution passes on the wrong shape",
        "the layer after it gets a wrong input in all cases",
        "keep the channels, and divide the sides by the stride",
    ),
    (
        "conv",
        "a convolution passes on the wrong shape",
        "the layer after it gets a wrong input in all cases",
        "pass on its own channels, with sides divided by the stride and rounded up",
    ),
)
_Total = Callable[[Any, Any], float]
TOTALS: tuple[tuple[_Total, str, str, str], ...] = (
    (
        lambda alone, upto: upto["FLOP"][-1] + upto["bytes"][-1],
        "computing and moving do not overlap in your time",
        "both times of a layer are added in all cases",
        "use the longer of the two times",
    ),
    (
        lambda alone, upto: max(upto["FLOP"][-1], upto["bytes"][-1]),
        "the longer time is chosen for the whole stem, not for each layer",
        "the result is the longer of the stem's two times in all cases",
        "compare the two times within each layer: layers run one after the other",
    ),
)
