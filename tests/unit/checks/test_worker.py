"""A process that answers requests: what it says, how its end is told, and what its forks keep of it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from edl_labs.checks.worker import Worker, WorkerGone, wall_clock

SERVER = """
import os, time

def counting(start):
    seen = [int(start)]

    def answer(parts):
        seen[0] += 1
        exec(parts[0].decode(), {"os": os, "time": time})
        return str(seen[0]).encode() + b"".join(parts[1:])

    return answer

def broken():
    1 / 0
"""
_LONG_S = 60.0  # the limit of nothing here: only what is wrong waits so long


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Callable[..., Worker]]:
    """Starts workers of the server above, and ends them."""
    (tmp_path / "counted.py").write_text(SERVER)
    workers: list[Worker] = []

    def start(name: str = "counting", *arguments: str) -> Worker:
        workers.append(Worker.start(f"counted:{name}", *arguments, cwd=tmp_path))
        return workers[-1]

    yield start
    for worker in workers:
        worker.close()


def said(worker: Worker, code: str = "", *more: bytes, limit_s: float = _LONG_S) -> bytes:
    return worker.ask(code.encode(), *more, left_s=wall_clock(limit_s))


def test_parts_of_any_length_arrive_whole(started):
    worker = started("counting", "7")

    assert b"8" == said(worker)
    assert b"9" + b"x" * 3_000_000 + b"y" == said(worker, "", b"x" * 3_000_000, b"", b"y")


@pytest.mark.parametrize(
    ("ends", "told"),
    [
        ("os._exit(77)", "took too much memory"),
        ("raise MemoryError", "took too much memory"),
        ("os._exit(3)", "ended with exit code 3"),
        ("1 / 0", "ended with exit code 1"),
        ("os.kill(os.getpid(), 9)", "was killed (SIGKILL), as happens when a machine runs out of memory"),
        ("os.kill(os.getpid(), 11)", "was ended by SIGSEGV"),
        ("os.kill(os.getpid(), 40)", "was ended by signal 40"),
    ],
)
def test_how_a_process_ended_is_told_from_its_status(started, ends: str, told: str):
    worker = started("counting", "0")

    with pytest.raises(WorkerGone) as gone:
        said(worker, ends)
    assert (told, False, False) == (gone.value.reason, gone.value.late, worker.is_open)


def test_one_that_answers_too_late_is_ended(started):
    worker = started("counting", "0")
    said(worker)

    with pytest.raises(WorkerGone) as gone:
        said(worker, "time.sleep(600)", limit_s=0.2)
    assert ("took too long", True) == (gone.value.reason, gone.value.late)
    with pytest.raises(ProcessLookupError):
        os.kill(worker.pid, 0)


def test_one_that_does_not_start_says_so(started):
    with pytest.raises(WorkerGone, match="exit code 1"):
        started("broken").wait(wall_clock(_LONG_S))


def test_one_that_ended_while_nobody_asked_does_not_live(started):
    worker = started("counting", "0")
    assert worker.lives
    said(worker)
    assert worker.lives

    os.kill(worker.pid, signal.SIGKILL)
    end_s = time.monotonic() + _LONG_S
    while worker.lives and time.monotonic() < end_s:
        time.sleep(0.01)

    assert not worker.lives


def test_a_fork_goes_on_from_its_origin_and_changes_nothing_there(started):
    origin = started("counting", "0")
    assert b"1" == said(origin)

    with closing(origin.fork()) as one, closing(origin.fork()) as other:
        assert [b"2", b"3", b"2"] == [said(one), said(one), said(other)]
        assert b"2" == said(origin)
    assert not one.is_open


def test_how_a_fork_ended_is_told_and_its_origin_goes_on(started):
    origin = started("counting", "0")

    with pytest.raises(WorkerGone, match="exit code 5"):
        said(origin.fork(), "os._exit(5)")
    with pytest.raises(WorkerGone, match="took too long"):
        said(origin.fork(), "time.sleep(600)", limit_s=0.2)
    assert b"1" == said(origin)


def test_a_fork_has_its_limits(started):
    origin = started("counting", "0")

    with pytest.raises(WorkerGone, match="SIGKILL"):
        said(origin.fork(cpu_s=1), "while True: pass")
    with pytest.raises(WorkerGone, match="too much memory"):
        said(origin.fork(memory_bytes=256 << 20), "held = bytearray(1 << 30)")


def test_what_a_process_starts_does_not_hold_its_line(started):
    worker = started("counting", "0")

    with pytest.raises(WorkerGone, match="exit code 4"):
        said(worker, "os.fork() or time.sleep(20); os._exit(4)")
