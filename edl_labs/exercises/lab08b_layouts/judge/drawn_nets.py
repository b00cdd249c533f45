"""The cases of strides: tensors of every layout, and nets where no simple habit copies least."""

from __future__ import annotations

import math
from typing import Any

from edl_labs.checks import Case, case_source
from edl_labs.exercises.lab08b_layouts.judge.stride_slip_rules import copy_slips, reading_slips
from edl_labs.exercises.lab08b_layouts.memory_layouts import placements
from edl_labs.exercises.lab08b_layouts.stride_slips import PLACEMENTS

_CHANNELS = (3, 5, 1, 4)  # of the image: padded to 4, to 8, to 4 (its layouts are alike), and not at all
_ODD_CHANNELS = (17, 18)  # padded to 24, which no other rounding gives
_TRIES = 300  # about one draw in three is asked


@case_source("strides")
def nets(rng: Any) -> list[Case]:
    flat = _decided(rng, int(rng.choice(_ODD_CHANNELS)), is_flat=True)
    made = [flat, *(_decided(rng, channels) for channels in _CHANNELS)]
    return [Case.split(_with_slips({"tensors": _tensors(rng), "net": net}), "read_slips", "copy_slips") for net in made]


def _with_slips(case: dict[str, Any]) -> dict[str, Any]:
    """The case, with digests of what known slips answer."""
    every, net = placements(case["net"]), case["net"]
    read = [_layout(*one) for one in case["tensors"]]
    return {
        **case,
        "read_slips": reading_slips(case["tensors"], read),
        "copy_slips": copy_slips(net, every, [copies(net, one) for one in every]),
    }


def _layout(shape: list[int], stride: list[int]) -> str:
    """The layouts whose strides these are, but for dimensions of one element."""
    sizes = dict(zip("NCHW", shape, strict=True))
    steps = dict(zip("NCHW", stride, strict=True))
    fits = []
    for layout in ("NCHW", "NHWC"):
        due = {one: math.prod(sizes[other] for other in layout[at + 1 :]) for at, one in enumerate(layout)}
        if all(sizes[one] == 1 or steps[one] == due[one] for one in layout):
            fits.append(layout)
    return "both" if len(fits) == 2 else fits[0] if fits else "neither"


def _tensors(rng: Any) -> list[list[list[int]]]:
    """A tensor of each kind: plain ones, ambiguous ones, and some in no layout."""
    n, c, h = int(rng.integers(2, 6)), int(rng.integers(3, 9)), int(rng.integers(4, 10))
    w = h + int(rng.integers(1, 6))  # another size than h: who takes one for the other is seen
    found = [
        ([n, c, h, w], _nchw(n, c, h, w)),
        ([n, c, h, w], _nhwc(n, c, h, w)),
        ([n, 1, h, w], _nhwc(n, 1, h, w)),
        ([n, 1, h, w], _nchw(n, 1, h, w)),
        ([n, c, 1, 1], _nchw(n, c, 1, 1)),
        ([n, c, 1, 1], _nhwc(n, c, 1, 1)),
        ([1, c, h, w], [int(rng.integers(5, 90)), *_nhwc(1, c, h, w)[1:]]),
        ([n, 1, h, w], [h * w, int(rng.integers(2, 90)), w, 1]),
        ([n, c, h, w], _nchw(n, 2 * c, h, w)),
        ([n, c, h, w], [(c + 1) * h * w, 1, (c + 1) * w, c + 1]),
        ([n, c, h, w], [h * w, 0, w, 1]),
        ([n, c, h, w], [c * h * w, h * w, 1, h]),
        ([n, c, 1, w], _nchw(n, c, 1, w)),
        ([n, c, h, 1], _nhwc(n, c, h, 1)),
        ([n, w + 9, h, 3], _nchw(n, w + 9, h, 3)),
    ]
    return [[shape, stride] for shape, stride in (found[at] for at in rng.permutation(len(found)))]


def _nchw(n: int, c: int, h: int, w: int) -> list[int]:
    return [c * h * w, h * w, w, 1]


def _nhwc(n: int, c: int, h: int, w: int) -> list[int]:
    return [c * h * w, 1, w * c, c]


def _decided(rng: Any, channels: int, *, is_flat: bool = False) -> list[dict[str, Any]]:
    """A net where none of the habits gives the fewest bytes."""
    for _ in range(_TRIES):
        net = _net(rng, channels)
        if is_flat:
            net = _flattened(net, channels)
        every = placements(net)
        copied = [copies(net, one) for one in every]
        bytes_of = [sum(one.values()) for one in copied]
        least = min(bytes_of)
        if all(bytes_of[every.index(aim(net, copied, every))] > least for aim, *_ in PLACEMENTS):
            return net
    raise AssertionError("every net was decided by a habit; draw other sizes")


def _net(rng: Any, channels: int) -> list[dict[str, Any]]:
    """An image, two convolutions, a part that wants NCHW, and two outputs."""
    batch, size = int(rng.choice([4, 8, 16])), int(rng.choice([32, 48, 64, 96]))
    width, wide = (int(rng.choice([16, 24, 32, 64])) for _ in range(2))
    kernel, grown = int(rng.choice([1, 3])), int(rng.choice([1, 2, 4]))
    half, quarter = size // 2, size // 4
    image = [batch, channels, size, size]
    conv = [batch, width, half, half]
    small = [batch, width, quarter, quarter]
    large = [batch, wide, quarter * grown, quarter * grown]
    is_last = str(rng.choice(["NCHW", "NHWC"]))
    net = [
        {"name": "image", "op": "input", "inputs": [], "shape": image, "layout": "NCHW"},
        {"name": "scaled", "op": "any", "inputs": ["image"], "shape": image},
        {"name": "conv1", "op": "conv", "inputs": ["scaled"], "shape": conv, "weight": [width, channels, 3, 3]},
        {"name": "relu1", "op": "any", "inputs": ["conv1"], "shape": conv},
        {"name": "pool", "op": "any", "inputs": ["relu1"], "shape": small},
        {"name": "windows", "op": "nchw_only", "inputs": ["pool"], "shape": small},
        {"name": "add", "op": "any", "inputs": ["windows", "pool"], "shape": small},
        {
            "name": "conv2",
            "op": "conv",
            "inputs": ["add"],
            "shape": [batch, wide, quarter, quarter],
            "weight": [wide, width, kernel, kernel],
        },
        {"name": "grow", "op": "any", "inputs": ["conv2"], "shape": large},
        {"name": "mean", "op": "any", "inputs": ["conv2"], "shape": [batch, wide, 1, 1]},
        {"name": "mask", "op": "output", "inputs": ["grow"], "shape": large, "layout": is_last},
        {"name": "logits", "op": "output", "inputs": ["mean"], "shape": [batch, wide, 1, 1], "layout": "NCHW"},
    ]
    if rng.integers(2):
        side = {"name": "conv3", "op": "conv", "inputs": ["add"], "shape": small, "weight": [width, width, 1, 1]}
        net.insert(8, side)
        net.append({"name": "side", "op": "output", "inputs": ["conv3"], "shape": small, "layout": "NHWC"})
    return net


def _flattened(net: list[dict[str, Any]], channels: int) -> list[dict[str, Any]]:
    """The net for signals, images of one row; and what its first convolution pads, an output wants as it is."""
    flat = [{**node, "shape": [*node["shape"][:2], 1, node["shape"][3]]} for node in net]
    flat[0]["layout"] = "NHWC"  # so that NCHW everywhere is not what copies the fewest tensors
    shape = [*flat[0]["shape"]]
    seen = {"name": "scaled_signal", "op": "output", "inputs": ["scaled"], "shape": shape, "layout": "NHWC"}
    return [*flat, seen]


def copies(net: Any, layouts: Any) -> dict[str, int]:
    """Bytes that each copy reads and writes."""
    found = {}
    for node in net:
        n, c, h, w = node["shape"]
        forms = {
            (layouts[one["name"]], _padded(c) if one["op"] == "conv" else c)
            for one in net
            if node["name"] in one["inputs"]
        }
        own = 2 * n * c * h * w
        size = sum(
            own + 2 * n * wide * h * w
            for layout, wide in forms
            if wide != c or (layout != layouts[node["name"]] and c > 1 and h * w > 1)
        )
        if size:
            found[node["name"]] = size
        if node["op"] == "conv":
            k, c, h, w = node["weight"]
            if _padded(c) != c or (c > 1 and h * w > 1):
                found[f"{node['name']}.weight"] = 2 * k * h * w * (c + _padded(c))
    return found


def _padded(channels: int) -> int:
    return 4 if channels <= 4 else -(-channels // 8) * 8
