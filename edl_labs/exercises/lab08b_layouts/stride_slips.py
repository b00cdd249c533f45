"""Mistakes in strides: the sentence of each, and the placements that habits choose."""

from __future__ import annotations

from typing import Any

# Of a habit: what it is, why, and what to look at.
READ: dict[str, tuple[str, str, str]] = {
    "both is NCHW": (
        "tensors that have both layouts are all taken for NCHW",
        "the first layout that fits ends your search",
        "with one channel, or one pixel, both orders are the same bytes in the same places",
    ),
    "both is NHWC": (
        "tensors that have both layouts are all taken for NHWC",
        "the first layout that fits ends your search",
        "with one channel, or one pixel, both orders are the same bytes in the same places",
    ),
    "one channel alone": (
        "one pixel makes both layouts alike, as one channel does",
        "H and W of 1 leave the channels alone",
        "which dimensions have more than one index?",
    ),
    "one pixel alone": (
        "one channel makes both layouts alike, as one pixel does",
        "C of 1 leaves H and W alone, in the same order",
        "which dimensions have more than one index?",
    ),
    "innermost": (
        "a stride of 1 alone does not make a layout",
        "tensors with gaps, or with an expanded dimension, have one too",
        "each stride is the product of all sizes further in",
    ),
    "every stride": (
        "the stride of a dimension with one element is compared",
        "its only index is 0, so any stride will do: torch leaves arbitrary ones there",
        "skip dimensions of size 1",
    ),
    "from the shape": (
        "the layout is taken from the shape, not from the strides",
        "a tensor's shape is N, C, H, W in either layout: channels_last changes only the strides",
        "compare the strides with the products of the sizes further in",
    ),
}
COPIED: dict[str, tuple[str, str, str]] = {
    "no weights": (
        "weights have a layout too, and yours are never copied",
        "a convolution in NHWC reads its weight in that order as well; it is stored in NCHW here",
        "name them 'conv1.weight'; kernels of one element have both layouts",
    ),
    "one pass": (
        "a copy is counted as one pass: it reads and it writes",
        "the existing form is read from memory, and the wanted one is written to it",
        "add both; they differ where channels are padded",
    ),
    "each reader": (
        "a tensor is copied again for each of its readers",
        "two readers of one form share one copy",
        "collect the wanted forms of a tensor in a set",
    ),
    "unpadded": (
        "channels are not padded for convolutions",
        "a convolution reads 4 channels or a multiple of 8: an image of 3 is copied to 4, and its weight with it",
        "the wanted form has a layout and a number of channels",
    ),
    **dict.fromkeys(
        ("padded to 8", "all padded to 8"),
        (
            "up to 4 channels are padded to 8",
            "[002]: special kernels take C = 4; else it is a multiple of 8",
            "1 to 4 channels become 4",
        ),
    ),
    "padded to 4": (
        "more than 4 channels are padded to a multiple of 4",
        "[002]: C = 4 or a multiple of 8",
        "5 to 8 channels become 8, 9 to 16 become 16",
    ),
    "elements": ("elements are counted, and they have 2 bytes each", "all of it is in fp16", "times 2"),
    "last form": (
        "a tensor that is wanted in two forms is copied twice",
        "one of its copies alone is in your sum: another one took its place",
        "add the bytes of all forms of a tensor",
    ),
    "layout alone": (
        "of two copies of a tensor, one is missing in your sum",
        "one was counted for each layout, with the channels that a convolution wants; or one took the other's place",
        "an output takes the channels as they are, and cannot use a padded copy: add the bytes of all forms",
    ),
    "one side of 1": (
        "an image of one row has two layouts",
        "H = 1 or W = 1 was taken for one pixel: the other side is still before or after the channels",
        "both layouts are the same where there is one channel, or one pixel in all",
    ),
    "rest added": (
        "channels are not rounded up to a multiple of 8",
        "c + c % 8 was counted; that is a multiple for some c, and 18 for 17",
        "how many are missing to the next multiple?",
    ),
    "few unpadded": (
        "fewer than 4 channels are padded too",
        "up to 4 they stayed as they are",
        "an image of 3 channels is read with 4",
    ),
    "reads padded": (
        "a copy reads the existing elements, without the padding",
        "the padded channels were counted twice, in what is read as well",
        "only what is written has the wanted channels",
    ),
    "weights unpadded": (
        "a weight is padded with the input that it meets",
        "the channels of inputs are padded, and those of weights are not",
        "K x C x R x S: the weight's C becomes the input's",
    ),
    **dict.fromkeys(
        ("all padded", "any padded"),
        (
            "only convolutions pad channels",
            "the other operators' inputs were padded too",
            "they take channels as they are",
        ),
    ),
}


def _everywhere(layout: str) -> Any:
    def aim(net: Any, copied: Any, every: Any) -> Any:
        return max(every, key=lambda one: sum(value == layout for value in one.values()))

    return aim


def _most_bytes(net: Any, copied: Any, every: Any) -> Any:
    return every[max(range(len(every)), key=lambda at: sum(copied[at].values()))]


def _handed_on(net: Any, copied: Any, every: Any) -> Any:
    """Each free node takes the layout of what it reads first."""
    fixed = {name: layout for name, layout in every[0].items() if all(one[name] == layout for one in every)}
    found: dict[str, str] = {}
    for node in net:
        found[node["name"]] = fixed.get(node["name"]) or found[node["inputs"][0]]
    return found


def _fewest_copies(net: Any, copied: Any, every: Any) -> Any:
    return every[min(range(len(every)), key=lambda at: len(copied[at]))]


PLACEMENTS = (
    (
        _everywhere("NCHW"),
        "every layer goes back to NCHW: convolutions convert one by one",
        "layers between two convolutions can stay in NHWC, and nothing is copied there",
        "price all placements of the free nodes",
    ),
    (
        _everywhere("NHWC"),
        "NHWC everywhere is not the cheapest placement",
        "before a node that needs NCHW, it may be cheaper to copy a smaller tensor earlier in the chain",
        "price all placements of the free nodes",
    ),
    (
        _handed_on,
        "each node takes its input's layout, which is what PyTorch does",
        "that copies as late as possible, whatever the size of the tensor there",
        "where on the way is the tensor smallest?",
    ),
    (
        _fewest_copies,
        "the fewest copies are not the fewest bytes",
        "that placement copies the fewest tensors, whatever their sizes",
        "add up the bytes of all copies, and take the least sum",
    ),
    (
        _most_bytes,
        "that placement copies the most bytes of all",
        "the question is a minimum",
        "min, not max",
    ),
)
