"""Whether two results are equal: infinities in place, numbers of any library, and what has no equality."""

from __future__ import annotations

import enum
import math

import numpy as np
import pytest
import torch

from edl_labs.bench import DifferentOutputs
from edl_labs.bench.equal_outputs import compare_outputs, outputs_equal

INF, NAN = math.inf, math.nan
Colour = enum.Enum("Colour", "RED BLUE")


class Plain:
    """An object that is only equal to itself."""


@pytest.mark.parametrize("made", [np.array, torch.tensor], ids=["numpy", "torch"])
@pytest.mark.parametrize(
    ("expected", "actual", "want"),
    [
        ([INF, 1.0], [INF, 500.0], False),
        ([INF, 1.0], [INF, 1.0 + 1e-12], True),
        ([-INF, 1.0], [-INF, 2.0], False),
        ([-INF, 1.0], [INF, 1.0], False),
        ([INF, 1.0], [1.0, INF], False),
        ([1.0, 2.0], [1.0, INF], False),
        ([NAN, 1.0], [NAN, 1.0], True),
        ([NAN, 1.0], [NAN, 500.0], False),
        ([NAN, 1.0], [1.0, NAN], False),
        ([NAN, 1e6], [NAN, 1e6 + 1e-6], True),
        ([INF, NAN], [INF, NAN], True),
        ([INF, NAN], [NAN, INF], False),
        ([1e6, 0.0], [1e6, 1e-6], True),
    ],
)
def test_arrays_agree_within_the_scale_of_their_finite_values(made, expected, actual, want):
    assert want == outputs_equal(made(expected), made(actual))


@pytest.mark.parametrize(
    ("expected", "actual", "want"),
    [
        (1.5, np.float64(1.5), True),
        (np.float64(1.5), 1.5, True),
        (0.1, np.float32(0.1), True),
        (1.5, np.float64(1.6), False),
        (3, np.int64(3), True),
        (3, np.int64(4), False),
        (3, np.float64(3.0), True),
        (True, np.bool_(True), True),
        (1.5, torch.tensor(1.5), True),
        (torch.tensor(1.5), np.float32(1.5), True),
        (torch.tensor(1.5), torch.tensor(1.5, dtype=torch.float64), True),
        (NAN, np.float64(NAN), True),
        (NAN, np.float64(1.0), False),
        (INF, np.float32(INF), True),
        (-INF, np.float32(INF), False),
        (1j, np.complex128(1j), True),
        (1.0, 1.0 + 1e-6, False),
        (10**20, 10**20 + 1, False),
        (1.5, np.array([1.5]), False),
        (1.5, "1.5", False),
        ([1.5], np.array([1.5]), False),
        (np.ones(2), np.ones(2, dtype=np.float32), False),
    ],
)
def test_a_value_of_no_dimension_is_a_number(expected, actual, want):
    assert want == outputs_equal(expected, actual)


def test_the_mean_of_python_agrees_with_that_of_numpy():
    values = [0.1, 0.2, 0.4]
    said = compare_outputs({"sum": lambda: sum(values) / len(values), "mean": lambda: np.mean(values)}, None)

    assert "equal" == said


@pytest.mark.parametrize(
    ("expected", "actual", "want"),
    [
        (iter((1,)), iter((2,)), None),
        ((x for x in (1,)), (x for x in (2,)), None),
        (Plain(), Plain(), None),
        (lambda: 1, lambda: 2, None),
        ([1, Plain()], [1, Plain()], None),
        ([1, Plain()], [2, Plain()], False),
        ({"a": Plain(), "b": 1}, {"a": Plain(), "b": 2}, False),
        (Plain(), 3, False),
        (3, Plain(), False),
        (None, None, True),
        (None, 0, False),
        (Colour.RED, Colour.RED, True),
        (Colour.RED, Colour.BLUE, False),
        (int, float, False),
        ({1, 2}, {2, 1}, True),
    ],
)
def test_what_has_no_equality_is_not_said_to_be_equal(expected, actual, want):
    assert want is outputs_equal(expected, actual)


def test_the_same_object_is_equal_to_itself():
    item = Plain()

    assert outputs_equal([item], [item]) is True


def test_generators_are_reported_as_not_compared():
    said = compare_outputs({"a": lambda: (x for x in (1,)), "b": lambda: (x for x in (2,))}, None)

    assert said.startswith("not compared")


def test_masked_scores_that_differ_are_refused():
    with pytest.raises(DifferentOutputs, match="b and a return different results"):
        compare_outputs({"a": lambda: np.array([-INF, 1.0]), "b": lambda: np.array([-INF, 500.0])}, None)
