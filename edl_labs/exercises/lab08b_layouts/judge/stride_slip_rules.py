"""Mistakes in strides: each gives what a student with that habit would answer; cases hold digests of that alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from edl_labs.exercises.lab08b_layouts.memory_layouts import copies_as_text
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


def _no_weights(net: Any, layouts: Any, right: dict[str, int]) -> dict[str, int]:
    return {name: size for name, size in right.items() if not name.endswith(".weight")}


def _elements(net: Any, layouts: Any, right: dict[str, int]) -> dict[str, int]:
    return {name: size // _ITEMSIZE for name, size in right.items()}


def _due(channels: int) -> int:
    return 4 if channels <= 4 else -(-channels // 8) * 8


def _to(multiple: int) -> Callable[[int], int]:
    return lambda channels: -(-channels // multiple) * multiple


def _is_alike(channels: int, high: int, wide: int) -> bool:
    return channels == 1 or high * wide == 1


def _both_ways(channels: int, asked: int) -> int:
    return channels + asked


def _all_forms(forms: list[tuple[str, int]]) -> list[tuple[str, int]]:
    return list(dict.fromkeys(forms))


def _by_layout(forms: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """A copy for each layout, with the most channels that anybody wants in it."""
    return [(layout, max(asked for one, asked in forms if one == layout)) for layout in dict.fromkeys(dict(forms))]


@dataclass(frozen=True)
class _Recount:
    """The copies of all tensors, counted anew with one of these rules changed."""

    padded: Callable[[int], int] = _due
    of_weights: Callable[[int], int] | None = None
    pads: tuple[str, ...] = ("conv",)
    alike: Callable[[int, int, int], bool] = _is_alike
    channels: Callable[[int, int], int] = _both_ways
    forms: Callable[[list[tuple[str, int]]], list[tuple[str, int]]] = _all_forms
    total: Callable[[list[int]], int] = sum

    def __call__(self, net: Any, layouts: Any, right: dict[str, int]) -> dict[str, int]:
        found = {}
        for node in net:
            name, channels = node["name"], node["shape"][1]
            readers = [one for one in net if name in one["inputs"]]
            forms = [
                (layouts[one["name"]], self.padded(channels) if one["op"] in self.pads else channels) for one in readers
            ]
            found[name] = self._copied(node["shape"], layouts[name], forms)
            if node["op"] == "conv":
                asked = (self.of_weights or self.padded)(node["weight"][1])
                found[f"{name}.weight"] = self._copied(node["weight"], "NCHW", [("NHWC", asked)])
        return {name: size for name, size in found.items() if size}

    def _copied(self, shape: Any, now: str, forms: list[tuple[str, int]]) -> int:
        first, channels, high, wide = shape
        sizes = [
            _ITEMSIZE * first * high * wide * self.channels(channels, asked)
            for layout, asked in self.forms(forms)
            if asked != channels or (layout != now and not self.alike(channels, high, wide))
        ]
        return self.total(sizes) if sizes else 0


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
    "one pass": _Recount(channels=lambda channels, asked: asked),
    "each reader": _Recount(forms=list),
    "unpadded": _Recount(padded=lambda channels: channels),
    "padded to 8": _Recount(padded=lambda channels: 4 if channels == 4 else _to(8)(channels)),
    "all padded to 8": _Recount(padded=_to(8)),
    "padded to 4": _Recount(padded=_to(4)),
    "elements": _elements,
    "last form": _Recount(total=lambda sizes: sizes[-1]),
    "layout alone": _Recount(forms=_by_layout),
    "one side of 1": _Recount(alike=lambda channels, high, wide: 1 in (channels, high, wide)),
    "rest added": _Recount(padded=lambda channels: 4 if channels <= 4 else channels + channels % 8),
    "few unpadded": _Recount(padded=lambda channels: channels if channels <= 4 else _due(channels)),
    "reads padded": _Recount(channels=lambda channels, asked: 2 * asked),
    "weights unpadded": _Recount(of_weights=lambda channels: channels),
    "all padded": _Recount(pads=("conv", "any", "nchw_only", "output")),
    "any padded": _Recount(pads=("conv", "any")),
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
