"""Kernels in the style of published ones give what Triton's interpreter gives."""

from __future__ import annotations

import importlib.util
import re

import numpy as np
import pytest

from edl_labs.virtual.tiles import evaluate, parse_kernels
from tests.unit.virtual.tiles.interpreter_oracle import interpreted
from tests.unit.virtual.tiles.public_cases import SOURCE, cases, copied


def test_there_are_at_least_forty_and_each_has_a_case() -> None:
    helpers = {"leaky_relu", "silu", "tanh"}

    assert set(re.findall(r"^def (\w+)", SOURCE, re.MULTILINE)) - helpers == set(cases())
    assert len(cases()) >= 40


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton has wheels for Linux alone")
def test_values_are_those_of_the_interpreter() -> None:
    drawn = cases()
    sources = {name: SOURCE.replace(f"def {name}(", "def kernel(") for name in drawn}
    theirs = interpreted([(sources[name], grid, copied(one)) for name, (grid, one) in drawn.items()])
    wrong = {}
    for (name, (grid, one)), expected in zip(drawn.items(), theirs, strict=True):
        arguments = copied(one)
        record = evaluate(parse_kernels(SOURCE), name, grid, arguments)
        if isinstance(expected, str) or record.races:
            wrong[name] = expected if isinstance(expected, str) else record.races
            continue
        arrays = {key: value for key, value in arguments.items() if isinstance(value, np.ndarray)}
        close = [np.allclose(expected[key], value, rtol=3e-3, atol=2e-6) for key, value in arrays.items()]
        if not all(close):
            wrong[name] = [key for key, same in zip(arrays, close, strict=True) if not same]

    assert {} == wrong
