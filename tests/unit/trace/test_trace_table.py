"""Nesting and self time, in the odd forms in which traces come."""

from __future__ import annotations

import numpy as np
import pytest

from edl_labs.trace.trace_table import nest


def nested(*events: tuple[float, float]) -> tuple[list[int], list[float]]:
    """Parents and self times of (start, end) on one row."""
    starts, ends = (np.array(column) for column in zip(*events, strict=True))
    row, flat = np.zeros(len(events), dtype=int), np.zeros(len(events), dtype=bool)
    parent, own = nest(row, starts, ends, flat=flat)
    return parent.tolist(), own.tolist()


def test_children_are_taken_from_their_parent() -> None:
    assert ([-1, 0, 0, 2], [4.0, 2.0, 3.0, 1.0]) == nested((0, 10), (1, 3), (5, 9), (6, 7))


def test_an_annotation_outlasts_the_frame_that_opens_it() -> None:
    parent, _ = nested((0, 10), (1, 2), (1.5, 8), (3, 4))

    assert [-1, 0, 0, 2] == parent


def test_events_that_overlap_each_other_take_their_common_time_once() -> None:
    parent, own = nested((0, 4), (3, 6))

    assert [-1, 0] == parent
    assert pytest.approx([3.0, 3.0]) == own


def test_rounding_does_not_make_a_child() -> None:
    parent, _ = nested((0.0, 1.0), (1.0 - 1e-9, 2.0))

    assert [-1, -1] == parent
