"""Probes that go on from cells which ran once: each is a process of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from edl_labs.checks import Case
from edl_labs.checks.probe_process import ProbeDied, ProbeProcess

EXERCISE = """
from edl_labs.checks import Case, Exercise, exercise


@exercise("seen")
class Seen(Exercise):
    answers = "all"

    def cases(self, rng):
        return [Case(given={"x": 1})]

    def probe(self, student, given):
        return student.seen(given["x"])

    def compare(self, case, got, want):
        pass
"""
ONE = [Case(given={"x": 1})]
SHARED = [("shared", "import os\nbegun = os.getpid()\ndef seen(case): return [case, begun, os.getpid()]")]


@pytest.fixture
def forker(exercises) -> Iterator[ProbeProcess]:
    with ProbeProcess(SHARED, exercises_folder=exercises("lab90_seen", EXERCISE)) as forker:
        yield forker


def seen(worker: ProbeProcess, **options: float) -> list[int]:
    (record,) = worker.collect("seen", ONE, **options)
    return record["value"]


def test_each_goes_on_from_the_shared_cells_in_a_process_of_its_own(forker: ProbeProcess) -> None:
    with forker.fork([]) as one, forker.fork([("own", "begun = -1")]) as other:
        first, second = seen(one), seen(other)

    assert (None, None) == (one.error, other.error)
    assert -1 == second[1] != first[1]
    assert 4 == len({os.getpid(), first[1], first[2], second[2]})


def test_what_ends_one_ends_no_other(forker: ProbeProcess) -> None:
    with forker.fork([("own", "seen = lambda case: os._exit(0)")]) as dying, forker.fork([]) as other:
        with pytest.raises(ProbeDied):
            seen(dying)

        assert 1 == seen(other)[0]


def test_an_endless_loop_is_ended(forker: ProbeProcess) -> None:
    with forker.fork([("own", "def seen(case):\n    while True: pass")]) as endless, pytest.raises(ProbeDied):
        seen(endless, timeout_s=0.5)


def test_the_first_cell_that_failed_is_named(exercises, forker: ProbeProcess) -> None:
    own, shared = [("own", "1 / 0")], [("shared", "1 / 0")]
    with forker.fork(own) as wrong, ProbeProcess(shared) as broken, broken.fork([]) as late:
        assert "own: ZeroDivisionError: division by zero" == wrong.error
        assert "shared: ZeroDivisionError: division by zero" == late.error


def test_a_fork_computes_in_parallel_what_its_origin_did(exercises, monkeypatch) -> None:
    """GNU's OpenMP waits in a fork for the threads of its origin, whatever number of them the environment asks for."""
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    summed = "import torch\ndef seen(case): return float(torch.ones(2000, 2000).mul(2).sum())\nseen(1)"
    folder = exercises("lab90_seen", EXERCISE)
    with ProbeProcess([("shared", summed)], exercises_folder=folder) as forker, forker.fork([]) as fork:
        (record,) = fork.collect("seen", ONE, timeout_s=30)

    assert {"value": 8e6} == record


def test_one_from_an_origin_that_has_ended_says_so(forker: ProbeProcess) -> None:
    forker.__exit__()

    with pytest.raises(ProbeDied, match="it had already ended"):
        forker.fork([]).__enter__()


def test_no_process_is_left(forker: ProbeProcess) -> None:
    with forker.fork([]) as one, forker.fork([]) as other:
        begun, first = seen(one)[1:]
        second = seen(other)[2]
        one.__exit__()

        assert not is_alive(first)
        assert is_alive(second)
    forker.__exit__()

    assert [False, False] == [is_alive(second), is_alive(begun)]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
