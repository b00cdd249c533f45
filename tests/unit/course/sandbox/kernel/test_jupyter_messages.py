"""Messages of a kernel are read without trust."""

from __future__ import annotations

import json

import pytest

from edl_labs.course.sandbox.kernel.cell_outputs import execute_content, read_message
from edl_labs.course.sandbox.kernel.zmtp import Received

HEADER = b'{"msg_type": "stream", "msg_id": "m"}'
PARENT = b'{"msg_id": "p"}'


def frames(*, header: bytes = HEADER, parent: bytes = PARENT, content: bytes = b"{}") -> Received:
    return Received([b"topic", b"<IDS|MSG>", b"signature", header, parent, b"{}", content, b"buffer"])


def test_a_message_names_its_kind_and_parent_and_carries_buffers():
    message = read_message(frames(content=b'{"text": "hi"}'))

    assert message is not None
    assert ("stream", "p", {"text": "hi"}, [b"buffer"]) == (
        message.kind,
        message.parent,
        message.content,
        list(message.buffers),
    )


@pytest.mark.parametrize(
    "received",
    [
        Received([]),
        Received([b"<IDS|MSG>"]),
        Received([b"x"] * 6),
        frames(header=b"[]"),
        frames(header=b"{"),
        frames(header=b'{"msg_type": 7}'),
        frames(header=b"[" * 60_000),
        frames(header=b'{"msg_type": "\xff"}'),
        frames(parent=b'{"msg_id": {}}'),
        frames(parent=b"null"),
        frames(header=b'{"msg_type": "x", "y": "' + b"z" * 70_000 + b'"}'),
    ],
)
def test_what_is_not_a_message_is_none(received):
    assert read_message(received) is None


@pytest.mark.parametrize("content", [b"", b"7", b"[1]", b"{", b"[" * 1_000_000, b'{"a": "\xff"}', b'{"a": NaN}'])
def test_content_that_is_not_an_object_is_empty(content):
    message = read_message(frames(content=content))

    assert message is not None
    assert {} == message.content


def test_a_request_forbids_input_and_is_json():
    content = json.loads(json.dumps(execute_content("1", counted=True)))

    assert (False, True) == (content["allow_stdin"], content["store_history"])
