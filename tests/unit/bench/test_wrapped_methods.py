"""Names that are wrapped while calls are watched are put back, also where such calls overlap in threads."""

from __future__ import annotations

import threading
import time

import pytest
import torch
from scripted_clock import ScriptedClock

from edl_labs.bench.detectors import Detection
from edl_labs.bench.detectors.wrapped_methods import all_wrapped

SLEEP = (("time", "", "sleep"),)


def noting(name, seen):
    def through(method, *args):
        seen.append(name)
        return method(*args)

    return through


@pytest.mark.parametrize("first_out", ["a", "b"])
def test_watches_that_overlap_are_each_told_and_leave_the_name_as_it_was(first_out):
    before, seen = time.sleep, []
    watches = {name: all_wrapped([(SLEEP[0], noting(name, seen))]) for name in "ab"}
    for watch in watches.values():
        watch.__enter__()
    time.sleep(0)
    watches.pop(first_out).__exit__(None, None, None)
    time.sleep(0)
    (left,) = watches
    watches.pop(left).__exit__(None, None, None)
    time.sleep(0)

    assert before is time.sleep
    assert sorted(["a", "b", left]) == sorted(seen)


def test_an_inherited_method_is_inherited_again_afterwards():
    seen = []
    paths = [("queue", "LifoQueue", "get"), ("queue", "Queue", "get")]
    import queue

    with all_wrapped([(path, noting(path[1], seen)) for path in paths]):
        waiting = queue.LifoQueue()
        waiting.put(3)
        got = waiting.get()

    assert (3, True) == (got, "LifoQueue" in seen)
    assert "get" not in vars(queue.LifoQueue)


def test_two_measurements_that_overlap_in_threads_leave_every_name_as_it_was():
    owners = ((time, "sleep"), (threading.Thread, "start"), (torch.cuda, "synchronize"), (torch.autograd, "backward"))
    before = [vars(owner).get(name) for owner, name in owners]
    a_is_in, b_is_in, a_is_out = threading.Event(), threading.Event(), threading.Event()

    def a():
        a_is_in.set()
        b_is_in.wait(20)

    def b():
        b_is_in.set()
        a_is_out.wait(20)

    def look(fn, done):
        Detection(fn, feed=None, clock=ScriptedClock(), enabled=True, cold=False, budget_s=0.4).before()
        done.set()

    first = threading.Thread(target=look, args=(a, a_is_out))
    first.start()
    a_is_in.wait(20)
    second = threading.Thread(target=look, args=(b, threading.Event()))
    second.start()
    for thread in (first, second):
        thread.join(60)

    assert before == [vars(owner).get(name) for owner, name in owners]
