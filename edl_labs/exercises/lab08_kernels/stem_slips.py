"""Mistakes about first layers: the sentence of each, and what right prices show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_ALL = "everything else is right, but in all cases"
SAID: dict[str, tuple[str, str, str]] = {
    "no bytes": (
        "your function leaves bytes out of a layer's time",
        f"{_ALL}, each layer takes only the time for its FLOP",
        "which layers are limited by memory?",
    ),
    "no FLOP": (
        "your function leaves FLOP out of a layer's time",
        f"{_ALL}, each layer takes only the time for its bytes",
        "which layers are limited by computing?",
    ),
    "real channels": (
        "your function does not round up the input channels of dense convolutions",
        f"{_ALL}, your FLOP are those of the real input channels",
        "round the input channels up before you count FLOP",
    ),
    "outputs padded": (
        "your function rounds up output channels as well as input channels",
        f"{_ALL}, a dense convolution's FLOP include the padding of input and output channels",
        "which channels does the text round up to a multiple?",
    ),
    "depthwise padded": (
        "your function rounds up the channels of depth-wise convolutions",
        f"{_ALL}, the FLOP of these layers include padded channels",
        "pad only dense convolutions, which run on tensor cores",
    ),
    "depthwise dense": (
        "your function counts depth-wise convolutions as dense convolutions",
        f"{_ALL}, the FLOP of these layers include a sum over all input channels",
        "count 2 FLOP for each pair of an output element and an element of the kernel",
    ),
    "no inputs summed": (
        "your function leaves out a dense convolution's sum over input channels",
        f"{_ALL}, the FLOP of these layers do not grow with the input channels",
        "for each output element, sum over the kernel and over input channels",
    ),
    "a pair once": (
        "your function counts a multiplication and an addition as one operation",
        f"{_ALL}, your function counts 1 FLOP for each such pair",
        "count 2 FLOP for each pair",
    ),
    "input pixels": (
        "your function counts FLOP for input pixels instead of output pixels",
        f"{_ALL}, your function counts every pixel of the input",
        "count output elements: a stride skips pixels",
    ),
    "one side": (
        "your FLOP include only one side of the kernel",
        f"{_ALL}, your FLOP grow with one side of the kernel instead of two",
        "count kernel × kernel elements",
    ),
    "no weights": (
        "your function leaves out the bytes of the weights",
        f"{_ALL}, convolutions move only input and output",
        "how many weights does each kind have?",
    ),
    "no weights of conv": (
        "your function leaves out the weights of dense convolutions",
        f"{_ALL}, these layers move only input and output",
        "count kernel² weights for each pair of an input and an output channel",
    ),
    "no weights of depthwise": (
        "your function leaves out the weights of depth-wise convolutions",
        f"{_ALL}, these layers move only input and output",
        "count these weights as well: they are few, but the table says `all`",
    ),
    "padded weights": (
        "your function pads the bytes of the weights",
        f"{_ALL}, dense convolutions move weights with their channels rounded up",
        "round channels up only for FLOP, not for bytes",
    ),
    "padded input and weights": (
        "your function pads the bytes of input and weights",
        f"{_ALL}, dense convolutions move input and weights with their channels rounded up",
        "round channels up only for FLOP, not for bytes",
    ),
    "at least the multiple": (
        "your function does not round up channels above the multiple",
        f"{_ALL}, a dense convolution's FLOP use the larger of its channels and the multiple",
        "round every number of channels up: 33 channels in multiples of 32 are 64",
    ),
    "no input": (
        "your function leaves out the bytes of the input",
        f"{_ALL}, convolutions move only weights and output",
        "what must a convolution read?",
    ),
    "4 bytes": (
        "your function counts 4 bytes per element instead of 2",
        f"{_ALL}, every layer moves twice as many bytes as it should",
        "use 2 bytes per element",
    ),
    "1 byte": (
        "your function counts 1 byte per element instead of 2",
        f"{_ALL}, every layer moves half as many bytes as it should",
        "use 2 bytes per element",
    ),
    "padded bytes": (
        "your function pads the bytes of the input",
        f"{_ALL}, dense convolutions move the zeros of the padding",
        "count the bytes of the real input: zeros are computed, not moved",
    ),
    "se once": (
        "in your function, squeeze-and-excitation reads its input only once",
        f"{_ALL}, one of the two reads is missing",
        "what must be known before the first element can be scaled?",
    ),
    "se average alone": (
        "in your function, squeeze-and-excitation only averages its input",
        f"{_ALL}, the bytes for scaling the input are missing",
        "what is read again, and what is written?",
    ),
    "norm twice": (
        "in your function, layer normalization reads its input twice",
        f"{_ALL}, the bytes of this layer include a second read",
        "count one read: a position's channels fit into registers",
    ),
    "norm one way": (
        "in your function, layer normalization only reads, or only writes",
        f"{_ALL}, the bytes of this layer are those of one tensor",
        "count both input and output",
    ),
    "unshuffle one way": (
        "in your function, rearranging pixels only reads, or only writes",
        f"{_ALL}, the bytes of this layer are those of one tensor",
        "count both input and output",
    ),
    "unshuffle a view": (
        "in your function, rearranging pixels moves no bytes",
        f"{_ALL}, this layer is counted as a view",
        "count a permuted copy, which is read and written",
    ),
    "folded moves": (
        "in your function, folded layers move bytes",
        f"{_ALL}, normalization and activation read and write",
        "count no bytes for these layers: they run inside the convolution before them",
    ),
    "relu moves": (
        "in your function, an activation after a convolution moves bytes",
        f"{_ALL}, this layer reads and writes",
        "count no bytes for this layer: it runs inside the convolution before it",
    ),
    "norm moves": (
        "in your function, batch normalization after a convolution moves bytes",
        f"{_ALL}, this layer reads and writes",
        "count no bytes for this layer: it runs inside the convolution before it",
    ),
    "sides rounded down": (
        "your function rounds the output sides of convolutions down",
        f"{_ALL}, your outputs are too small if the stride does not divide a side",
        "if you take every second pixel of 207, how many do you take?",
    ),
    "sides of conv rounded down": (
        "your function rounds the output sides of dense convolutions down",
        f"{_ALL}, the outputs of these layers are too small if the stride does not divide a side",
        "if you take every second pixel of 207, how many do you take?",
    ),
    "sides of depthwise rounded down": (
        "your function rounds the output sides of depth-wise convolutions down",
        f"{_ALL}, the outputs of these layers are too small if the stride does not divide a side",
        "if you take every second pixel of 207, how many do you take?",
    ),
    "kernel of conv once": (
        "your function counts only one side of a dense convolution's kernel",
        f"{_ALL}, FLOP and weights of this layer grow with one side of the kernel instead of two",
        "count kernel × kernel elements",
    ),
    "kernel of depthwise once": (
        "your function counts only one side of a depth-wise convolution's kernel",
        f"{_ALL}, FLOP and weights of this layer grow with one side of the kernel instead of two",
        "count kernel × kernel elements",
    ),
    "kernel once": (
        "your function counts only one side of the kernel",
        f"{_ALL}, FLOP and weights grow with one side of the kernel instead of two",
        "count kernel × kernel elements",
    ),
    "multiple added": (
        "your function adds the multiple to the channels instead of rounding up",
        f"{_ALL}, a dense convolution's FLOP use input channels plus the multiple",
        "round up to a multiple: 3 channels in multiples of 8 are 8",
    ),
}
HANDED: dict[str, tuple[str, str, str]] = {
    "shuffled": (
        "your function shuffles pixels instead of unshuffling them",
        "in all cases, the layer after an unshuffle gets fewer channels and larger sides",
        "pass on f² times the channels, with each side divided by f",
    ),
    "channels times f": (
        "your unshuffle passes on f times the channels instead of f² times",
        "in all cases, the layer after the unshuffle gets f times the channels of the unshuffle's input",
        "pass on as many elements as went in: both sides are divided by f",
    ),
    "channels stay": (
        "your unshuffle passes on too few channels",
        "in all cases, the layer after the unshuffle gets the channels of the unshuffle's input",
        "pass on as many elements as went in",
    ),
    "sides stay": (
        "your unshuffle passes on sides that are too large",
        "in all cases, the layer after the unshuffle gets the sides of the unshuffle's input",
        "pass on as many elements as went in",
    ),
    "nothing unshuffled": (
        "your unshuffle passes on the shape of its input",
        "in all cases, the layer after the unshuffle gets this shape",
        "pass on f² times the channels, with each side divided by f",
    ),
}
SHAPES: tuple[tuple[str, str, str, str], ...] = (
    (
        "unshuffle",
        "your unshuffle passes on the wrong shape",
        "in all cases, the next layer gets a wrong input",
        "pass on f² times the channels, with each side divided by f",
    ),
    (
        "depthwise",
        "your depth-wise convolution passes on the wrong shape",
        "in all cases, the next layer gets a wrong input",
        "keep the channels, and divide the sides by the stride",
    ),
    (
        "conv",
        "your convolution passes on the wrong shape",
        "in all cases, the next layer gets a wrong input",
        "pass on its own channels, with sides divided by the stride and rounded up",
    ),
)
_Total = Callable[[Any, Any], float]
TOTALS: tuple[tuple[_Total, str, str, str], ...] = (
    (
        lambda alone, upto: upto["FLOP"][-1] + upto["bytes"][-1],
        "in your time, computing and moving do not overlap",
        "in all cases, your function adds both times of a layer",
        "use the longer of the two times",
    ),
    (
        lambda alone, upto: max(upto["FLOP"][-1], upto["bytes"][-1]),
        "your function chooses the longer time for the whole stem, not for each layer",
        "in all cases, your result is the longer of the stem's two times",
        "compare the two times within each layer: layers run one after the other",
    ),
)
