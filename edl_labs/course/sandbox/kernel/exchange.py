"""One request to a kernel, what came back, counted as it comes, and what the kernel can do to it."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from edl_labs.course.sandbox.kernel.cell_outputs import CellResult, Message, Outputs
from edl_labs.course.sandbox.limits import Limits
from edl_labs.errors import EdlError

if TYPE_CHECKING:
    from edl_labs.course.sandbox.kernel.cell_outputs import CellResult


class Violation(EdlError):
    """A request broke a rule. `kind` names it; while `alive`, the kernel can be asked again.

    Kinds: "deadline", "messages", "bytes" (`alive` when an interrupt ended the cell), "protocol" (the kernel is ended),
    "no answer", "two answers", "forged answer", "large answer" (the kernel lives on).
    `result` is what the cell had put out by then.
    """

    def __init__(self, kind: str, *, why: str = "", alive: bool = False, result: CellResult | None = None) -> None:
        super().__init__(f"the kernel broke a rule: {kind}", why=why)
        self.kind, self.alive, self.result = kind, alive, result


class KernelDied(EdlError):
    """The kernel is gone. `reason` says how: "memory", "files", "processes", "cpu", "stopped", "signal 11", "exit 0",
    "sandbox ended"."""

    def __init__(self, reason: str, *, result: CellResult | None = None) -> None:
        super().__init__(f"the kernel died: {reason}")
        self.reason, self.result = reason, result


ANSWER_KIND = "edl_answer"
Serve = Callable[[bytes], bytes]
_HEAD = 8  # bytes of a call's length
_READ_BYTES = 1 << 18  # one read costs little beside the copy of so much
_CALL_BYTES = 16 << 20  # above what an honest caller sends, which refuses half of that itself


class CallLine:
    """Calls from code in a kernel, one after another: each is read, served, and its answer sent without waiting."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._socket.setblocking(False)
        self._came, self._leaves = bytearray(), bytearray()
        self.open = True

    def fileno(self) -> int:
        """The descriptor to poll."""
        return self._socket.fileno()

    @property
    def sending(self) -> bool:
        """Whether bytes wait to be sent: poll for writing too."""
        return bool(self._leaves)

    def step(self, serve: Serve) -> None:
        """Send what the kernel takes, read what it says, serve calls that are whole. Violation for one too large."""
        self._came += self._exchanged()
        while len(self._came) >= _HEAD:
            size = int.from_bytes(self._came[:_HEAD], "little")
            if size > _CALL_BYTES:
                raise Violation("bytes", why=f"a call of {size} bytes")
            if len(self._came) < _HEAD + size:
                return
            answer = serve(bytes(self._came[_HEAD : _HEAD + size]))
            del self._came[: _HEAD + size]
            self._leaves += len(answer).to_bytes(_HEAD, "little") + answer
            self._flush()

    def _exchanged(self) -> bytes:
        try:
            self._flush()
            data = self._socket.recv(_READ_BYTES)
        except BlockingIOError:
            return b""
        except OSError:
            data = b""
        self.open = bool(data)
        return data

    def _flush(self) -> None:
        with contextlib.suppress(OSError):
            del self._leaves[: self._socket.send(self._leaves) if self._leaves else 0]

    def close(self) -> None:
        """Hang up."""
        self._socket.close()


@dataclass
class Exchange:
    """The state of one request."""

    parent: str
    limits: Limits
    nonce: str = ""
    answer_bytes: int = 0
    serve: Serve | None = None
    messages: int = 0
    received_bytes: int = 0
    reply: dict[str, Any] | None = None
    idle: bool = False
    interrupted: bool = False
    answers: list[bytes] = field(default_factory=list)
    forged: bool = False
    large: bool = False
    broken: Violation | None = None
    answered_s: float = 0.0
    served_s: float = 0.0
    began_s: float = field(default_factory=time.perf_counter)

    def __post_init__(self) -> None:
        self.outputs = Outputs(self.limits.kept_bytes)

    @property
    def finished(self) -> bool:
        """Whether the kernel has said both that it replied and that it is idle."""
        return self.idle and self.reply is not None

    def count(self, *, messages: int, received_bytes: int) -> None:
        """Count what was read, of whatever parent; above a limit the request is `broken`."""
        self.messages += messages
        self.received_bytes += received_bytes
        if self.messages > self.limits.cell_messages:
            self.broken = self.broken or Violation(
                "messages", why=f"more than {self.limits.cell_messages} messages in one request"
            )
        if self.received_bytes > self.limits.cell_bytes + self.answer_bytes:
            self.broken = self.broken or Violation(
                "bytes", why=f"more than {self.limits.cell_bytes} bytes in one request"
            )

    def take_reply(self, message: Message) -> None:
        """Take a message of the shell channel."""
        if message.parent == self.parent and message.kind == "execute_reply" and self.reply is None:
            self.reply = message.content

    def take_broadcast(self, message: Message) -> None:
        """Take a message of the IOPub channel; those of other requests are passed over."""
        if message.parent != self.parent:
            return
        if message.kind == "status":
            self.idle = self.idle or message.content.get("execution_state") == "idle"
        elif message.kind == ANSWER_KIND:
            self._take_answer(message)
        else:
            self.outputs.add(message)

    def _take_answer(self, message: Message) -> None:
        if not self.nonce or message.content.get("nonce") != self.nonce or len(message.buffers) != 1:
            self.forged = True
        elif message.dropped_bytes:
            self.large = True
        elif len(self.answers) < 2:
            self.answered_s = self.answered_s or time.perf_counter() - self.began_s
            # A second answer is counted, not kept.
            self.answers.append(message.buffers[0] if not self.answers else b"")

    def result(self) -> CellResult:
        """What the cell put out so far."""
        reply = self.reply or {}
        failed = "timeout" if self.interrupted else "error"
        status = "ok" if reply.get("status") == "ok" and not self.interrupted else failed
        count = reply.get("execution_count")
        return CellResult(
            status=status,
            outputs=self.outputs.finished(),
            execution_count=count if type(count) is int and 0 <= count < 1 << 31 else None,
            error_name=_text(reply, "ename"),
            error_value=_text(reply, "evalue"),
            truncated=self.outputs.truncated,
            elapsed_s=time.perf_counter() - self.began_s,
        )

    def only_answer(self) -> bytes:
        """The one answer with the request's nonce; Violation when there is none, a second one, or it is too large."""
        if self.forged:
            raise self._refused("forged answer", why="an answer arrived without the request's nonce")
        if self.large or any(len(answer) > self.answer_bytes for answer in self.answers):
            raise self._refused("large answer", why=f"more than {self.answer_bytes} bytes")
        if len(self.answers) > 1:
            raise self._refused("two answers", why="a request must have exactly one answer")
        if not self.answers:
            raise self._refused("no answer", why=self._why_none())
        return self.answers[0]

    def _refused(self, kind: str, *, why: str) -> Violation:
        return Violation(kind, why=why, alive=True, result=self.result())

    def _why_none(self) -> str:
        reply = self.reply or {}
        return (
            f"{_text(reply, 'ename')}: {_text(reply, 'evalue')}" if reply.get("ename") else "the probe sent no answer"
        )


def _text(reply: dict[str, Any], key: str, *, at_most: int = 2000) -> str:
    value = reply.get(key, "")
    return value[:at_most] if isinstance(value, str) else ""
