"""A register of functions to be timed: each is registered with the mistake that it makes, or as clean."""

from __future__ import annotations

from typing import Any

MISTAKES: list[tuple[str, Any]] = []
CLEAN: list[Any] = []


def mistaken(kind: str) -> Any:
    def register(maker: Any) -> Any:
        MISTAKES.append((kind, maker))
        return maker

    return register


def clean(maker: Any) -> Any:
    CLEAN.append(maker)
    return maker
