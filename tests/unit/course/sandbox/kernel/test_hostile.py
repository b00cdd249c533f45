"""Whatever a notebook does, the judge is back in time, and the next kernel works."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from edl_labs.course.sandbox.kernel import KernelDied, SandboxKernel, Violation
from tests.sampling import few

TIMEOUT_S = 3.0
# Time for a loaded machine to end what must end; nothing here measures speed.
LATE_S = 60.0

DIES = {
    "leaves at once": ("import os; os._exit(0)", "exit 0"),
    "leaves with a status": ("import os; os._exit(7)", "exit 7"),
    "segmentation fault": ("import ctypes; ctypes.string_at(0)", "signal 11"),
    "kills itself": ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "signal 9"),
    "fork bomb": ("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", "processes"),
    "many empty files": ("n = 0\nwhile True:\n    open(f'f{n}', 'w').close(); n += 1", "files"),
    "memory of many processes": (
        "import os, time\nfor _ in range(6):\n    if os.fork() == 0:\n        x = bytearray(b'x') * (200 << 20)\n"
        "        time.sleep(100)\ntime.sleep(100)",
        "memory",
    ),
    "shared memory": (
        "import mmap, time\nheld = []\nfor _ in range(40):\n    held.append(mmap.mmap(-1, 64 << 20))\n"
        "    held[-1].write(b'x' * (64 << 20))\ntime.sleep(100)",
        "memory",
    ),
}


@pytest.mark.parametrize("name", DIES)
def test_a_kernel_that_dies_says_how(pool, name):
    code, reason = DIES[name]
    with pool.kernel() as kernel, pytest.raises(KernelDied) as died:
        kernel.run(code, timeout_s=LATE_S)

    assert reason == died.value.reason
    assert works(pool.kernel())


@pytest.mark.parametrize("wall_s", few([10 * LATE_S, None], quick=1))
def test_a_kernel_that_stops_itself_is_not_waited_for(pool, wall_s):
    """Its cost to the class is the watch's second, not its time: a probe's is minutes."""
    with pool.kernel() as kernel, pytest.raises(KernelDied) as died:
        kernel.answer("import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", timeout_s=LATE_S, wall_s=wall_s)

    assert "stopped" == died.value.reason
    assert works(pool.kernel())


def test_a_kernel_that_kills_everything_harms_itself_alone(pool):
    with pool.kernel() as kernel, contextlib.suppress(KernelDied):
        kernel.run("import os; os.kill(-1, 9)", timeout_s=LATE_S)

    assert works(pool.kernel())


BROKEN = {
    "swallows the interrupt": (
        "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass",
        "deadline",
    ),
    "stops itself": ("import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", "deadline"),
    "a loop that no interrupt gets into": ("sum(range(10**15))", "deadline"),
    "endless frames": (
        "import zmq\nsend = get_ipython().kernel.iopub_thread.socket.send\n"
        "while True: send(b'x' * 50_000, zmq.SNDMORE)",
        "bytes",
    ),
    "closes its descriptors": ("import os; os.closerange(3, 500)\nimport time; time.sleep(100)", "deadline"),
}


QUICK = ("endless frames",)


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in BROKEN])
def test_a_kernel_that_does_not_yield_is_ended(pool, name):
    code, kind = BROKEN[name]
    kernel = pool.kernel()
    began_s = time.monotonic()
    with pytest.raises((Violation, KernelDied)) as broke:
        kernel.run(code, timeout_s=TIMEOUT_S)

    assert time.monotonic() - began_s < LATE_S
    # Where the interrupt got through after all, the error says that the kernel lives.
    assert kernel.alive == getattr(broke.value, "alive", False)
    assert not isinstance(broke.value, Violation) or broke.value.kind in (kind, "protocol", "deadline")
    kernel.close()
    assert works(pool.kernel())


FLOODS = {
    # Flushed: what ipykernel has not yet sent is memory of the kernel's, and ends as a MemoryError of the cell.
    "prints": ("while True: print('x' * 100_000, flush=True)", "bytes"),
    "displays": ("while True: display(1)", "messages"),
    "one display of 100 MB": ("display({'text/plain': 'x' * (100 << 20)}, raw=True)", "bytes"),
}


@pytest.mark.parametrize("name", few(["prints", "one display of 100 MB", "displays"], quick=2))
def test_a_flood_is_refused(pool, name):
    code, kind = FLOODS[name]
    with pool.kernel() as kernel, pytest.raises(Violation) as broke:
        kernel.run(code, timeout_s=LATE_S)

    assert kind == broke.value.kind
    assert broke.value.result is not None
    assert works(pool.kernel())


SPEAKS = "session, iopub = get_ipython().kernel.session, get_ipython().kernel.iopub_socket\n"
FORGERIES = {
    "idle too early": SPEAKS
    + "session.send(iopub, 'status', {'execution_state': 'idle'}, parent=get_ipython().parent_header)",
    "an answer before the probe": SPEAKS
    + "session.send(iopub, 'edl_answer', {'nonce': '0' * 32}, parent=get_ipython().parent_header, buffers=[b'1'])",
    "messages that are none": SPEAKS
    + "for junk in ([b'x'], [b''] * 40, [b'<IDS|MSG>'] * 7): iopub.send_multipart(junk)",
    "a transformer that empties cells": "get_ipython().input_transformers_cleanup.append(lambda lines: [])",
    "a reply of its own": SPEAKS
    + "session.send(get_ipython().kernel.shell_stream.socket, 'execute_reply', {'status': 'ok'}, ident=b'judge')",
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_never_becomes_the_answer_of_a_later_probe(pool, name):
    with pool.kernel() as kernel:
        try:
            kernel.run(FORGERIES[name], timeout_s=TIMEOUT_S)
            answer = kernel.ask("answer(b'true')", timeout_s=TIMEOUT_S)
        except (Violation, KernelDied):
            answer = b"true"

    assert b"true" == answer
    assert works(pool.kernel())


def test_an_answer_sent_by_the_students_code_makes_two(pool):
    patch = SPEAKS + textwrap.dedent(
        """
        true_send = session.send
        def send(stream, kind, *rest, **more):
            if kind == 'edl_answer':
                true_send(stream, kind, *rest, **{**more, 'buffers': [b'forged']})
            return true_send(stream, kind, *rest, **more)
        session.send = send
        """
    )
    with pool.kernel() as kernel:
        kernel.run(patch, timeout_s=TIMEOUT_S)
        with pytest.raises(Violation) as refused:
            kernel.ask("answer(b'true')", timeout_s=TIMEOUT_S)

    assert "two answers" == refused.value.kind


def test_a_thread_that_prints_for_ever_does_not_keep_later_cells_from_ending(pool):
    with pool.kernel() as kernel:
        kernel.run(
            "import threading, time\n"
            "def talk():\n    while True: print('noise', flush=True); time.sleep(0.01)\n"
            "threading.Thread(target=talk, daemon=True).start()",
            timeout_s=TIMEOUT_S,
        )
        result = kernel.run("time.sleep(0.3); 1", timeout_s=20)

    assert result.ok
    assert ["1"] == [output["data"]["text/plain"] for output in result.outputs if "data" in output]


def test_nothing_outlives_its_kernel(pool):
    mark = f"edl-daemon-{os.getpid()}"
    kernel = pool.kernel()
    kernel.run(
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n"
        f"    os.execvp('sleep', ['{mark}', '600'])\ntime.sleep(0.5)",
        timeout_s=20,
    )
    during = running(mark)
    kernel.close()

    assert (True, True) == (during, gone(mark))


@pytest.mark.slow
def test_a_judge_that_is_killed_leaves_nothing(tmp_path):
    from tests.unit.course.sandbox.kernel.conftest import require_namespaces

    require_namespaces()
    mark = f"edl-orphan-{os.getpid()}"
    script = textwrap.dedent(
        f"""
        import time
        from edl_labs.course.sandbox.kernel import KernelPool
        from edl_labs.course.sandbox import Level
        pool = KernelPool(level=Level.NAMESPACES, preload=())
        kernels = [pool.kernel() for _ in range(3)]
        for kernel in kernels:
            kernel.run("import os\\nif os.fork() == 0: os.execvp('sleep', ['{mark}', '600'])", timeout_s=20)
        print("ready", flush=True)
        time.sleep(600)
        """
    )
    judge = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, cwd=Path(__file__).parents[5])
    assert judge.stdout is not None
    said = judge.stdout.readline()
    judge.send_signal(signal.SIGKILL)
    judge.wait()
    judge.stdout.close()

    assert b"ready\n" == said
    assert gone(mark)


def works(kernel: SandboxKernel) -> bool:
    with kernel:
        return kernel.run("1", timeout_s=LATE_S).ok


def running(mark: str) -> bool:
    for pid in os.listdir("/proc"):
        if pid.isdigit():
            try:
                if mark in Path("/proc", pid, "cmdline").read_text():
                    return True
            except OSError:
                continue
    return False


def gone(mark: str) -> bool:
    deadline_s = time.monotonic() + LATE_S
    while running(mark):
        if time.monotonic() > deadline_s:
            return False
        time.sleep(0.1)
    return True
