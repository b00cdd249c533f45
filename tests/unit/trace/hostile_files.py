"""Bytes that claim to be a trace, made to take a reader's memory, time or stack; each with what is said of it."""

from __future__ import annotations

import gzip
import json
from functools import cache

from edl_labs.trace.handed_in import MOST_UNPACKED_BYTES
from tests.unit.trace.own_traces import CUDA, Tree, as_file, cuda_pair

_HEAD = b'{"edl_labs": {"which": "before"}, "traceEvents": ['


@cache
def good() -> Tree:
    """An honest file's tree."""
    return cuda_pair(*CUDA["data"])[0]


def _event(**changed: object) -> dict[str, object]:
    return {"ph": "X", "cat": "cpu_op", "pid": 1, "tid": 1, "name": "aten::mm"} | changed


def _overlapping(count: int) -> Tree:
    """Events of one thread that all overlap: each is looked for in those that are still open."""
    marks = [e for e in good()["traceEvents"] if e["name"].startswith("ProfilerStep#")]
    many = [_event(ts=i * 1e-3, dur=1e6 + i * 1e-3) for i in range(count)]
    return {**good(), "traceEvents": marks + many}


def _dims(tree: Tree, dims: object) -> Tree:
    made = json.loads(json.dumps(tree))
    for event in made["traceEvents"]:
        if "Input Dims" in event.get("args", {}):
            event["args"]["Input Dims"] = dims
    return dict(made)


@cache
def hostile() -> dict[str, tuple[bytes, str]]:
    """By kind the bytes, and a part of what is said; '' where they may be read as a trace, or refused."""
    return {
        "no gzip": (b"{}", "not a gzip file"),
        "empty": (b"", "is truncated"),
        "a bomb": (gzip.compress(bytes(MOST_UNPACKED_BYTES + 10), 9), "unpacks to more than 200 MB"),
        "too large": (b"x" * 5_000_001, "has 5,000,001 bytes"),
        "cut off": (as_file(good())[:-200], "is truncated"),
        "deep": (gzip.compress(b'{"traceEvents": ' + b"[" * 100_000), "was not written by hand_in"),
        "deep arguments": (
            gzip.compress(_HEAD + b'{"args": ' + b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b"}]}"),
            "was not written by hand_in",
        ),
        "objects without end": (gzip.compress(_HEAD + b"{}," * 1_000_000 + b"{}]}"), "too many"),
        "numbers without end": (gzip.compress(_HEAD + b"1," * 90_000_000 + b"1]}", 1), "too many"),
        "lists without end": (gzip.compress(_HEAD + b"[]," * 60_000_000 + b"1]}", 1), "too many"),
        "one long text": (gzip.compress(_HEAD + b'"' + b"x" * 190_000_000 + b'"]}', 1), "was not written by hand_in"),
        "wide letters": (
            gzip.compress(_HEAD + '"\U0001f4a3'.encode() + b"x" * 190_000_000 + b'"]}', 1),
            "",
        ),
        "long numbers": (gzip.compress(_HEAD + (b"9" * 4000 + b",") * 45_000 + b"1]}", 6), "not written by hand_in"),
        "no JSON": (gzip.compress(b"\xff\xfe\x00"), "was not written by hand_in"),
        "a list": (gzip.compress(b"[]"), "was not written by hand_in"),
        "no stamp": (as_file({"traceEvents": []}), "was not written by hand_in"),
        "no events": (as_file({**good(), "traceEvents": []}), "contains no training loop"),
        "three steps": (
            as_file({**good(), "traceEvents": [e for e in good()["traceEvents"] if e["name"][-1] not in "4567#"][:40]}),
            "marked step",
        ),
        "events of another form": (
            as_file({**good(), "traceEvents": [{"ph": [], "name": {}, "args": 7}]}),
            "contains no training loop",
        ),
        "shapes without end": (as_file(_dims(good(), [[10**30] * 20_000] * 2)), ""),
    }


def slow() -> bytes:
    """A file within all limits of size that takes minutes to nest."""
    return as_file(_overlapping(90_000))
