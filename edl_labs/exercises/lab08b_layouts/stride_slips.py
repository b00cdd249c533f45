"""Mistakes in strides: the sentence of each, and the placements that habits choose."""

from __future__ import annotations

from typing import Any

# Of a habit: what it is, why, and what to look at.
READ: dict[str, tuple[str, str, str]] = {
    "both is NCHW": (
        "your function reports NCHW for all tensors that have both layouts",
        "your function never returned 'both'",
        "test both layouts: with one channel or one pixel, both orders put the same bytes in the same places",
    ),
    "both is NHWC": (
        "your function reports NHWC for all tensors that have both layouts",
        "your function never returned 'both'",
        "test both layouts: with one channel or one pixel, both orders put the same bytes in the same places",
    ),
    "one channel alone": (
        "your function reports both layouts only for tensors with one channel",
        "but with H = W = 1, only the channels are left, in the same order in both layouts",
        "which dimensions have more than one index?",
    ),
    "one pixel alone": (
        "your function reports both layouts only for tensors with one pixel",
        "but with C = 1, only H and W are left, in the same order in both layouts",
        "which dimensions have more than one index?",
    ),
    "innermost": (
        "your function derives the layout only from the stride that is 1",
        "but tensors with gaps or an expanded dimension can have such a stride as well",
        "check every stride: each is the product of the sizes of all inner dimensions",
    ),
    "every stride": (
        "your function compares the stride of a dimension with one element",
        "but the only index of this dimension is 0: its stride has no effect, and torch leaves arbitrary values there",
        "skip dimensions of size 1",
    ),
    "from the shape": (
        "your function takes the layout from the shape, not from the strides",
        "but a tensor's shape is N, C, H, W in either layout: channels_last changes only the strides",
        "compare each stride with the product of the sizes of all inner dimensions",
    ),
}
COPIED: dict[str, tuple[str, str, str]] = {
    "no weights": (
        "your answer never copies weights",
        "but here, weights are stored in NCHW, and a convolution in NHWC reads its weight in NHWC",
        "add the weights, with names like 'conv1.weight'; kernels with a single element have both layouts",
    ),
    "one pass": (
        "your answer counts only the bytes that a copy writes",
        "but a copy also reads the existing form from memory",
        "add the bytes that are read and the bytes that are written: their numbers differ where channels are padded",
    ),
    "each reader": (
        "your answer copies a tensor again for each of its readers",
        "but readers that need the same form share one copy",
        "collect the forms that a tensor's readers need in a set",
    ),
    "unpadded": (
        "your answer does not pad channels for convolutions",
        "but a convolution reads 4 channels or a multiple of 8, and pads its weight's channels in the same way",
        "give each form a layout and a number of channels",
    ),
    **dict.fromkeys(
        ("padded to 8", "all padded to 8"),
        (
            "your answer pads up to 4 channels to 8",
            "but the kernels of convolutions need C = 4 or a multiple of 8",
            "pad 1 to 4 channels to 4",
        ),
    ),
    "padded to 4": (
        "your answer pads more than 4 channels to a multiple of 4",
        "but the kernels of convolutions need C = 4 or a multiple of 8",
        "pad 5 to 8 channels to 8, and 9 to 16 channels to 16",
    ),
    "elements": (
        "your answer counts elements instead of bytes",
        "but all tensors are in fp16, so elements and bytes differ",
        "count 2 bytes per element",
    ),
    "last form": (
        "your answer counts only one copy of a tensor",
        "but a tensor that is needed in two forms is copied twice",
        "add the bytes of all forms of a tensor",
    ),
    "layout alone": (
        "your answer distinguishes forms of a tensor only by their layouts",
        "your answer counts only one copy for each layout, with the channels that a convolution needs",
        "add the bytes of all forms: an output takes its channels unpadded, so it cannot use a padded copy",
    ),
    "one side of 1": (
        "your answer treats an image with a single row or column as having both layouts",
        "but if only H = 1 or only W = 1, the other side still comes before or after the channels",
        "treat both layouts as the same only with one channel, or with a single pixel",
    ),
    "rest added": (
        "your answer does not round channels up to a multiple of 8",
        "your answer uses c + c % 8, which is a multiple of 8 only for some c: 17 becomes 18",
        "how many channels are missing up to the next multiple of 8?",
    ),
    "few unpadded": (
        "your answer does not pad fewer than 4 channels",
        "but a convolution reads an image with 3 channels as an image with 4 channels",
        "pad 1 to 4 channels to 4",
    ),
    "reads padded": (
        "your answer counts padded channels as read",
        "but a copy reads only the existing elements, without the padding",
        "count the padded channels only in what is written",
    ),
    "weights unpadded": (
        "your answer does not pad the channels of weights",
        "it pads the channels of inputs, but not those of the weights that the inputs are multiplied by",
        "pad C in the weight's shape K x C x R x S as in the input",
    ),
    **dict.fromkeys(
        ("all padded", "any padded"),
        (
            "your answer pads channels for other operators as well",
            "but only convolutions pad channels",
            "let the other operators take channels without padding",
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
        "in your placement, every free node runs in NCHW, so each convolution converts on its own",
        "but nodes between two convolutions can stay in NHWC, so that nothing is copied there",
        "compute the bytes of all placements of the free nodes",
    ),
    (
        _everywhere("NHWC"),
        "your placement uses NHWC everywhere, which is not the cheapest placement",
        "before a node that needs NCHW, it may be cheaper to copy a smaller tensor earlier in the chain",
        "compute the bytes of all placements of the free nodes",
    ),
    (
        _handed_on,
        "in your placement, each node takes its input's layout, as in PyTorch",
        "this copies as late as possible, even if the tensor is large at that point",
        "where on the way is the tensor smallest?",
    ),
    (
        _fewest_copies,
        "your placement has the fewest copies, but not the fewest bytes",
        "your placement copies the fewest tensors, even if these tensors are large",
        "add up the bytes of all copies, and choose the smallest sum",
    ),
    (
        _most_bytes,
        "your placement copies the most bytes of all placements",
        "but the text asks for the fewest bytes",
        "use min instead of max",
    ),
)
