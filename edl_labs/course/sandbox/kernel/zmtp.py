"""One ZMTP 3.0 connection, read by hand so that its peer cannot make the reader grow.

libzmq bounds a frame (MAXMSGSIZE) but not a message of endless frames, which it gathers in a thread of its own: 770 MB
in two seconds. Here nothing is read but on request, every size is known before a byte is stored, and of a message that
is too large or has too many frames the rest is read and dropped. Nothing is reconnected or queued.
Protocol: https://rfc.zeromq.org/spec/23/
"""

from __future__ import annotations

import socket
import struct
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field

_MORE, _LONG, _COMMAND = 1, 2, 4  # flags of a frame: https://rfc.zeromq.org/spec/23/
_GREETING = b"\xff" + bytes(8) + b"\x7f" + bytes([3, 0]) + b"NULL".ljust(20, b"\0") + bytes(32)
_READY = b"\x05READY"
_READ_BYTES = 1 << 18  # one read costs little beside the copy of so much
_COMMAND_BYTES = 4096  # READY with its properties takes below 100
FRAMES_AT_MOST = 512  # a Jupyter message has six and its buffers


class WireError(Exception):
    """The peer spoke something other than ZMTP, or hung up."""


@dataclass
class Received:
    """One message: its frames, and how many bytes of it were dropped; a dropped frame is empty, or absent."""

    frames: list[bytes] = field(default_factory=list)
    dropped_bytes: int = 0
    kept_bytes: int = 0


class Wire:
    """Our end of a connection to a socket of type ROUTER (as "DEALER") or XPUB (as "SUB", to everything)."""

    def __init__(self, connected: socket.socket, *, kind: str) -> None:
        self.message_bytes = 0
        """Most bytes kept of one message, to be set before `receive`."""
        self.received_bytes = 0
        self._socket = connected
        self._socket.setblocking(False)
        self._outgoing: deque[memoryview] = deque()
        # libzmq hangs up on messages that come before it has sent its own READY.
        self._held: deque[memoryview] | None = deque()
        self._parse = self._parser()
        self._wanted = next(self._parse)
        self._buffer = bytearray()
        self._message = Received()
        self._complete: deque[Received] = deque()
        self._outgoing.extend(map(memoryview, (_GREETING, _frame(_ready(kind), flags=_COMMAND))))
        if kind == "SUB":
            self.send([b"\x01"])

    def fileno(self) -> int:
        """The descriptor to poll."""
        return self._socket.fileno()

    @property
    def sending(self) -> bool:
        """Whether bytes wait to be sent: poll for writing too."""
        return bool(self._outgoing)

    def send(self, frames: Iterable[bytes | memoryview]) -> None:
        """Queue one message; `flush` sends it."""
        frames = list(frames)
        for number, frame in enumerate(frames, start=1):
            more = _MORE if number < len(frames) else 0
            self._queue(_head(len(frame), more), frame)

    def flush(self) -> None:
        """Send what the peer takes without waiting."""
        while self._outgoing:
            try:
                sent = self._socket.send(self._outgoing[0])
            except BlockingIOError:
                return
            except OSError as error:
                raise WireError("the peer hung up") from error
            rest = self._outgoing[0][sent:]
            if rest:
                self._outgoing[0] = rest
            else:
                self._outgoing.popleft()

    def receive(self) -> Iterator[Received]:
        """Messages that one read completes, maybe none. WireError when the connection cannot go on."""
        try:
            data = self._socket.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            raise WireError("the peer hung up") from error
        if not data:
            raise WireError("the peer hung up")
        self.received_bytes += len(data)
        self._buffer += data
        self._advance()
        while self._complete:
            yield self._complete.popleft()

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def _queue(self, *pieces: bytes | memoryview) -> None:
        waiting = self._outgoing if self._held is None else self._held
        waiting.extend(memoryview(piece).cast("B") for piece in pieces if len(piece))

    def _advance(self) -> None:
        start = 0
        while len(self._buffer) - start >= self._wanted:
            end = start + self._wanted
            piece = bytes(memoryview(self._buffer)[start:end])
            start, self._wanted = end, self._parse.send(piece)
        del self._buffer[:start]

    def _parser(self) -> Generator[int, bytes, None]:
        """Yields how many bytes it wants next, and is sent them."""
        greeting = yield len(_GREETING)
        if greeting[0] != 0xFF or greeting[9] != 0x7F or greeting[10] < 3:
            raise WireError("the peer does not speak ZMTP 3")
        while True:
            flags = (yield 1)[0]
            if flags & ~(_MORE | _LONG | _COMMAND):
                raise WireError("unknown frame flags")
            size = struct.unpack(">Q", (yield 8))[0] if flags & _LONG else (yield 1)[0]
            if flags & _COMMAND:
                yield from self._command(size)
            else:
                yield from self._frame(size, last=not flags & _MORE)

    def _command(self, size: int) -> Generator[int, bytes, None]:
        if size > _COMMAND_BYTES:
            raise WireError(f"a command of {size} bytes")
        self._take_command((yield size) if size else b"")

    def _frame(self, size: int, *, last: bool) -> Generator[int, bytes, None]:
        message = self._message
        if message.kept_bytes + size <= self.message_bytes and len(message.frames) < FRAMES_AT_MOST:
            message.frames.append((yield size) if size else b"")
            message.kept_bytes += size
        else:
            message.dropped_bytes += size
            message.frames += [b""] if len(message.frames) < FRAMES_AT_MOST else []
            while size:
                piece = min(size, _READ_BYTES)
                yield piece
                size -= piece
        if last:
            self._complete.append(message)
            self._message = Received()

    def _take_command(self, body: bytes) -> None:
        if body.startswith(_READY) and self._held is not None:
            self._outgoing.extend(self._held)
            self._held = None


def _head(size: int, flags: int) -> bytes:
    return struct.pack(">BQ", flags | _LONG, size) if size > 255 else bytes([flags, size])


def _frame(body: bytes, *, flags: int) -> bytes:
    return _head(len(body), flags) + body


def _ready(kind: str) -> bytes:
    """The command that ends the handshake: what kind of socket we are."""
    made = _READY
    for name, value in ((b"Socket-Type", kind.encode()), (b"Identity", b"")):
        made += bytes([len(name)]) + name + struct.pack(">I", len(value)) + value
    return made
