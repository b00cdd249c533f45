"""Which of a test's cases run every day: a few; those that go the same way are for the long run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def few(values: Iterable[Any], *, quick: int) -> list[Any]:
    """`values` as parameters of a test: the first `quick` as they are, the others marked slow."""
    every = list(values)
    later = (
        pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.slow)
        for value in every[quick:]
    )
    return [*every[:quick], *later]
