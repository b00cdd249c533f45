"""What is wrong with the inputs themselves: constant or zero data."""

from __future__ import annotations

import sys
from typing import Any

from edl_labs.bench.feed import Feed

_ENOUGH = 16


def constant(feed: Feed) -> str:
    """Which inputs hold one value throughout, in words; '' where at least one set of inputs is fine."""
    found = [[_constant(value) for value in _arrays(arguments)] for arguments in feed.pool[:4]]
    if not found or not found[0]:
        return ""
    always = [words for words in zip(*found, strict=False) if all(words)]
    if not always or len(always) < len(found[0]):
        return _zeros(always)
    return always[0][0]


def _zeros(always: list[tuple[str, ...]]) -> str:
    # A constant operand beside a real one can be meant (a bias, a mask); zeros make the other one pointless.
    return next((words[0] for words in always if words[0].startswith("all zeros")), "")


def _arrays(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [array for item in value for array in _arrays(item)]
    if isinstance(value, dict):
        return [array for item in value.values() for array in _arrays(item)]
    return [value] if _is_floating(value) else []


def _is_floating(value: Any) -> bool:
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and isinstance(value, torch.Tensor):
        return bool(value.is_floating_point()) and value.numel() >= _ENOUGH and value.device.type != "meta"
    if numpy is not None and isinstance(value, numpy.ndarray):
        return value.dtype.kind == "f" and value.size >= _ENOUGH
    return False


def _constant(value: Any) -> str:
    torch = sys.modules.get("torch")
    flat = value.detach().reshape(-1) if torch is not None and isinstance(value, torch.Tensor) else value.reshape(-1)
    first = flat[0]
    if not bool((flat[:4096] == first).all()) or not bool((flat == first).all()):
        return ""
    shape = "×".join(map(str, value.shape))
    return (
        f"all zeros in an array of {shape}" if float(first) == 0 else f"{float(first):g} throughout an array of {shape}"
    )
