"""A connection's reader keeps what it may and drops the rest, whatever arrives."""

from __future__ import annotations

import socket
import struct

import pytest

from edl_labs.course.sandbox.kernel.zmtp import FRAMES_AT_MOST, Wire, WireError

GREETING = b"\xff" + bytes(8) + b"\x7f" + bytes([3, 1]) + b"NULL".ljust(20, b"\0") + bytes(32)
READY = bytes([4, 6]) + b"\x05READY"


@pytest.fixture
def ends():
    ours, theirs = socket.socketpair()
    wire = Wire(ours, kind="DEALER")
    wire.message_bytes = 1000
    yield wire, theirs
    wire.close()
    theirs.close()


def frame(body: bytes, *, more: bool = False) -> bytes:
    if len(body) > 255:
        return struct.pack(">BQ", 2 | more, len(body)) + body
    return bytes([int(more), len(body)]) + body


def read_all(wire: Wire) -> list[list[bytes]]:
    return [received.frames for received in wire.receive()]


def test_a_message_arrives_with_its_frames(ends):
    wire, theirs = ends
    theirs.sendall(GREETING + READY + frame(b"one", more=True) + frame(b""))

    assert [[b"one", b""]] == read_all(wire)


def test_bytes_may_come_one_by_one(ends):
    wire, theirs = ends
    arrived = []
    for byte in GREETING + READY + frame(b"x" * 300):
        theirs.sendall(bytes([byte]))
        arrived += read_all(wire)

    assert [[b"x" * 300]] == arrived


def test_nothing_is_sent_before_the_peer_is_ready(ends):
    wire, theirs = ends
    wire.send([b"request"])
    wire.flush()
    before = theirs.recv(4096)
    theirs.sendall(GREETING + READY)
    read_all(wire)
    wire.flush()

    assert b"request" not in before
    assert frame(b"request") == theirs.recv(4096)


def test_of_a_message_that_is_too_large_the_rest_is_dropped(ends):
    wire, theirs = ends
    theirs.sendall(GREETING + READY + frame(b"head", more=True) + frame(b"x" * 5000) + frame(b"next"))
    large, following = list(wire.receive())

    assert ([b"head", b""], 5000) == (large.frames, large.dropped_bytes)
    assert [b"next"] == following.frames


def test_a_message_of_endless_frames_keeps_a_bounded_number(ends):
    wire, theirs = ends
    theirs.sendall(GREETING + READY)
    read_all(wire)
    for _ in range(100):
        theirs.sendall(frame(b"x", more=True) * 1000)
        assert [] == read_all(wire)
    theirs.sendall(frame(b"end"))
    (message,) = list(wire.receive())

    assert FRAMES_AT_MOST == len(message.frames)
    assert 100_000 + 3 - FRAMES_AT_MOST == message.dropped_bytes


def test_an_announced_size_allocates_nothing(ends):
    wire, theirs = ends
    theirs.sendall(GREETING + READY + struct.pack(">BQ", 2, 1 << 62) + b"x" * 10_000)

    assert [] == read_all(wire)
    assert len(wire._buffer) <= 1 << 18


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n" * 8,
        b"\xff" + bytes(8) + b"\x7f" + bytes([1, 0]) + bytes(52),
        GREETING + bytes([8, 1, 0]),
        GREETING + struct.pack(">BQ", 6, 1 << 40),
    ],
    ids=["not ZMTP", "an old version", "unknown flags", "an endless command"],
)
def test_what_is_not_zmtp_ends_the_connection(ends, data):
    wire, theirs = ends
    theirs.sendall(data)

    with pytest.raises(WireError):
        read_all(wire)


def test_a_peer_that_hangs_up_is_noticed(ends):
    wire, theirs = ends
    theirs.close()

    with pytest.raises(WireError, match="hung up"):
        read_all(wire)


def test_a_large_message_is_sent_in_the_pieces_that_the_peer_takes(ends):
    wire, theirs = ends
    theirs.sendall(GREETING + READY)
    read_all(wire)
    wire.send([bytes(5 << 20)])
    arrived = b""
    while wire.sending:
        wire.flush()
        arrived += theirs.recv(1 << 20)
    theirs.setblocking(False)
    while len(arrived) < len(GREETING) + (5 << 20):
        arrived += theirs.recv(1 << 20)

    assert struct.pack(">BQ", 2, 5 << 20) in arrived


def test_it_understands_the_library_that_kernels_use(tmp_path):
    zmq = pytest.importorskip("zmq")
    context = zmq.Context()
    router = context.socket(zmq.ROUTER)
    router.bind(f"ipc://{tmp_path}/r")
    visitor = socket.socket(socket.AF_UNIX)
    visitor.connect(f"{tmp_path}/r")
    wire = Wire(visitor, kind="DEALER")
    wire.message_bytes = 1000
    wire.send([b"question", b"x" * 300])
    _until(lambda: not wire.sending and router.poll(0), wire)
    identity, *question = router.recv_multipart()
    router.send_multipart([identity, b"answer"])
    answer: list[list[bytes]] = []
    _until(lambda: answer, wire, answer)
    wire.close()
    context.destroy(linger=0)

    assert [b"question", b"x" * 300] == question
    assert [[b"answer"]] == answer


def _until(done, wire: Wire, got: list | None = None) -> None:
    import select

    for _ in range(1000):
        wire.flush()
        if done():
            return
        select.select([wire], [], [], 0.01)
        messages = read_all(wire)
        if got is not None:
            got += messages
    raise AssertionError("nothing came")
