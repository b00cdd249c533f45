"""A broken file is refused with the line and the column at which it is broken, and with what is wrong there."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from edl_labs.trace import TraceError, diagnose_ranks, event_stream, read_trace
from tests.unit.trace.test_trace_reader import KINETO

WHOLE = json.dumps({"schemaVersion": 1, "traceEvents": KINETO}, indent=1)
ONE_LINE = json.dumps({"schemaVersion": 1, "traceEvents": KINETO})


def refused(folder: Path, text: str | bytes) -> TraceError:
    path = folder / "trace.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(TraceError) as caught:
        read_trace(path)
    return caught.value


def place(text: str, at: int) -> str:
    before = text[:at]
    return f"line {before.count(chr(10)) + 1:,}, column {at - before.rfind(chr(10)):,}"


# (the text that is replaced, by what, where in it the fault is, words of the reason)
FAULTS = {
    "single quotes": ('"name": "aten::mm"', "'name': \"aten::mm\"", 0, "single quotes"),
    "single quotes of a value": ('"name": "aten::mm"', "\"name\": 'aten::mm'", 8, "single quotes"),
    "NaN as a duration": ('"dur": 30', '"dur": NaN', 7, "`NaN` is not a valid number in JSON"),
    "nan as C prints it": ('"dur": 30', '"dur": nan', 7, "`nan` is not a valid number in JSON"),
    "-Infinity as a start": ('"ts": 1000000000010.0', '"ts": -Infinity', 6, "`-Infinity` is not a valid number"),
    "inf in arguments": ('"correlation": 77', '"correlation": inf', 15, "`inf` is not a valid number"),
    "a word of Python": ('"dur": 30', '"dur": None', 7, "`None` is Python"),
    "a quote without backslash": ('"aten::mm"', '"aten("a")"', 7, "a quote inside a string has no backslash"),
    "a missing comma": ('"ph": "X",', '"ph": "X"', 0, "a comma is missing"),
    "a missing colon": ('"dur": 30', '"dur" 30', 6, "a colon is missing"),
    "a comma with nothing after it": ('"dur": 30', '"dur": 30,', 10, "a name in double quotes is missing"),
    "a wrong escape": ('"aten::mm"', r'"aten\q"', 5, "a backslash"),
    "a comment": ('"dur": 30', '"dur": /* long */ 30', 7, "cannot begin a JSON value"),
}


@pytest.mark.parametrize("text", [WHOLE, ONE_LINE], ids=["many lines", "one line"])
@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("chunk", [1 << 22, 50])
def test_a_fault_has_its_line_and_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, name: str, chunk: int
) -> None:
    monkeypatch.setattr(event_stream, "_CHUNK", chunk)
    old, new, offset, why = FAULTS[name]
    begins = text.index("aten::mm") if old.startswith('"ph"') else text.index('"name": "aten::mm"')
    at = text.rindex(old, 0, begins) if old.startswith('"ph"') else text.index(old, begins)
    broken = text[:at] + new + text[at + len(old) :]
    error = refused(tmp_path, broken)
    # A missing comma, or name, is noticed at the next text.
    noticed = {"a missing comma": '"', "a comma with nothing after it": "}"}.get(name)
    where = broken.index(noticed, at + len(new)) if noticed else at + offset

    assert f"trace.json is broken at {place(broken, where)}" == error.what
    assert why in error.why
    assert error.next


def test_a_line_break_inside_a_text_is_a_missing_quote(tmp_path: Path) -> None:
    error = refused(tmp_path, WHOLE.replace('"aten::mm"', '"aten::mm', 1))

    assert "line" in error.what
    assert "its closing quote may be missing" in error.why


@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
@pytest.mark.parametrize("text", [WHOLE, ONE_LINE], ids=["many lines", "one line"])
def test_a_file_that_ends_too_soon_says_where(tmp_path: Path, text: str, share: float) -> None:
    cut = text[: int(len(text) * share)]
    error = refused(tmp_path, cut)

    assert "trace.json is truncated" == error.what
    assert f"it ends at {place(cut, len(cut))}, inside" in error.why


def test_compressed_data_that_break_off_say_after_which_line(tmp_path: Path) -> None:
    events = json.dumps({"traceEvents": [{**event, "id": str(n)} for n in range(4000) for event in KINETO]}, indent=0)
    error = refused(tmp_path, gzip.compress(events.encode())[:-2000])

    assert "truncated" in error.what
    assert "ends after line" in error.why


@pytest.mark.parametrize("between", ["", "\n", "\n\n  "])
@pytest.mark.parametrize("second", [ONE_LINE, json.dumps(KINETO)])
def test_two_documents_are_not_one(tmp_path: Path, between: str, second: str) -> None:
    for first in (ONE_LINE, json.dumps(KINETO)):
        error = refused(tmp_path, first + between + second)

        assert "trace.json contains two documents" == error.what
        assert f"document at {place(first + between, len(first + between))}" in error.why


def test_text_after_the_end_is_refused(tmp_path: Path) -> None:
    error = refused(tmp_path, ONE_LINE + "\nDone.")

    assert "continues after its end" in error.what
    assert "line 2, column 1" in error.why


def test_bytes_that_are_no_text_have_a_place(tmp_path: Path) -> None:
    at = WHOLE.index("aten::mm")
    error = refused(tmp_path, WHOLE[:at].encode() + b"\xff" + WHOLE[at:].encode())

    assert f"the byte 0xff at {place(WHOLE, at)}" in error.why


def test_values_that_are_no_times_may_be_nan(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(ONE_LINE.replace('"correlation": 77', '"correlation": 77, "occupancy": NaN'), encoding="utf-8")

    assert 5 == len(read_trace(path))


def test_what_is_nested_too_deeply_has_its_place(tmp_path: Path) -> None:
    error = refused(tmp_path, WHOLE.replace('"dur": 30', f'"dur": {"[" * 100_000}'))

    assert "is broken at line " in error.what
    assert "lists or objects are nested too deeply" == error.why


@pytest.mark.parametrize("value", [[1], {"a": 1}, "x", 3, None], ids=repr)
def test_values_of_an_unusual_kind_are_read_past(value: object) -> None:
    odd = {"pid": value, "tid": value, "args": {"device": value, "stream": value}}
    events = [{**event, **(odd if event["cat"] == "kernel" else {})} for event in KINETO]
    found = diagnose_ranks(
        [read_trace({"traceEvents": events, "distributedInfo": value, "unread": value, "deviceProperties": value})]
    )

    assert 55e-6 == pytest.approx(found.ranks[0].compute_s)
