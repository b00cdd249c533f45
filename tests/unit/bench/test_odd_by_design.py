"""What is in order, infinite, remembered or read from a file, and what only looks so."""

from __future__ import annotations

import functools
import gc
import os
import sqlite3
import threading
import time
import types

import numpy as np
import pytest
import torch
from scripted_clock import ScriptedClock

from edl_labs.bench.detectors import Detection, effect_watch
from edl_labs.bench.detectors.changing_calls import grows
from edl_labs.bench.detectors.effect_watch import SideEffects, is_disk_file
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

    with path.open("ab") as log, path.open("rb+") as both:
        writes = is_disk_file(log)
        kept = os.dup(2)
        os.dup2(both.fileno(), 2)
        try:
            with open(2, "r+b", buffering=0, closefd=False) as error:
                writes = writes or is_disk_file(error)
        finally:
            os.dup2(kept, 2)
            os.close(kept)

    assert [True] * 3 == found
    assert not writes
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


def test_a_file_that_another_thread_opens_once_is_not_the_functions(tmp_path):
    file, turn, opened = tmp_path / "file", threading.Event(), threading.Event()
    file.write_bytes(b"x" * 20_000)

    def beside():
        while turn.wait(20):
            turn.clear()
            file.read_bytes()
            opened.set()

    def fn():
        turn.set()
        assert opened.wait(20)
        opened.clear()

    thread, effects, found = threading.Thread(target=beside, daemon=True), SideEffects(), []
    thread.start()
    for call in (fn, int, fn, fn, file.read_bytes):
        effects.watch(call)
        found.append(effects.opened)

    assert [False, False, False, True, True] == found


def test_a_sleep_while_a_compiler_works_is_the_compilers_unless_the_function_calls_it(monkeypatch):
    compiled = iter((0, 1, 1, 1, 1, 2))
    monkeypatch.setattr(effect_watch, "compiled_frames", lambda: next(compiled))
    sleeping = types.FunctionType((lambda: time.sleep(1e-3)).__code__, globals())
    found = []
    for effects, call in (
        (SideEffects(), lambda: sleeping()),
        (SideEffects(), lambda: sleeping()),
        (SideEffects((sleeping,)), sleeping),
    ):
        effects.watch(call)
        found.append("sleeps" in effects.seen)

    assert [False, True, True] == found


def test_in_a_call_too_long_for_a_second_look_the_functions_own_line_is_enough():
    clock = ScriptedClock()

    def own():
        clock.t += 10.0
        gc.collect()

    def once_perhaps():
        clock.t += 10.0
        eval("gc.collect()")  # not a line of the function: what is loaded by a first call may clean up behind itself

    def profiled():
        clock.t += 10.0
        with torch.autograd.profiler.profile():
            pass

    found = []
    for fn in (own, profiled, once_perhaps):
        session = Detection(fn, feed=None, clock=clock, enabled=True, cold=False, budget_s=0.4)
        session.before()
        found.append([item.kind for item in session.so_far])

    assert [["housekeeping"], ["instrumented"], []] == found


@pytest.mark.parametrize("frozen", [False, True])
def test_garbage_in_rings_is_no_growth_whoever_has_frozen_objects(frozen):
    kept = []

    def ring():
        one = []
        one.append(one)

    (gc.freeze if frozen else gc.unfreeze)()
    try:
        left = [grows(call, calls=300) for call in (ring, lambda: kept.append([]))]
        stays = gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()

    assert [0.0, pytest.approx(1.0, abs=0.2)] == left
    assert frozen == stays
