"""What the exercises of lab02_roofline share: the form of answers, and numbers in messages."""

from __future__ import annotations

import math
from typing import Any

from edl_labs.errors import Wrong


def pair(got: Any, names: str) -> None:
    """Nothing, when `got` holds two answers; otherwise Wrong, which says which."""
    if not isinstance(got, list):
        raise Wrong("expected two answers", why=f"your function returned {say(got)}", next=f"return {names}")
    if len(got) != 2:
        raise Wrong("expected two answers", why=f"your function returned {len(got)}", next=f"return {names}")


def two_numbers(got: Any, names: str) -> None:
    """Nothing, when `got` is a pair of numbers; otherwise Wrong, which names them."""
    pair(got, names)
    for value, name in zip(got, names.split(", "), strict=True):
        if type(value) not in (int, float):
            raise Wrong(
                f"{name} is not a number",
                why=f"your function returned {say(value)}",
                next=f"return {names}, two plain numbers",
            )


def tidy(value: float) -> float:
    """A drawn figure at four significant digits, so that a person can read it."""
    return float(f"{value:.4g}")


def need(value: Any, name: str) -> None:
    """Nothing, when `value` is a finite number above zero; otherwise Wrong."""
    if type(value) not in (int, float) or not _finite(value) or value <= 0:
        raise Wrong(
            f"{name} is not a positive number", why=f"your function returned {say(value)}", next="print what you return"
        )


def _finite(value: float) -> bool:
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def say(value: Any) -> str:
    """A value as a short text."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)[:30]
