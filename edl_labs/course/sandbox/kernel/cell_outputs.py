"""What a kernel says: its Jupyter messages, and a cell's outputs as nbformat has them, gathered and kept to a size.

Our messages are written by jupyter_client, the kernel's read with as little trust as possible. Signatures of received
messages are not looked at: the key lies in the kernel, with the student. What counts is the parent, and for answers
the nonce.
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
    """The number of bytes that were not kept; the content or a buffer is then empty."""

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


_CUT = "\n[output cut off here: the cell produced more than {kept}]\n"


@dataclass(frozen=True)
class CellResult:
    """What a cell put out, and how it ended: "ok", "error", or "timeout" where it was interrupted."""

    status: str
    outputs: list[dict[str, Any]]
    execution_count: int | None = None
    error_name: str = ""
    error_value: str = ""
    truncated: bool = False
    elapsed_s: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether the cell ran to its end without an error."""
        return self.status == "ok"


class Outputs:
    """Outputs of one cell, in order. Above `kept_bytes` the rest is dropped, and a last output says so."""

    def __init__(self, kept_bytes: int) -> None:
        self.items: list[dict[str, Any]] = []
        self.truncated = False
        self._kept_bytes, self._left = kept_bytes, kept_bytes
        self._clear_next = False
        self._by_display: dict[str, list[dict[str, Any]]] = {}

    def add(self, message: Message) -> None:
        """Take one message of the IOPub channel; kinds that leave no output are passed over."""
        take = getattr(self, f"_take_{message.kind}", None) if message.kind in _KINDS else None
        if take is None:
            return
        self._left -= len(message.raw_content) + message.dropped_bytes
        if self._left >= 0:
            take(message.content)
        elif not self.truncated:
            # At once: what a later message brings could not be shown in its place.
            self.truncated = True
            self._append_text("stderr", _CUT.format(kept=f"{self._kept_bytes / (1 << 20):.3g} MiB"))

    def _append(self, output: dict[str, Any]) -> None:
        if self._clear_next:
            self._clear()
        self.items.append(output)

    def _append_text(self, name: str, text: str) -> None:
        if self._clear_next:
            self._clear()
        last = self.items[-1] if self.items else {}
        if last.get("output_type") == "stream" and last["name"] == name:
            last["pieces"].append(text)
        else:
            self.items.append({"output_type": "stream", "name": name, "pieces": [text]})

    def finished(self) -> list[dict[str, Any]]:
        """The outputs as nbformat 4 has them."""
        return [_joined(item) for item in self.items]

    def _clear(self) -> None:
        self.items.clear()
        self._by_display.clear()
        self._clear_next = False

    def _take_stream(self, content: dict[str, Any]) -> None:
        name, text = content.get("name"), content.get("text")
        if name in ("stdout", "stderr") and isinstance(text, str) and text:
            self._append_text(name, text)

    def _take_display_data(self, content: dict[str, Any]) -> None:
        output = {"output_type": "display_data", "data": _bundle(content), "metadata": _mapping(content, "metadata")}
        self._append(output)
        self._remember(content, output)

    def _take_execute_result(self, content: dict[str, Any]) -> None:
        count = content.get("execution_count")
        output = {
            "output_type": "execute_result",
            "data": _bundle(content),
            "metadata": _mapping(content, "metadata"),
            "execution_count": count if type(count) is int and 0 <= count < 1 << 31 else None,
        }
        self._append(output)
        self._remember(content, output)

    def _take_update_display_data(self, content: dict[str, Any]) -> None:
        for output in self._by_display.get(_display_id(content), []):
            output["data"], output["metadata"] = _bundle(content), _mapping(content, "metadata")

    def _take_error(self, content: dict[str, Any]) -> None:
        lines = content.get("traceback")
        traceback = [line for line in lines if isinstance(line, str)] if isinstance(lines, list) else []
        name, value = (str(content.get(key, "")) for key in ("ename", "evalue"))
        self._append({"output_type": "error", "ename": name, "evalue": value, "traceback": traceback})

    def _take_clear_output(self, content: dict[str, Any]) -> None:
        if content.get("wait") is True:
            self._clear_next = True
        else:
            self._clear()

    def _remember(self, content: dict[str, Any], output: dict[str, Any]) -> None:
        if display_id := _display_id(content):
            self._by_display.setdefault(display_id, []).append(output)


_KINDS = {name.removeprefix("_take_") for name in vars(Outputs) if name.startswith("_take_")}


def _joined(item: dict[str, Any]) -> dict[str, Any]:
    if "pieces" not in item:
        return item
    return {"output_type": "stream", "name": item["name"], "text": "".join(item["pieces"])}


def _mapping(content: dict[str, Any], key: str) -> dict[str, Any]:
    value = content.get(key)
    return value if isinstance(value, dict) else {}


def _bundle(content: dict[str, Any]) -> dict[str, Any]:
    """The MIME bundle, without values that nbformat would refuse."""
    return {kind: value for kind, value in _mapping(content, "data").items() if _is_mime_value(kind, value)}


def _is_mime_value(kind: str, value: Any) -> bool:
    if kind.endswith("json"):
        return True
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(line, str) for line in value))


def _display_id(content: dict[str, Any]) -> str:
    display_id = _mapping(content, "transient").get("display_id")
    return display_id if isinstance(display_id, str) else ""
