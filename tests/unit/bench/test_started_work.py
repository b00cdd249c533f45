"""What a call starts and does not wait for is told by what the call does, however soon it ends."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import queue
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from scripted_clock import ScriptedClock

from edl_labs.bench.detectors import Detection
from edl_labs.bench.detectors.started_work import StartedWork


def over_before_it_is_looked_at():
    done = []
    threading.Thread(target=done.append, args=(1,)).start()
    while not done:  # the thread has ended, and nobody asked it
        pass


def child_process():
    subprocess.Popen([sys.executable, "-S", "-c", ""], stdin=subprocess.DEVNULL).args  # noqa: B018


def forked_process():
    multiprocessing.get_context("fork").Process(target=len, args=((),)).start()


def with_pool(use):
    def fn():
        pool = ThreadPoolExecutor(1)
        try:
            return use(pool)
        finally:
            pool.shutdown(wait=False)

    return fn


def joined():
    thread = threading.Thread(target=len, args=((),))
    thread.start()
    thread.join()


def polled():
    thread = threading.Thread(target=len, args=((),))
    thread.start()
    while thread.is_alive():
        pass


def told_by_an_event():
    done = threading.Event()
    threading.Thread(target=done.set).start()
    done.wait()


def given_through_a_queue():
    results = queue.Queue()
    threading.Thread(target=results.put, args=(1,)).start()
    return results.get()


def finished_process():
    return subprocess.run([sys.executable, "-S", "-c", ""], check=True, stdin=subprocess.DEVNULL)


def pool_in_a_with():
    with ThreadPoolExecutor(1) as pool:
        pool.submit(len, ())


def kinds_of(fn):
    session = Detection(fn, feed=None, clock=ScriptedClock(), enabled=True, cold=False, budget_s=0.4)
    session.before()
    return [item.kind for item in session.so_far]


@pytest.mark.parametrize(
    ("fn", "what"),
    [
        (over_before_it_is_looked_at, "a thread"),
        (child_process, "a process"),
        (forked_process, "a process"),
        (with_pool(lambda pool: pool.submit(len, ()) and None), "a task of a pool"),
    ],
)
def test_what_is_left_behind_is_found_however_soon_it_ends(fn, what):
    work = StartedWork()
    result = work.watch(fn)

    assert what == work.left_behind(result)
    assert "other_stream" in kinds_of(fn)


@pytest.mark.parametrize(
    "fn",
    [
        joined,
        polled,
        told_by_an_event,
        given_through_a_queue,
        finished_process,
        pool_in_a_with,
        with_pool(lambda pool: pool.submit(len, ()).result()),
        with_pool(lambda pool: list(pool.map(len, [()]))),
        with_pool(lambda pool: concurrent.futures.wait([pool.submit(len, ())]) and None),
        with_pool(lambda pool: [f.result() for f in concurrent.futures.as_completed([pool.submit(len, ())])]),
    ],
)
def test_what_is_waited_for_is_not(fn):
    work = StartedWork()
    result = work.watch(fn)

    assert "" == work.left_behind(result)
    assert [] == kinds_of(fn)


def test_a_task_that_is_given_to_the_caller_is_the_callers():
    work = StartedWork()
    result = work.watch(with_pool(lambda pool: pool.submit(len, ())))

    assert "" == work.left_behind(result)


def test_watching_leaves_threads_and_pools_as_they_were():
    owners = [(threading.Thread, "start"), (threading.Event, "wait"), (ThreadPoolExecutor, "submit")]
    before = [vars(owner)[name] for owner, name in owners]
    with pytest.raises(ValueError, match="stop"):
        StartedWork().watch(lambda: int("stop"))

    assert before == [vars(owner)[name] for owner, name in owners]
