"""Bytes that claim to be a trace: whatever they are, reading them is bounded and ends in a trace or one line."""

from __future__ import annotations

import gzip
import json
import time

import pytest

from edl_labs.trace import TraceError, handed_in
from edl_labs.trace.handed_in import MOST_UNPACKED_BYTES, read_handed_in
from tests.unit.trace.own_traces import CUDA, as_file, cuda_pair

GOOD, _ = cuda_pair(*CUDA["data"])
HOSTILE = {
    "no gzip": (b"{}", "not a gzip file"),
    "empty": (b"", "cut off"),
    "a bomb": (gzip.compress(bytes(MOST_UNPACKED_BYTES + 10), 9), "unpacks to more than 200 MB"),
    "too large": (b"x" * 5_000_001, "has 5,000,001 bytes"),
    "cut off": (as_file(GOOD)[:-200], "cut off"),
    "deep": (gzip.compress(b'{"traceEvents": ' + b"[" * 100_000), "is not a trace of hand_in"),
    "deep arguments": (
        gzip.compress(
            b'{"edl_labs": {}, "traceEvents": [{"args": ' + b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b"}]}"
        ),
        "is not a trace of hand_in",
    ),
    "objects without end": (
        gzip.compress(b'{"edl_labs": {}, "traceEvents": [' + b"{}," * 1_000_000 + b"{}]}"),
        "too many",
    ),
    "no JSON": (gzip.compress(b"\xff\xfe\x00"), "is not a trace of hand_in"),
    "a list": (as_file([]), "is not a trace of hand_in"),  # type: ignore[arg-type]
    "no stamp": (as_file({"traceEvents": []}), "is not a trace of hand_in"),
    "no events": (as_file({**GOOD, "traceEvents": []}), "holds nothing of a training loop"),
    "three steps": (
        as_file({**GOOD, "traceEvents": [e for e in GOOD["traceEvents"] if e["name"][-1] not in "4567#"][:40]}),
        "marked step",
    ),
    "events of another form": (as_file({**GOOD, "traceEvents": [{"ph": [], "name": {}, "args": 7}]}), "trace"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_bytes_end_in_one_line(name: str) -> None:
    data, told = HOSTILE[name]
    with pytest.raises(TraceError) as error:
        read_handed_in(data)

    assert told in str(error.value)


def test_values_of_any_kind_in_known_places_are_read_or_refused() -> None:
    strange = [None, True, -1, 1e308, "x" * 10_000, [], {}, [[]], float("nan")]
    for number, value in enumerate(strange):
        for key in ("ts", "dur", "args", "pid", "cat", "name"):
            tree = json.loads(json.dumps(GOOD))
            tree["traceEvents"][number][key] = value
            tree["edl_labs"] |= {"stamp": value, "sampled_lines": value, "timed_step_s": value, "input_shapes": value}
            try:
                found = read_handed_in(as_file(tree))
            except TraceError:
                continue

            assert found.step_s > 0


def test_the_limit_of_events_is_counted_before_anything_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handed_in, "_decode", lambda text: pytest.fail("it was decoded"))
    begun_s = time.process_time()
    with pytest.raises(TraceError, match="too many events"):
        read_handed_in(HOSTILE["objects without end"][0])

    assert time.process_time() - begun_s < 30
