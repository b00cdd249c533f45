"""What is in order, infinite, remembered or read from a file, and what only looks so."""

from __future__ import annotations

import functools
import sqlite3

import numpy as np
import pytest
from scripted_clock import ScriptedClock

from edl_labs.bench.detectors import Detection
from edl_labs.bench.detectors.effect_watch import is_disk_file
from edl_labs.bench.detectors.results_and_state import in_order


def kinds(fn):
    session = Detection(fn, feed=None, clock=ScriptedClock(), enabled=True, cold=False, budget_s=0.4)
    session.before()
    return [item.kind for item in session.so_far]


@pytest.mark.parametrize(
    ("values", "ordered"),
    [
        ([1, 2, 2, 3], True),
        ([3, 2, 2, 1], True),
        ([3, 3, 2, 1], True),
        ([2, 1, 2, 1], False),
        ([2, 1, 1, 2, 1], False),
        ([3, 1, 2], False),
        ([1, 1, 1], False),
    ],
)
def test_an_order_is_that_of_neighbours(values, ordered):
    assert [ordered] * 2 == [in_order(values), in_order(np.array(values))]


def test_one_state_that_grows_is_still_told_from_sentinels():
    x = np.full(64, 1e100)

    def grows():
        np.multiply(x, 1e100, out=x)
        return float(x[0])

    with np.errstate(over="ignore"):
        assert ["diverged"] == kinds(grows)
    assert [] == kinds(lambda: np.where(np.eye(8, dtype=bool), np.inf, 1.0) * 2)


def test_a_cache_is_told_where_the_function_gives_what_it_holds_and_not_where_it_works_with_it():
    @functools.cache
    def window(n):
        return np.hanning(n)

    data = np.random.default_rng(0).standard_normal(64)

    assert ["remembered"] == kinds(lambda: window(64))
    assert [] == kinds(lambda: data * window(64))
    assert ["remembered"] == kinds(lambda: float(window(64)[3]))


def test_a_file_is_one_on_a_disk(tmp_path):
    path = tmp_path / "data.bin"
    path.write_bytes(b"x" * 100)
    with path.open("rb") as file:
        found = [is_disk_file(one) for one in (path, str(path), file)]
    others = ["/proc/self/status", "/dev/urandom", str(tmp_path), "no such file", "\0", ""]

    assert [True] * 3 == found
    assert [False] * len(others) == [is_disk_file(one) for one in others]


def test_a_file_that_a_library_opens_by_name_is_still_seen(tmp_path):
    path = str(tmp_path / "data.db")
    with sqlite3.connect(path) as made:
        made.execute("create table t (x blob)")
        made.executemany("insert into t values (?)", [(b"x" * 4000,)] * 20)
    made.close()

    def fn():  # sqlite opens files in C, as decoders of pictures do
        opened = sqlite3.connect(path)
        try:
            return len(opened.execute("select * from t").fetchall())
        finally:
            opened.close()

    assert ["page_cache"] == kinds(fn)
