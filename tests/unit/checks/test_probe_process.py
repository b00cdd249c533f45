"""A fork of the process that probes: its time is kept, and it ends with those who asked for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from edl_labs.checks import Case
from edl_labs.checks.probe_process import ProbeProcess
from tests.unit.checks import course

# A minute is the limit of nothing here: only what is wrong waits so long.
_LONG_S = 60.0
THREE = [Case(given={"x": 3.0})]
_ASKER = """
import sys
from pathlib import Path
from edl_labs.checks.probe_process import ProbeProcess

folder, endless = sys.argv[1:]
with ProbeProcess([], exercises_folder=Path(folder)) as worker:
    worker.collect_each("double", [], changed=[[("solve", endless)]], cpu_s=600, wall_s=600)
"""


def endless(told: Path) -> str:
    """A cell that writes its process's number into `told`, and its parent's, and never ends."""
    return (
        "import os\nfrom pathlib import Path\n"
        f"part = Path({str(told) + '.part'!r})\npart.write_text(f'{{os.getpid()}} {{os.getppid()}}')\n"
        f"part.rename({str(told)!r})\nwhile True:\n    pass\n"
    )


def wait_for(is_so) -> bool:
    end_s = time.monotonic() + _LONG_S
    while not is_so() and time.monotonic() < end_s:
        time.sleep(0.02)
    return is_so()


def is_gone(number: int) -> bool:
    """Whether a process has ended; one that nobody has waited for yet has."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.fixture
def asked(numbers: Path, tmp_path: Path):
    """Who asked for a fork that never ends, the process that forked, and the fork."""
    told = tmp_path / "told"
    asker = subprocess.Popen([sys.executable, "-c", _ASKER, str(numbers), endless(told)], stderr=subprocess.DEVNULL)
    processes = []
    try:
        assert wait_for(told.exists)
        fork, worker = processes = [int(number) for number in told.read_text().split()]
        yield asker, worker, fork
    finally:
        asker.kill()
        asker.wait()
        for number in processes:
            if not is_gone(number):
                os.kill(number, signal.SIGKILL)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_fork_ends_when_who_asked_for_it_is_killed(asked, number: signal.Signals) -> None:
    asker, worker, fork = asked

    asker.send_signal(number)

    assert wait_for(lambda: is_gone(fork) and is_gone(worker))


def test_a_fork_ends_when_the_process_that_made_it_is_killed(asked) -> None:
    _, worker, fork = asked

    os.kill(worker, signal.SIGKILL)

    assert wait_for(lambda: is_gone(fork))


def test_a_fork_that_sleeps_through_its_alarm_is_ended_and_the_next_one_answers(numbers: Path) -> None:
    deaf = "import signal, time\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)\ntime.sleep(600)\n"
    with ProbeProcess(course.SOLUTION, exercises_folder=numbers, timeout_s=_LONG_S) as worker:
        began_s = time.monotonic()
        assert worker.collect_each("double", [], changed=[[("solve", deaf)]], cpu_s=5, wall_s=0.5) is None
        assert time.monotonic() - began_s < _LONG_S / 2

        records = worker.collect_each("double", THREE, changed=[[], []], cpu_s=5, wall_s=_LONG_S)
        assert records == [[{"value": {"y": 6.0}}]] * 2


def test_a_long_answer_of_a_fork_comes_whole(numbers: Path) -> None:
    long = "def double(x):\n    return 'y' * 3_000_000\n"
    with ProbeProcess(course.SOLUTION, exercises_folder=numbers) as worker:
        records = worker.collect_each("double", THREE, changed=[[("solve", long)]], cpu_s=5, wall_s=_LONG_S)

    assert records == [[{"value": {"y": "y" * 3_000_000}}]]
