"""Mistakes in strides: each gives what a student with that habit would answer; cases hold digests of that alone."""

from __future__ import annotations

from typing import Any

from edl_labs.exercises.lab08b_compilers.memory_layouts import copies_as_text
from edl_labs.exercises.slip_digests import digest

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


_READINGS: dict[str, Any] = {
    "both is NCHW": _one_for_both("NCHW"),
    "both is NHWC": _one_for_both("NHWC"),
    "one channel alone": _both_for_one_channel_alone,
    "one pixel alone": _both_for_one_pixel_alone,
    "innermost": _innermost,
    "every stride": _every_stride,
    "from the shape": _from_the_shape,
}
_COPIES: dict[str, Any] = {
    "no weights": _no_weights,
    "one pass": _written_alone,
    "each reader": _for_each_reader,
    "unpadded": _unpadded,
    "padded to 8": _padded_to(8),
    "padded to 4": _padded_to(4),
    "elements": _elements,
}


def reading_slips(tensors: Any, right: list[str]) -> dict[str, str]:
    """Of each habit, the digest of the layouts that it reads."""
    return {
        name: digest(
            rule(tuple(shape), tuple(stride), one) for (shape, stride), one in zip(tensors, right, strict=True)
        )
        for name, rule in _READINGS.items()
    }


def copy_slips(net: Any, every: list[Any], right: list[dict[str, int]]) -> dict[str, str]:
    """Of each habit, the digest of the copies that it counts in all placements."""
    return {
        name: digest(copies_as_text(rule(net, layouts, {**one})) for layouts, one in zip(every, right, strict=True))
        for name, rule in _COPIES.items()
    }
