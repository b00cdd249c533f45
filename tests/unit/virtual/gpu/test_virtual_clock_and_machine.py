"""Any timer runs on the virtual clock, and machines come from the hardware table."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from edl_labs.clock import Clock, HostClock, mean_cost_s, smallest_step_s
from edl_labs.hardware import accelerator, table
from edl_labs.virtual import VirtualGPU, VirtualMachine


def seconds_per_call(work, clock, *, calls):
    """A timer that knows nothing of devices: it takes a clock."""
    clock.synchronize()
    start_s = clock.now_s()
    for _ in range(calls):
        work()
    clock.synchronize()
    return (clock.now_s() - start_s) / calls


def test_the_virtual_clock_is_a_clock():
    assert isinstance(VirtualGPU().clock, Clock)


@pytest.mark.parametrize(("kernel_s", "expected_s"), [(50e-6, 50e-6), (1e-6, 4e-6)])
def test_a_timer_runs_unchanged_on_virtual_and_on_real_time(kernel_s, expected_s):
    gpu = VirtualGPU("H200")
    gpu.launch("k", duration_s=kernel_s)

    measured_s = seconds_per_call(lambda: gpu.launch("k", duration_s=kernel_s), gpu.clock, calls=1000)
    assert pytest.approx(expected_s, rel=0.01) == measured_s
    assert 0 < seconds_per_call(lambda: None, HostClock(), calls=1000)


def test_what_measures_a_clock_finds_the_virtual_ones_resolution_and_cost():
    clock = VirtualGPU(clock_resolution_s=1e-3, clock_read_cost_s=3e-6).clock

    assert pytest.approx(clock.resolution_s) == smallest_step_s(clock.now_s, steps=3)
    assert pytest.approx(clock.read_cost_s, rel=0.01) == mean_cost_s(clock.now_s, reads=100_000, runs=1)
    assert "virtual A100-80GB" == clock.name


@pytest.mark.parametrize("entry", table(), ids=lambda entry: entry.key)
def test_every_accelerator_of_the_table_is_a_machine(entry):
    machine = VirtualGPU(entry.key).machine

    assert (entry.key, entry.l2_bytes, entry.memory_bytes) == (machine.name, machine.l2_bytes, machine.memory_bytes)
    assert entry.memory_bandwidth_byte_per_s == machine.memory_bandwidth_byte_per_s
    assert {dtype: entry.peak_flop_per_s(dtype) for dtype in entry.dtypes()} == machine.peak_flop_per_s
    assert 0.5 * entry.link_byte_per_s < machine.link_byte_per_s < entry.link_byte_per_s
    assert machine.pageable_byte_per_s < machine.link_byte_per_s
    assert machine == VirtualMachine.from_dict(json.loads(json.dumps(machine.to_dict())))


def test_a_kernel_of_the_model_is_never_faster_than_the_datasheet():
    gpu, chip = VirtualGPU("A100-80GB").machine.warm(), accelerator("A100-80GB")
    device = VirtualGPU(gpu)
    device.launch("matmul", flops=2 * 8192**3, moved_bytes=3 * 2 * 8192**2, dtype="bf16")
    (span,) = [span for span in device.timeline.spans if span.kind == "kernel"]

    assert pytest.approx(2 * 8192**3 / chip.peak_flop_per_s("bf16"), rel=1e-9) == span.end_s - span.start_s


def test_parameters_are_set_by_name_over_an_entry_a_machine_or_plain_data():
    expected = VirtualMachine.of("T4", queue_depth=7)

    assert expected == VirtualGPU("T4", queue_depth=7).machine
    assert expected == VirtualGPU(accelerator("T4"), queue_depth=7).machine
    assert expected == VirtualGPU(VirtualMachine.of("T4"), queue_depth=7).machine
    assert expected == VirtualGPU(VirtualMachine.of("T4").to_dict(), queue_depth=7).machine


def test_a_warm_machine_has_no_first_calls():
    gpu = VirtualGPU(VirtualMachine.of("H200").warm())
    gpu.launch("k", duration_s=1e-6)

    assert gpu.now_s() < 10e-6


def test_the_virtual_gpu_needs_neither_torch_nor_numpy_nor_matplotlib():
    script = """
import sys
for name in ("torch", "numpy", "matplotlib"):
    sys.modules[name] = None
from edl_labs.virtual import VirtualGPU, replay
gpu = VirtualGPU("H200"); gpu.launch("k", duration_s=1e-6); gpu.synchronize()
print(replay(gpu.program, "H200").counts["launch"])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert "1\n" == done.stdout


def test_the_record_grows_in_step_with_the_program_and_finished_work_is_let_go():
    gpu = VirtualGPU("H200")
    for _ in range(5000):
        gpu.launch("k", duration_s=1e-6)

    assert 5000 == len(gpu.core.recorded)
    assert ([], []) == (gpu.core.operations, gpu.core.host_spans)
    assert gpu.machine.queue_depth == len(gpu.streams[0].lane.in_flight)
