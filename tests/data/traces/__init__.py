"""Small traces, one mechanism each, with the truth worked out by hand from the numbers that they are made of."""

from __future__ import annotations

from tests.data.traces.mechanisms import Case, device_cases
from tests.data.traces.special_cases import special_cases

__all__ = ["CORPUS", "Case"]

CORPUS = (*device_cases(), *special_cases())
