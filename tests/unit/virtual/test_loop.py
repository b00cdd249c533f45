"""A step of a loop on a VirtualGPU: its spans, its lines, and how long it takes in the steady state."""

from __future__ import annotations

import pytest

from edl_labs.virtual import VirtualGPU, VirtualGPUError, VirtualMachine
from edl_labs.virtual.loop import as_timeline, run_steps, step_s, step_spans

MACHINE = VirtualMachine(launch_overhead_s=5e-6, copy_overhead_s=7e-6, copy_latency_s=1e-6)


def launch(duration_s, line="train.py:1"):
    return {"op": "launch", "name": "k", "duration_s": duration_s, "line": line}


def host(op, duration_s, line="train.py:2"):
    return {"op": op, "duration_s": duration_s, "line": line}


@pytest.mark.parametrize(("kernel_s", "step"), [(30e-6, 30e-6), (2e-6, 5e-6)])
def test_a_step_takes_the_slower_of_kernel_and_launch(kernel_s, step):
    assert pytest.approx(step) == step_s([launch(kernel_s)], MACHINE)


def test_an_item_makes_host_and_device_take_turns():
    step = [host("python", 20e-6), launch(30e-6), {"op": "item", "line": "train.py:3"}]

    assert pytest.approx(20e-6 + 5e-6 + 30e-6 + 1e-6 + 4 / MACHINE.link_byte_per_s) == step_s(step, MACHINE)


def test_a_warm_machine_is_what_counts():
    cold = VirtualMachine(context_init_s=1.0, module_load_s=1.0)

    assert pytest.approx(3e-6) == step_s([launch(3e-6)], cold)


def test_each_span_has_its_line_and_kind():
    step = [
        host("load", 30e-6, "a"),
        {"op": "copy", "nbytes": 100_000, "pinned": False, "line": "b"},
        launch(30e-6, "c"),
        {"op": "item", "line": "d"},
        host("python", 5e-6, "e"),
    ]
    found = {(span["row"], span["kind"], span["line"]) for span in step_spans(step, MACHINE, count=1)}

    assert {
        ("host", "wait", "b"),
        ("host", "call", "c"),
        ("host", "call", "d"),
        ("host", "wait", "d"),
        ("host", "python", "e"),
        ("host", "load", "a"),
        ("host", "call", "b"),
        ("copy D2H", "copy", "d"),
        ("copy H2D", "copy", "b"),
        ("stream 0", "kernel", "c"),
    } == found


def test_a_window_is_as_long_as_its_steps():
    step = [host("load", 40e-6), launch(20e-6)]
    spans = step_spans(step, MACHINE, count=3)

    assert pytest.approx(3 * step_s(step, MACHINE)) == max(span["end_s"] for span in spans)


def test_spans_draw_as_a_timeline():
    line = as_timeline(step_spans([host("load", 40e-6), launch(20e-6)], MACHINE))

    assert ("host", "stream 0") == line.rows
    assert {"load", "call", "kernel"} == {span.kind for span in line.spans}


def test_copies_of_two_streams_run_beside_each_other():
    def copy(stream):
        return {"op": "copy", "nbytes": 10_000, "pinned": True, "stream": stream, "line": "a"}

    gpu = VirtualGPU(MACHINE)
    run_steps(gpu, [copy(0), copy(1)], count=1)

    assert 2 == len(gpu.streams)


def test_an_unknown_operation_is_named():
    with pytest.raises(VirtualGPUError, match="there is no operation 'sleep'"):
        step_s([{"op": "sleep", "line": "a"}], MACHINE)


def test_a_step_without_a_device_has_no_window():
    with pytest.raises(VirtualGPUError, match="does not use the device"):
        step_spans([host("python", 1e-6)], MACHINE)
