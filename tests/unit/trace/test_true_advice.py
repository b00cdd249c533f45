"""Advice on traces of others: lead-ins, blocking copies and replays that miss, with sums done by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from edl_labs.trace import WhatIf, antipatterns, attribute, diagnose, most_to_gain, read_trace, what_if
from tests.unit.trace.trace_files import launched


def event(category: str, name: str, start: float, duration: float, **args: Any) -> dict[str, Any]:
    place = {"pid": "GPU 0", "tid": 7} if category.startswith("gpu") else {"pid": 1, "tid": 1}
    return {"ph": "X", "cat": category, "name": name, "ts": start, "dur": duration, "args": args, **place}


def lead_in(steps: int, *, before_us: float = 1e6, after_us: float = 0.0) -> list[dict[str, Any]]:
    """Steps of 1 ms with a kernel of 800 µs each, long after the trace begins, and long before it ends."""
    events = launched("fill", 1000)
    for number in range(steps):
        start = before_us + 1000.0 * number
        events += [event("user_annotation", f"ProfilerStep#{number}", start, 1000.0)]
        events += launched("gemm", number, at=start + 100)
        events[-1]["dur"] = 800.0
    return [*events, *(launched("last", 1001, at=before_us + 1000.0 * steps + after_us) if after_us else [])]


@pytest.mark.parametrize("after_us", [0.0, 5e5])
@pytest.mark.parametrize("steps", [1, 2, 3, 6])
def test_gains_count_the_marked_steps_alone(steps: int, after_us: float) -> None:
    answer = what_if(read_trace(lead_in(steps, after_us=after_us)), "host")

    assert pytest.approx(1e-3, rel=0.08) == answer.before_s
    assert pytest.approx(answer.before_s, rel=0.01) == answer.replayed_s
    # The kernels alone, and the first of them after its launch.
    assert pytest.approx(800e-6, rel=0.05) == answer.after_s


def read(moved_bytes: int, *, call_us: float = 8980.0, name: str = "Memcpy DtoH (Device -> Pageable)") -> list[Any]:
    """Steps of 10 ms in which a read of so many bytes waits, for nothing that the trace shows."""
    events = []
    for number in range(5):
        start = 10_000.0 * number
        copied = start + 110 + call_us - 5
        copy = {"correlation": 100 + number}
        events += [
            event("user_annotation", f"ProfilerStep#{number}", start, 10_000.0),
            event("cuda_runtime", "hipMemcpyWithStream", start + 110, call_us, **copy),
            event("gpu_memcpy", name, copied, 4.0, **copy, device=0, stream=7, bytes=moved_bytes),
            *launched("decode", number, at=start + 9200),
        ]
        events[-1]["dur"] = 700.0
    return events


@pytest.mark.parametrize("moved_bytes", [8, 17, 256, 65_536, 4_000_000])
def test_a_read_that_waits_is_synchronisation(moved_bytes: int) -> None:
    found = diagnose(read_trace(read(moved_bytes)))

    assert "synchronisation-bound" == found.verdict
    assert pytest.approx(0.898, abs=0.002) == found.shares["sync"]
    # Without the read 1020 µs of the host's own are left.
    assert "sync" == found.gains[0].cause
    assert pytest.approx(10 / 1.02, rel=0.02) == found.gains[0].speedup
    assert ["host reads"] == [finding.name for finding in found.findings]


def test_the_device_s_time_of_a_copy_is_copying() -> None:
    """An upload of 5 ms of which the device copies 3 ms."""
    events = []
    for number in range(4):
        start, copy = 10_000.0 * number, {"correlation": 100 + number}
        events += [
            event("user_annotation", f"ProfilerStep#{number}", start, 10_000.0),
            event("cuda_runtime", "cudaMemcpyAsync", start, 5000.0, **copy),
            event("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", start + 2000, 3000.0, **copy, stream=7, bytes=1),
            *launched("gemm", number, at=start + 5000),
        ]
        events[-1]["dur"] = 4975.0
    shares = attribute(read_trace(events), skip=1).shares

    assert {"copy": 0.3, "sync": 0.2, "compute": 0.4975} == pytest.approx(
        {cause: shares[cause] for cause in ("copy", "sync", "compute")}, abs=0.01
    )
    assert {"blocking copies"} == {finding.name for finding in antipatterns(read_trace(events))}


def test_a_pinned_copy_that_is_only_issued_blocks_nobody() -> None:
    events = []
    for number in range(4):
        start, copy = 1000.0 * number, {"correlation": 100 + number}
        events += [
            event("cuda_runtime", "cudaMemcpyAsync", start, 4.0, **copy),
            event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", start + 5, 400.0, **copy, stream=7, bytes=1),
            *launched("gemm", number, at=start + 5),
        ]

    assert () == antipatterns(read_trace(events))


def test_a_report_shows_how_far_its_replay_is_off() -> None:
    text = diagnose(read_trace(lead_in(6))).text()

    assert "replayed unchanged, a step takes 1 ms (traced 1 ms, 0 % off)" in text
    assert "potential speed-up if fixed" in text


@pytest.mark.parametrize(("replayed_s", "is_reliable"), [(1.0, True), (1.09, True), (0.91, True), (1.11, False)])
def test_a_replay_that_misses_gives_no_factor(replayed_s: float, is_reliable: bool) -> None:
    answer = WhatIf("host", before_s=1.0, replayed_s=replayed_s, after_s=0.5)

    assert is_reliable == answer.is_reliable
    assert is_reliable != math.isnan(answer.speedup)
    assert is_reliable == (answer.to_json()["speedup"] is not None)


def test_a_report_without_factors_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    from edl_labs.trace import _what_if

    # As if every replay missed by too much.
    monkeypatch.setattr(_what_if, "MOST_REPLAY_ERROR", -1.0)
    found = diagnose(read_trace(lead_in(6)))

    assert [] == found.shown_gains()
    assert "no factor is given" in found.text()
    assert "no factor is given" in found.html()
    assert found.figure()


def test_no_gain_is_larger_than_a_step() -> None:
    for events in (lead_in(4), read(256)):
        answers = most_to_gain(read_trace(events))
        assert all(-1e-9 <= answer.gain_s <= answer.replayed_s for answer in answers)
