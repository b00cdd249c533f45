"""Mistakes in strides: the sentence of each, and the placements that habits choose."""

from __future__ import annotations

from typing import Any

# Of a habit: what it is, why, and what to look at.
READ: dict[str, tuple[str, str, str]] = {
    "both is NCHW": (
        "all tensors that have both layouts are reported as NCHW",
        "your function never returned 'both'",
        "test both layouts: with one channel or one pixel, both orders put the same bytes in the same places",
    ),
    "both is NHWC": (
        "all tensors that have both layouts are reported as NHWC",
        "your function never returned 'both'",
        "test both layouts: with one channel or one pixel, both orders put the same bytes in the same places",
    ),
    "one channel alone": (
        "only tensors with one channel are reported as having both layouts",
        "with H = W = 1 only the channels are left, in the same order in both layouts",
        "which dimensions have more than one index?",
    ),
    "one pixel alone": (
        "only tensors with one pixel are reported as having both layouts",
        "with C = 1 only H and W are left, in the same order in both layouts",
        "which dimensions have more than one index?",
    ),
    "innermost": (
        "the layout is derived only from the stride that is 1",
        "tensors with gaps or an expanded dimension can have such a stride too",
        "check every stride: each is the product of the sizes of all inner dimensions",
    ),
    "every stride": (
        "the stride of a dimension with one element is compared",
        "its only index is 0, so its stride has no effect, and torch leaves arbitrary values there",
        "skip dimensions of size 1",
    ),
    "from the shape": (
        "the layout is taken from the shape, not from the strides",
        "a tensor's shape is N, C, H, W in either layout: channels_last changes only the strides",
        "compare each stride with the product of the sizes of all inner dimensions",
    ),
}
COPIED: dict[str, tuple[str, str, str]] = {
    "no weights": (
        "weights are never copied",
        "a convolution in NHWC reads its weight in NHWC as well, but weights are stored in NCHW here",
        "add the weights, with names like 'conv1.weight'; kernels with a single element have both layouts",
    ),
    "one pass": (
        "only the bytes that a copy writes are counted",
        "a copy also reads the existing form from memory",
        "add the bytes read and the bytes written; they differ where channels are padded",
    ),
    "each reader": (
        "a tensor is copied again for each of its readers",
        "readers that need the same form share one copy",
        "collect the forms that a tensor's readers need in a set",
    ),
    "unpadded": (
        "channels are not padded for convolutions",
        "a convolution reads 4 channels or a multiple of 8, and pads its weight's channels in the same way",
        "give each form a layout and a number of channels",
    ),
    **dict.fromkeys(
        ("padded to 8", "all padded to 8"),
        (
            "up to 4 channels are padded to 8",
            "[002]'s kernels need C = 4 or a multiple of 8",
            "pad 1 to 4 channels to 4",
        ),
    ),
    "padded to 4": (
        "more than 4 channels are padded to a multiple of 4",
        "[002]'s kernels need C = 4 or a multiple of 8",
        "pad 5 to 8 channels to 8, and 9 to 16 channels to 16",
    ),
    "elements": (
        "elements are counted instead of bytes",
        "all tensors are in fp16",
        "count 2 bytes per element",
    ),
    "last form": (
        "only one copy of a tensor is counted",
        "a tensor that is needed in two forms is copied twice, but your sum contains only one of these copies",
        "add the bytes of all forms of a tensor",
    ),
    "layout alone": (
        "forms of a tensor are distinguished only by their layouts",
        "only one copy is counted for each layout, with the channels that a convolution needs",
        "add the bytes of all forms: an output takes the channels as they are, and cannot use a padded copy",
    ),
    "one side of 1": (
        "an image with a single row or column is treated as having both layouts",
        "H = 1 or W = 1 is treated as one pixel, but the other side still comes before or after the channels",
        "treat both layouts as the same only with one channel, or with one pixel in all",
    ),
    "rest added": (
        "channels are not rounded up to a multiple of 8",
        "c + c % 8 is counted, which is a multiple of 8 only for some c: 17 becomes 18",
        "how many channels are missing up to the next multiple of 8?",
    ),
    "few unpadded": (
        "fewer than 4 channels are not padded",
        "a convolution reads an image with 3 channels as one with 4",
        "pad 1 to 4 channels to 4",
    ),
    "reads padded": (
        "padded channels are counted as read, too",
        "a copy reads only the existing elements, without the padding",
        "count the padded channels only in what is written",
    ),
    "weights unpadded": (
        "the channels of weights are not padded",
        "the channels of inputs are padded, but not those of the weights that they are multiplied by",
        "pad C in the weight's shape K x C x R x S as in the input",
    ),
    **dict.fromkeys(
        ("all padded", "any padded"),
        (
            "channels are padded for other operators, too",
            "only convolutions pad channels",
            "let the other operators take channels as they are",
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
        "every free node runs in NCHW, so each convolution converts on its own",
        "nodes between two convolutions can stay in NHWC, so that nothing is copied there",
        "compute the bytes of all placements of the free nodes",
    ),
    (
        _everywhere("NHWC"),
        "NHWC everywhere is not the cheapest placement",
        "before a node that needs NCHW, it may be cheaper to copy a smaller tensor earlier in the chain",
        "compute the bytes of all placements of the free nodes",
    ),
    (
        _handed_on,
        "each node takes its input's layout, which is what PyTorch does",
        "this copies as late as possible, even if the tensor is large there",
        "where on the way is the tensor smallest?",
    ),
    (
        _fewest_copies,
        "the placement with the fewest copies is not the one with the fewest bytes",
        "your placement copies the fewest tensors, even if they are large",
        "add up the bytes of all copies, and choose the smallest sum",
    ),
    (
        _most_bytes,
        "your placement copies the most bytes of all placements",
        "the text asks for the fewest bytes",
        "use min instead of max",
    ),
)
