"""A timeline tells what overlaps, and becomes a trace that tools for Chrome traces open."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import jsonschema
import pytest

from edl_labs.virtual import Span, Timeline, VirtualGPU, VirtualMachine

SCHEMA = json.loads(Path(__file__).with_name("chrome_trace.schema.json").read_text(encoding="utf-8"))
US = 1e-6


@pytest.fixture
def timeline():
    machine = VirtualMachine(launch_overhead_s=2 * US, copy_overhead_s=3 * US, link_byte_per_s=1e6, sync_overhead_s=US)
    gpu = VirtualGPU(machine)
    side = gpu.Stream()
    source, there = gpu.host_empty(20, pin_memory=True, name="x"), gpu.empty(20, name="d")
    gpu.copy(there, source, non_blocking=True, stream=side)
    gpu.launch("relu", duration_s=10 * US)
    gpu.host_work(2 * US)
    gpu.synchronize()
    return gpu.timeline


def short(span):
    return span.row, span.kind, span.name, round(span.start_s / US, 6), round(span.end_s / US, 6)


def test_spans_lie_on_rows_in_the_order_of_a_picture(timeline):
    assert [
        ("host", "call", "x[0:20] to d[0:20]", 0, 3),
        ("host", "call", "relu", 3, 5),
        ("host", "work", "host work", 5, 7),
        ("host", "work", "synchronize", 7, 8),
        ("host", "wait", "synchronize", 8, 23),
        ("stream 0", "kernel", "relu", 5, 15),
        ("copy H2D", "copy", "x[0:20] to d[0:20]", 3, 23),
    ] == [short(span) for span in timeline.spans]
    assert ("host", "stream 0", "copy H2D") == timeline.rows


def test_a_device_span_knows_the_call_that_issued_it(timeline):
    calls = {span.issue: span.name for span in timeline.spans if span.kind == "call"}
    issued = {span.issue: span.name for span in timeline.spans if span.kind in ("kernel", "copy")}

    assert calls == issued
    assert 2 == len(issued)


def test_busy_time_overlap_and_hidden_share_are_those_of_the_spans(timeline):
    assert pytest.approx(10 * US) == timeline.busy_s("kernel")
    assert pytest.approx(20 * US) == timeline.busy_s("kernel", "copy")
    assert pytest.approx(10 * US) == timeline.overlap_s("kernel", "copy")
    assert pytest.approx(0.5) == timeline.hidden_copy_fraction
    assert pytest.approx(23 * US) == timeline.makespan_s


def test_an_empty_timeline_has_no_time():
    assert (0.0, 0.0, 0.0) == (
        Timeline(()).makespan_s,
        Timeline(()).busy_s("kernel"),
        Timeline(()).hidden_copy_fraction,
    )


def test_touching_spans_count_once():
    spans = (Span("a", "copy", "1", 0.0, 2.0), Span("b", "copy", "2", 1.0, 3.0), Span("c", "kernel", "3", 2.5, 9.0))

    assert 3.0 == Timeline(spans).busy_s("copy")
    assert 0.5 == Timeline(spans).overlap_s("copy", "kernel")


def test_the_chrome_trace_is_valid_and_survives_json(timeline):
    trace = timeline.to_chrome_trace()
    jsonschema.validate(trace, SCHEMA)

    assert trace == json.loads(json.dumps(trace))


@pytest.mark.parametrize(("field", "value"), [("ph", "Q"), ("ts", -1.0), ("dur", None), ("tid", "host")])
def test_the_schema_refuses_a_broken_trace(timeline, field, value):
    trace = copy.deepcopy(timeline.to_chrome_trace())
    next(event for event in trace["traceEvents"] if event["ph"] == "X")[field] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(trace, SCHEMA)


def test_the_chrome_trace_has_each_span_in_microseconds_on_its_named_row(timeline):
    events = timeline.to_chrome_trace()["traceEvents"]
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    spans = [(names[e["tid"]], e["cat"], e["name"], e["ts"], e["ts"] + e["dur"]) for e in events if e["ph"] == "X"]

    assert [(*short(span)[:3], *map(pytest.approx, short(span)[3:])) for span in timeline.spans] == spans


def test_arrows_lead_from_each_call_to_what_it_issued(timeline):
    events = timeline.to_chrome_trace()["traceEvents"]
    starts, ends = ({e["id"]: e["ts"] for e in events if e["ph"] == phase} for phase in "sf")

    assert starts.keys() == ends.keys()
    assert all(starts[flow] <= ends[flow] for flow in starts)


def test_a_timeline_is_plain_data(timeline):
    data = timeline.to_dict()

    assert data == json.loads(json.dumps(data))
    assert 1 == data["schema"]
