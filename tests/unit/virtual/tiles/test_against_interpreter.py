"""Drawn kernels give the values that Triton's interpreter gives, bit by bit."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from edl_labs.virtual.tiles import evaluate, parse_kernels
from tests.unit.virtual.tiles.drawn_kernels import PROGRAMS, DrawnKernel
from tests.unit.virtual.tiles.interpreter_oracle import interpreted

pytestmark = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton has wheels for Linux alone")


def disagreements(seeds: range) -> list[str]:
    """Drawn kernels whose results differ, or that one of the two refuses."""
    drawn = [DrawnKernel(seed) for seed in seeds]
    theirs = interpreted([(one.source, (PROGRAMS,), one.arguments()) for one in drawn])
    found = []
    for seed, expected in zip(seeds, theirs, strict=True):
        one = DrawnKernel(seed)
        arguments = one.arguments()
        record = evaluate(parse_kernels(one.source), "kernel", (PROGRAMS,), arguments)
        if (
            isinstance(expected, str)
            or record.races
            or not all(np.array_equal(expected[name], arguments[name]) for name in ("y_ptr", "c_ptr"))
        ):
            found.append(f"seed {seed}: {expected if isinstance(expected, str) else record.races}\n{one.source}")
    return found


def test_some_drawn_kernels() -> None:
    assert [] == disagreements(range(12))


@pytest.mark.slow
def test_many_drawn_kernels() -> None:
    assert [] == disagreements(range(12, 612))
