"""Jupyter messages: ours written by jupyter_client, the kernel's read with as little trust as possible.

Signatures of received messages are not looked at: the key lies in the kernel, with the student. What counts is the
parent, and for answers the nonce.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from edl_labs.course.sandbox.kernel.zmtp import Received

_DELIMITER = b"<IDS|MSG>"
_HEADER_BYTES = 1 << 16  # Jupyter's own take below 1 kB
_IDENTITIES_AT_MOST = 4  # a ROUTER adds one, IOPub its topic


class _Header(msgspec.Struct):
    msg_type: str


class _Parent(msgspec.Struct):
    msg_id: str = ""


_read_header = msgspec.json.Decoder(_Header).decode
_read_parent = msgspec.json.Decoder(_Parent).decode
_read_content = msgspec.json.Decoder(dict[str, Any]).decode


@dataclass(frozen=True)
class Message:
    """A message of the kernel, its content still bytes."""

    kind: str
    parent: str
    raw_content: bytes
    buffers: Sequence[bytes]
    dropped_bytes: int = 0
    """Bytes that were too many to keep; the content or a buffer is then empty."""

    @property
    def content(self) -> dict[str, Any]:
        """The content; empty when it is not a JSON object."""
        try:
            return _read_content(self.raw_content)
        except (msgspec.MsgspecError, RecursionError, ValueError):
            return {}


def read_message(received: Received) -> Message | None:
    """The message in the frames that came; None when they are not one."""
    frames = received.frames
    try:
        start = frames[: _IDENTITIES_AT_MOST + 1].index(_DELIMITER)
        _signature, header, parent, _metadata, content, *buffers = frames[start + 1 :]
        if len(header) > _HEADER_BYTES or len(parent) > _HEADER_BYTES:
            return None
        return Message(
            _read_header(header).msg_type, _read_parent(parent).msg_id, content, buffers, received.dropped_bytes
        )
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None


def execute_content(code: str, *, counted: bool) -> dict[str, Any]:
    """The content of an execute request. `counted`: it goes into the history, as a notebook's cell does."""
    return {
        "code": code,
        "silent": False,
        "store_history": counted,
        "user_expressions": {},
        # input() raises a clear error instead of waiting for ever.
        "allow_stdin": False,
        "stop_on_error": False,
    }
