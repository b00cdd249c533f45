"""The cases of intensity and count_a_model: single operations, and blocks of a transformer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from edl_labs.checks import Case, case_source
from edl_labs.exercises.lab02_roofline.operation_counts import left_over


@case_source("intensity")
def operations(rng: Any) -> list[Case]:
    deck = [
        {"kind": "linear", "batch": 512, "inputs": 1024, "outputs": 4096, "itemsize": 2},
        {"kind": "linear", "batch": 1, "inputs": 1024, "outputs": 4096, "itemsize": 2},
        {"kind": "gemm", "m": 8192, "n": 128, "k": 8192, "itemsize": 2},
        {"kind": "matvec", "m": 1024, "n": 512, "itemsize": 4},
    ]
    # Two of each kind, with elements of two sizes; windows of the first leave pixels over and lie on padding.
    sizes = {kind: rng.permutation([1, 2, 4, 8])[:2].tolist() for kind in OPERATIONS}
    first = [_operation(rng, kind, sizes[kind][0], window=_ragged_window) for kind in OPERATIONS]
    second = [_operation(rng, kind, sizes[kind][1], window=_window) for kind in OPERATIONS]
    return [Case(given=one) for one in [*deck, *first, *second, *(_narrow(rng, kind) for kind in _WITH_WEIGHTS)]]


def _narrow(rng: Any, kind: str) -> dict[str, Any]:
    """An operation whose weights have fewer bytes than its other elements."""
    itemsize = int(rng.choice([2, 4, 8]))
    case = _operation(rng, kind, itemsize, window=_window)
    return {**case, "weight_itemsize": int(rng.choice([size for size in (1, 2, 4) if size < itemsize]))}


def _operation(rng: Any, kind: str, itemsize: int, *, window: Callable[[Any], dict[str, int]]) -> dict[str, Any]:
    """An operation of `kind` with sizes of its own."""
    slides = window(rng) if kind in ("conv", "pool") else {}
    return {"kind": kind, **OPERATIONS[kind](rng), **slides, "itemsize": itemsize}


def _whole(rng: Any, low: int, high: int) -> int:
    return int(rng.integers(low, high))


def _window(rng: Any) -> dict[str, int]:
    kernel, stride = int(rng.choice([2, 3, 5, 7])), int(rng.choice([1, 2, 2, 3]))
    padding = _whole(rng, 0, kernel // 2 + 1)
    return {"size": _whole(rng, 14, 120), "kernel": kernel, "stride": stride, "padding": padding}


def _ragged_window(rng: Any) -> dict[str, int]:
    """A window whose last step would leave the image, and that fits once more along a side for its padding."""
    while True:
        case = _window(rng)
        if 0 < left_over(case) < case["padding"]:
            return case


_WITH_WEIGHTS = ("linear", "conv", "layer_norm")
OPERATIONS: dict[str, Any] = {
    "gemm": lambda rng: {name: _whole(rng, 16, 5000) for name in ("m", "n", "k")},
    "matvec": lambda rng: {name: _whole(rng, 16, 5000) for name in ("m", "n")},
    "linear": lambda rng: {name: _whole(rng, 2, 5000) for name in ("batch", "inputs", "outputs")},
    "conv": lambda rng: {
        "batch": _whole(rng, 2, 65),
        "channels": _whole(rng, 3, 300),
        "filters": _whole(rng, 8, 300),
    },
    "pool": lambda rng: {"batch": _whole(rng, 2, 65), "channels": _whole(rng, 3, 300)},
    "relu": lambda rng: {"elements": _whole(rng, 1000, 10_000_000)},
    "layer_norm": lambda rng: {"rows": _whole(rng, 8, 9000), "features": _whole(rng, 64, 5000)},
}


@case_source("count_a_model")
def blocks(rng: Any) -> list[Case]:
    plain = _shape(rng, gated=False, frozen=False, grouped=False)
    rest = [
        _shape(rng, gated=bool(i & 1), frozen=bool(i & 2), grouped=bool(i & 4)) for i in rng.permutation(8).tolist()
    ]
    return [Case(given=one) for one in [plain, *rest, _shape(rng, gated=True, frozen=False, grouped=True)]]


def _shape(rng: Any, *, gated: bool, frozen: bool, grouped: bool) -> dict[str, Any]:
    """A block in which every part, the attention matrix too, is well above the tolerance of 1 %."""
    head, heads = int(rng.choice([32, 64])), int(rng.choice([4, 8, 12]))
    width = head * heads
    return {
        "batch": int(rng.integers(2, 33)),
        "tokens": int(rng.integers(width // 3, 2 * width)),
        "width": width,
        "heads": heads,
        "kv_heads": heads // 4 if grouped else heads,
        "hidden": int(rng.integers(2, 6)) * width,
        "gated": gated,
        "frozen": frozen,
    }
