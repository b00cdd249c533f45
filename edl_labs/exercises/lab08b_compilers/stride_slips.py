"""Mistakes in strides: each gives what a student with that habit would answer, from what is right."""

from __future__ import annotations

from typing import Any

_ITEMSIZE = 2  # bytes: the nets are in fp16, says the lab's text


def _one_for_both(layout: str) -> Any:
    return lambda shape, stride, right: layout if right == "both" else right


def _both_for_one_channel_alone(shape: Any, stride: Any, right: str) -> str:
    return "NCHW" if right == "both" and shape[1] != 1 else right


def _both_for_one_pixel_alone(shape: Any, stride: Any, right: str) -> str:
    return "NCHW" if right == "both" and shape[2] * shape[3] != 1 else right


def _innermost(shape: Any, stride: Any, right: str) -> str:
    """By the stride that is 1 alone."""
    if right == "both":
        return right
    return "NHWC" if stride[1] == 1 else "NCHW" if stride[3] == 1 else "neither"


def _every_stride(shape: Any, stride: Any, right: str) -> str:
    """Strides of dimensions of one element are compared too."""
    for layout, order in (("NCHW", (3, 2, 1, 0)), ("NHWC", (1, 3, 2, 0))):
        steps = [1]
        for at in order[:-1]:
            steps.append(steps[-1] * shape[at])
        if all(stride[at] == step for at, step in zip(order, steps, strict=True)):
            return layout
    return "neither"


def _from_the_shape(shape: Any, stride: Any, right: str) -> str:
    """The smaller of the second and the last size is taken for the channels."""
    return "NHWC" if shape[3] < shape[1] else "NCHW"


_TOLD_SHAPE = "the layout is told from the shape, not from the strides"
# What a habit answers for a tensor, what it is, why, and what to look at.
READINGS = (
    (
        _one_for_both("NCHW"),
        "tensors that have both layouts are all taken for NCHW",
        "the first layout that fits ends your search",
        "with one channel, or one pixel, both orders are the same bytes in the same places",
    ),
    (
        _one_for_both("NHWC"),
        "tensors that have both layouts are all taken for NHWC",
        "the first layout that fits ends your search",
        "with one channel, or one pixel, both orders are the same bytes in the same places",
    ),
    (
        _both_for_one_channel_alone,
        "one pixel makes both layouts alike, as one channel does",
        "H and W of 1 leave the channels alone",
        "which dimensions have more than one index?",
    ),
    (
        _both_for_one_pixel_alone,
        "one channel makes both layouts alike, as one pixel does",
        "C of 1 leaves H and W alone, in the same order",
        "which dimensions have more than one index?",
    ),
    (
        _innermost,
        "a stride of 1 alone does not make a layout",
        "tensors with gaps, or with an expanded dimension, have one too",
        "each stride is the product of all sizes further in",
    ),
    (
        _every_stride,
        "the stride of a dimension with one element is compared",
        "its only index is 0, so any stride will do: torch leaves arbitrary ones there",
        "skip dimensions of size 1",
    ),
    (
        _from_the_shape,
        _TOLD_SHAPE,
        "a tensor's shape is N, C, H, W in either layout: channels_last changes the strides alone",
        "compare the strides with the products of the sizes further in",
    ),
)


def _node(net: Any, name: str) -> Any:
    return next((node for node in net if node["name"] == name.removesuffix(".weight")), None)


def _own_bytes(net: Any, name: str) -> int:
    """Of what is read by a copy."""
    node = _node(net, name)
    sizes = node["weight"] if name.endswith(".weight") else node["shape"]
    return _ITEMSIZE * sizes[0] * sizes[1] * sizes[2] * sizes[3]


def _no_weights(net: Any, layouts: Any, right: dict[str, int]) -> dict[str, int]:
    return {name: size for name, size in right.items() if not name.endswith(".weight")}


def _written_alone(net: Any, layouts: Any, right: dict[str, int]) -> dict[str, int]:
    return {name: size - _own_bytes(net, name) * _copies(net, layouts, name) for name, size in right.items()}


def _copies(net: Any, layouts: Any, name: str) -> int:
    """How many forms a tensor is copied to: two where a convolution pads what another reader takes as it is."""
    if name.endswith(".weight"):
        return 1
    readers = [node for node in net if name in node["inputs"] and layouts[node["name"]] != layouts[name]]
    padded = {node["op"] == "conv" and node["weight"][1] not in _fine(node["weight"][1]) for node in readers}
    pads_itself = [node for node in net if name in node["inputs"] and node["op"] == "conv" and layouts[name] == "NHWC"]
    return max(1, len(padded | ({True} if pads_itself else set())))


def _fine(channels: int) -> set[int]:
    return {channels} if channels == 4 or channels % 8 == 0 else set()


def _for_each_reader(net: Any, layouts: Any, right: dict[str, int]) -> dict[str, int]:
    found = {}
    for name, size in right.items():
        readers = [node for node in net if name in node["inputs"] and layouts[node["name"]] != layouts.get(name)]
        found[name] = size * (1 if name.endswith(".weight") else max(1, len(readers)))
    return found


def _unpadded(net: Any, layouts: Any, right: dict[str, int]) -> dict[str, int]:
    found = {}
    for name, size in right.items():
        own = _own_bytes(net, name)
        channels = _node(net, name)["weight"][1] if name.endswith(".weight") else _node(net, name)["shape"][1]
        is_changed = name.endswith(".weight") or any(
            layouts[node["name"]] != layouts[name] for node in net if name in node["inputs"]
        )
        if _fine(channels):
            found[name] = size
        elif is_changed and channels > 1 and not _is_small(net, name):
            found[name] = 2 * own
    return found


def _is_small(net: Any, name: str) -> bool:
    """Whether both layouts are alike for a tensor of one pixel, or a kernel of one element."""
    node = _node(net, name)
    sizes = node["weight"] if name.endswith(".weight") else node["shape"]
    return bool(sizes[2] * sizes[3] == 1)


def _padded_to(multiple: int) -> Any:
    def slip(net: Any, layouts: Any, right: dict[str, int]) -> dict[str, int]:
        found = {}
        for name, size in right.items():
            node, own = _node(net, name), _own_bytes(net, name)
            channels = node["weight"][1] if name.endswith(".weight") else node["shape"][1]
            due = channels if _fine(channels) else 4 if channels < 4 else -(-channels // 8) * 8
            other = -(-channels // multiple) * multiple
            is_padded = (size - own) * channels == own * due and due != channels
            is_there = not name.endswith(".weight") and layouts[name] == "NHWC" and other == channels
            if not (is_padded and is_there):
                found[name] = own + own * other // channels if is_padded else size
        return found

    return slip


def _elements(net: Any, layouts: Any, right: dict[str, int]) -> dict[str, int]:
    return {name: size // _ITEMSIZE for name, size in right.items()}


# What a habit counts, what it is, why, and what to look at.
SLIPS: tuple[Any, ...] = (
    (
        _no_weights,
        "weights have a layout too, and yours are never copied",
        "a convolution in NHWC reads its weight in that order as well; it is stored in NCHW here",
        "name them 'conv1.weight'; kernels of one element have both layouts",
    ),
    (
        _written_alone,
        "a copy is counted as one pass: it reads and it writes",
        "what is there is read from memory, and what is wanted is written to it",
        "add both; they differ where channels are padded",
    ),
    (
        _for_each_reader,
        "a tensor is copied again for each of its readers",
        "two readers of one form share one copy",
        "collect the wanted forms of a tensor in a set",
    ),
    (
        _unpadded,
        "channels are not padded for convolutions",
        "a convolution reads 4 channels or a multiple of 8: an image of 3 is copied to 4, and its weight with it",
        "the wanted form has a layout and a number of channels",
    ),
    (
        _padded_to(8),
        "up to 4 channels are padded to 8",
        "[002]: special kernels take C = 4; else it is a multiple of 8",
        "1 to 4 channels become 4",
    ),
    (
        _padded_to(4),
        "more than 4 channels are padded to a multiple of 4",
        "[002]: C = 4 or a multiple of 8",
        "5 to 8 channels become 8, 9 to 16 become 16",
    ),
    (
        _elements,
        "elements are counted, and they have 2 bytes each",
        "all of it is in fp16",
        "times 2",
    ),
)


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


PLACEMENTS = (
    (
        _everywhere("NCHW"),
        "every layer goes back to NCHW: convolutions convert one by one",
        "what lies between two convolutions can stay in NHWC, and nothing is copied there",
        "price all placements of the free nodes",
    ),
    (
        _everywhere("NHWC"),
        "NHWC everywhere is not the cheapest placement",
        "where a node that needs NCHW follows, a smaller tensor before it may be the one to copy",
        "price all placements of the free nodes",
    ),
    (
        _handed_on,
        "each node takes its input's layout, which is what PyTorch does",
        "that copies as late as possible, whatever the size of the tensor there",
        "where on the way is the tensor smallest?",
    ),
    (
        _most_bytes,
        "that placement copies the most bytes of all",
        "a minimum is asked for",
        "min, not max",
    ),
)
