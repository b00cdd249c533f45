"""The judge's side of one sandboxed kernel: bounded in time, messages and bytes, whatever comes."""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

from edl_labs.course.sandbox.kernel.cell_outputs import CellResult, execute_content, read_message
from edl_labs.course.sandbox.kernel.exchange import ANSWER_KIND, Exchange, KernelDied, Serve, Violation
from edl_labs.course.sandbox.kernel.spawned import Spawned, TimeBudget
from edl_labs.course.sandbox.kernel.zmtp import Wire, WireError
from edl_labs.course.sandbox.limits import MIB, Limits

if TYPE_CHECKING:
    from jupyter_client.session import Session


_DYING_S = 2.0  # a connection closes first; the end of its process is seen milliseconds later
_ENVELOPE_BYTES = 1 << 16  # the headers around an answer take below 2 kB
_LOOK_S = 0.05  # between two looks at what a kernel that is late has taken
_HELLO_S = 0.2  # a kernel answers in milliseconds, but what it says before our subscription reached it is lost
# Runs in the kernel, in a namespace of its own; `code` finds the payload, the student's names, and where to answer.
_ASK = """
def _make():
    kernel = shell.kernel
    parent = kernel.get_parent("shell")
    def answer(data, send=kernel.session.send, nonce=nonce):
        send(kernel.iopub_socket, {kind!r}, {{"nonce": nonce}}, parent=parent, buffers=[memoryview(data)])
    payload = bytes(parent["buffers"][0])
    return {{"__name__": "check", "payload": payload, "answer": answer, "student": shell.user_ns, "shell": shell}}
_space = _make()
exec(compile(code, "<check>", "exec"), _space)
"""


@dataclass(frozen=True)
class Answer:
    """A probe's answer, seconds from sending the request to having its bytes, and what the probe put out."""

    data: bytes
    elapsed_s: float
    result: CellResult


@dataclass(frozen=True)
class KernelStats:
    """What a kernel has taken: CPU seconds of all its processes, the highest memory seen, processes now."""

    cpu_s: float
    max_rss_bytes: int
    processes: int


class SandboxKernel:
    """A fresh ipykernel in a sandbox. `run` its cells, `ask` it probes; close it, or use it in a `with`.

    Every call ends within its deadline and the limits' grace. After KernelDied, or a Violation that is not `alive`,
    the kernel is gone and only `stats` and `close` are left.
    """

    def __init__(self, spawned: Spawned, *, session: Session, limits: Limits) -> None:
        self._spawned, self._session, self._limits = spawned, session, limits
        self._shell, self._iopub, self._calls = spawned.shell, spawned.iopub, spawned.calls
        self._poll = select.poll()
        self._handles = set(spawned.handles)
        for fd in (self._shell.fileno(), self._iopub.fileno(), *self._handles):
            self._poll.register(fd, select.POLLIN)
        self._read_at_most(0)
        self._notebook_bytes = 0
        self._last: dict[str, Any] = {}
        self.alive = True

    def __enter__(self) -> SandboxKernel:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """The kernel's process number on this machine, outside its sandbox."""
        return self._spawned.pid

    def run(self, code: str, *, timeout_s: float) -> CellResult:
        """The outputs of `code`, run as a notebook's cell. Status "timeout" when interrupting it was needed, and did.

        Violation when it broke a limit or did not yield to the interrupt; KernelDied when the kernel is gone.
        """
        return self._request(code, timeout_s=timeout_s).result()

    def ask(self, code: str, payload: bytes = b"", *, timeout_s: float, max_bytes: int = 64 * MIB) -> bytes:
        """The one answer that `code` gives to `payload`; see `answer`."""
        return self.answer(code, payload, timeout_s=timeout_s, max_bytes=max_bytes).data

    def answer(
        self,
        code: str,
        payload: bytes = b"",
        *,
        timeout_s: float,
        wall_s: float | None = None,
        max_bytes: int = 64 * MIB,
        serve: Serve | None = None,
    ) -> Answer:
        """The one answer that `code` gives to `payload`, with its time.

        `code` runs in the student's process as an ordinary request, in a namespace of its own with `payload` (bytes),
        `student` (the notebook's names), `shell`, and `answer(data)`, to be called once with bytes. It leaves no name
        and no history. `serve` answers calls that come meanwhile on the kernel's third channel, the descriptor
        `shell.kernel.edl_calls`. With `wall_s`, neither waiting for a core nor what `serve` takes counts towards
        `timeout_s`, up to `wall_s`. Violation when there is not exactly one answer with this request's nonce, or a
        limit is broken.
        """
        nonce = secrets.token_hex(16)
        exchange = self._request(
            _asking(code, nonce),
            timeout_s=timeout_s,
            wall_s=wall_s,
            buffers=[payload],
            nonce=nonce,
            answer_bytes=max_bytes,
            serve=serve,
        )
        if exchange.interrupted:
            raise Violation("deadline", why=f"no answer within {timeout_s} s", alive=True, result=exchange.result())
        return Answer(exchange.only_answer(), exchange.answered_s, exchange.result())

    def interrupt(self) -> None:
        """KeyboardInterrupt in whatever the kernel is doing."""
        self._signal(signal.SIGINT)

    def stats(self) -> KernelStats:
        """What the kernel has taken so far; after its end, what it had taken."""
        self._report()
        return KernelStats(
            float(self._last.get("cpu_s", 0.0)),
            int(self._last.get("peak_bytes", 0)),
            int(self._last.get("processes", 0)),
        )

    def close(self) -> None:
        """End the kernel and all that it started; nothing of it is left when this returns."""
        self.alive = False
        if not self._spawned.closed:
            self._last = self._spawned.stop()

    def greet(self, deadline: float) -> None:
        """Wait until the kernel answers and its output channel is heard; KernelDied when it does not by `deadline`."""
        while time.monotonic() < deadline:
            if self._greeted(min(deadline, time.monotonic() + _HELLO_S)):
                return
        raise KernelDied("it did not start in time")

    def _greeted(self, deadline: float) -> bool:
        message = self._session.msg("kernel_info_request", {})
        exchange = Exchange(message["header"]["msg_id"], self._limits)
        self._send(message, [])
        return self._pump(exchange, deadline, until=lambda: exchange.idle)

    def _request(
        self,
        code: str,
        *,
        timeout_s: float,
        wall_s: float | None = None,
        buffers: Sequence[bytes] = (),
        nonce: str = "",
        answer_bytes: int = 0,
        serve: Serve | None = None,
    ) -> Exchange:
        if not self.alive:
            raise KernelDied("it was ended earlier")
        message = self._session.msg("execute_request", execute_content(code, counted=not nonce))
        exchange = Exchange(
            message["header"]["msg_id"], self._limits, nonce=nonce, answer_bytes=answer_bytes, serve=serve
        )
        self._read_at_most(answer_bytes)
        try:
            allowance = self._spawned.allowance(timeout_s, wall_s)
            self._send(message, buffers)
            self._finish(exchange, allowance)
        except Violation as broken:
            broken.result = exchange.result()
            if not broken.alive:
                self.close()
            raise
        except KernelDied as died:
            died.result = exchange.result()
            self.close()
            raise
        return exchange

    def _read_at_most(self, answer_bytes: int) -> None:
        for wire in (self._shell, self._iopub):
            wire.message_bytes = max(self._limits.message_bytes, answer_bytes + _ENVELOPE_BYTES)

    def _ended(self, exchange: Exchange, allowance: TimeBudget) -> bool:
        """Whether the request came to its end, or broke a rule, in its own time."""
        left_s = allowance.own_s
        while not self._pump(
            exchange, time.monotonic() + left_s, until=lambda: exchange.finished or exchange.broken is not None
        ):
            if allowance.wall_s <= allowance.own_s:
                return False
            left_s = allowance.left_s(self._spawned.taken(beside_s=exchange.served_s))
            if left_s <= 0:
                return False
            left_s = max(left_s, _LOOK_S)
        return True

    def _finish(self, exchange: Exchange, allowance: TimeBudget) -> None:
        """Wait for the end of the request; interrupt it when its time is over; give up on it after the grace."""
        if self._ended(exchange, allowance):
            if exchange.broken is None:
                return
        else:
            exchange.interrupted = True
        self.interrupt()
        if not self._pump(exchange, time.monotonic() + self._limits.grace_s, until=lambda: exchange.finished):
            raise exchange.broken or Violation(
                "deadline", why=f"it did not finish within {allowance.own_s} s, and could not be interrupted"
            )
        if exchange.broken is not None:
            exchange.broken.alive = True
            raise exchange.broken

    def _send(self, message: dict[str, Any], buffers: Sequence[bytes]) -> None:
        self._shell.send([*self._session.serialize(message), *buffers])

    def _pump(self, exchange: Exchange, deadline: float, *, until: Callable[[], bool]) -> bool:
        """Read and send until `until()` or `deadline`; whether it came true."""
        try:
            return self._pumped(exchange, deadline, until)
        finally:
            with contextlib.suppress(KeyError, ValueError):
                self._poll.unregister(self._calls.fileno())

    def _pumped(self, exchange: Exchange, deadline: float, until: Callable[[], bool]) -> bool:
        while not until():
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return False
            for wire in (self._shell, self._iopub):
                self._poll.modify(wire.fileno(), select.POLLIN | (select.POLLOUT if wire.sending else 0))
            if exchange.serve is not None:
                self._poll_calls()
            ready = {fd for fd, _ in self._poll.poll(left_s * 1000)}
            self._step(exchange, ready)
        return True

    def _poll_calls(self) -> None:
        if self._calls.open:
            self._poll.register(self._calls.fileno(), select.POLLIN | (select.POLLOUT if self._calls.sending else 0))
        else:
            with contextlib.suppress(KeyError):
                self._poll.unregister(self._calls.fileno())

    def _step(self, exchange: Exchange, ready: set[int]) -> None:
        if exchange.serve is not None and self._calls.fileno() in ready:
            began_s = time.monotonic()
            self._calls.step(exchange.serve)
            exchange.served_s += time.monotonic() - began_s
        try:
            for wire in (self._shell, self._iopub):
                if wire.fileno() in ready:
                    wire.flush()
                    self._read(wire, exchange)
        except WireError as error:
            self._wait_for_death()
            raise Violation("protocol", why=str(error)) from error
        if ready & self._handles:
            self._drain(exchange)
            raise KernelDied(self._death())

    def _read(self, wire: Wire, exchange: Exchange) -> int:
        before = wire.received_bytes
        take = exchange.take_reply if wire is self._shell else exchange.take_broadcast
        for received in wire.receive():
            exchange.count(messages=1, received_bytes=0)
            if message := read_message(received):
                take(message)
        received_bytes = wire.received_bytes - before
        exchange.count(messages=0, received_bytes=received_bytes)
        self._notebook_bytes += received_bytes
        if self._notebook_bytes > self._limits.notebook_bytes:
            raise Violation("bytes", why=f"more than {self._limits.notebook_bytes} bytes in one notebook")
        return received_bytes

    def _drain(self, exchange: Exchange) -> None:
        """Take what a dead kernel had still said."""
        try:
            while self._read(self._iopub, exchange):
                pass
        except (WireError, Violation):
            pass

    def _wait_for_death(self) -> None:
        """A closed connection is how a dying kernel is often seen first."""
        gone = select.poll()
        for fd in self._handles:
            gone.register(fd, select.POLLIN)
        if gone.poll(_DYING_S * 1000):
            raise KernelDied(self._death())

    def _death(self) -> str:
        """How the kernel ended, in a word or two."""
        report = self._report()
        if report.get("over"):
            return str(report["over"])
        status = report.get("status")
        if status is None:
            return "sandbox ended"
        if not os.WIFSIGNALED(status):
            return f"exit {os.waitstatus_to_exitcode(status)}"
        return "cpu" if os.WTERMSIG(status) == signal.SIGXCPU else f"signal {os.WTERMSIG(status)}"

    def _report(self) -> dict[str, Any]:
        if not self._spawned.closed:
            self._last = self._spawned.report()
        return self._last

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._spawned.kernel_handle, number)


def _asking(code: str, nonce: str) -> str:
    """A cell of one line that runs `code` with what `answer` promises it."""
    text = _ASK.format(kind=ANSWER_KIND)
    return f"exec({text!r}, {{'code': {code!r}, 'nonce': {nonce!r}, 'shell': get_ipython()}})"
