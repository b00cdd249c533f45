"""What counts of a request's time: computing and sleeping, not waiting for a core, and never more than the bound."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from edl_labs.checks.reference_calls import answered
from edl_labs.course.sandbox.kernel import Violation
from edl_labs.course.sandbox.kernel.spawned import ResourceUse, TimeBudget

OWN_S, WALL_S = 2.0, 20.0
START = ResourceUse(wall_s=100.0, cpu_s=7.0, waited_s=3.0)


def left_s(*, wall_s: float, cpu_s: float = 0.0, waited_s: float = 0.0, cores: int = 2) -> float:
    now = ResourceUse(START.wall_s + wall_s, START.cpu_s + cpu_s, START.waited_s + waited_s)
    return TimeBudget(OWN_S, WALL_S, START, cores).left_s(now)


def test_sleeping_is_the_answers_own_time():
    assert 0 == left_s(wall_s=2.0)


def test_waiting_for_a_core_is_not():
    assert 1.5 == left_s(wall_s=2.0, cpu_s=0.5, waited_s=1.5)


def test_computing_is_wherever_it_takes_place():
    assert 0 == left_s(wall_s=12.0, cpu_s=2.0, waited_s=10.0, cores=1)


def test_many_threads_that_wait_for_one_another_gain_nothing():
    assert 0 >= left_s(wall_s=2.0, cpu_s=4.0, waited_s=60.0)


def test_the_clock_on_the_wall_has_the_last_word():
    assert 0 >= left_s(wall_s=WALL_S, waited_s=WALL_S)


def test_waits_of_threads_that_have_ended_take_nothing_away():
    assert 1.0 == left_s(wall_s=1.0, waited_s=-3.0)


@pytest.fixture
def crowd() -> Iterator[int]:
    """A core on which four others compute without end."""
    core = min(os.sched_getaffinity(0))
    code = f"import os\nos.sched_setaffinity(0, {{{core}}})\nprint(flush=True)\nwhile True: pass"
    command = [sys.executable, "-S", "-c", code]
    others = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(4)]
    for other in others:
        assert other.stdout is not None
        other.stdout.readline()
    yield core
    for other in others:
        other.kill()
        other.communicate()


COMPUTES = "import time\nwhile time.process_time() < {end}: pass\nanswer(b'done')"


def computing(kernel, *, cpu_s: float) -> str:
    spent_s = float(kernel.ask("import time; answer(str(time.process_time()).encode())", timeout_s=60))
    return COMPUTES.format(end=spent_s + cpu_s)


@pytest.mark.slow
def test_an_answer_that_has_a_fifth_of_a_core_has_its_time_all_the_same(kernel, crowd):
    code = computing(kernel, cpu_s=0.6)
    os.sched_setaffinity(kernel.pid, {crowd})

    with pytest.raises(Violation, match="deadline"):
        kernel.answer(code, timeout_s=1.0)
    code = computing(kernel, cpu_s=0.6)

    assert b"done" == kernel.answer(code, timeout_s=1.0, wall_s=60.0).data


CALLS = """
from edl_labs.checks.reference_calls import Channel, RemoteFunction
answer(str(RemoteFunction("twice", Channel(shell.kernel.edl_calls))(21)).encode())
"""


@pytest.mark.slow
def test_what_is_answered_for_it_takes_none_of_its_time(kernel):
    def serve(request: bytes) -> bytes:
        time.sleep(1.5)
        return answered(request, {"twice": lambda value: 2 * value})

    assert b"42" == kernel.answer(CALLS, timeout_s=1.0, wall_s=60.0, serve=serve).data


def test_an_answer_that_sleeps_ends(kernel, crowd):
    with pytest.raises(Violation) as refused:
        kernel.answer("import time; time.sleep(3600)", timeout_s=0.3, wall_s=3600.0)

    assert ("deadline", True) == (refused.value.kind, refused.value.alive)


def test_an_answer_that_computes_without_end_ends(kernel):
    with pytest.raises(Violation, match="deadline"):
        kernel.answer("while True: pass", timeout_s=0.3, wall_s=3600.0)
