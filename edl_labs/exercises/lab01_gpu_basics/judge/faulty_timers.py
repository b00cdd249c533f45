"""The cases of broken_timers: timers with one fault each, run on a VirtualGPU, and what they reported."""

from __future__ import annotations

from itertools import combinations
from typing import Any

from edl_labs.checks import draws
from edl_labs.exercises.lab01_gpu_basics.broken_timers import FAULTS, SHOWN_CALLS
from edl_labs.virtual import VirtualGPU, VirtualMachine

CALLS = (1, 4, 16, 64)  # fourfold steps, over which what is paid once fades
EACH = 3  # reports of each fault: one lucky guess names no fault for good
ALIKE = 0.02  # closer than this, two reports look the same in the digits that are shown
_COARSER = 4500  # a tick of 5e-4 to 2e-3 calls becomes one of two to nine
_MACHINES = 6  # fewer than reports, since each is drawn again until no two faults look alike on it


@draws("broken_timers")
def cases(rng: Any) -> list[Any]:
    # The fault itself is not part of a case: cases travel to the student's process.
    faults = [fault for fault in FAULTS for _ in range(EACH)]
    machines = [draw_machine(rng) for _ in range(_MACHINES)]
    picks = rng.integers(_MACHINES, size=len(faults))
    reports = [report(one, machines[i], stream=int(rng.integers(2))) for one, i in zip(faults, picks, strict=True)]
    return [reports[i] for i in rng.permutation(len(reports))]


def report(fault: str, machine: VirtualMachine, *, stream: int = 0) -> dict[str, Any]:
    """What a timer with `fault` reports on `machine`, as plain data that does not name the fault."""
    machine = _with_its_clock(fault, machine)
    return {
        "calls": list(CALLS),
        "seconds_per_call": [timed(fault, machine, calls, stream=stream)[0] for calls in CALLS],
        "true_seconds_per_call": cold_s(machine),
        "launch_s": machine.launch_overhead_s,
        "clock_resolution_s": machine.clock_resolution_s,
        "timeline": _spans(timed(fault, machine, SHOWN_CALLS, stream=stream)[1]),
    }


def _with_its_clock(fault: str, machine: VirtualMachine) -> VirtualMachine:
    # A sound clock's step is a small share of a call; the coarse one's is some thousand times as long.
    if fault != "clock too coarse":
        return machine
    return machine.replace(clock_resolution_s=_COARSER * machine.clock_resolution_s)


def timed(fault: str, machine: VirtualMachine, calls: int, *, stream: int = 0) -> tuple[float, VirtualGPU]:
    """Seconds per call as a timer with `fault` reports them, and the GPU that it ran on."""
    gpu = VirtualGPU(machine)
    buffers = [gpu.empty(_working_set(machine)) for _ in range(1 if fault == "cache-warm" else 2)]
    streams = [gpu.default_stream(), gpu.Stream()]
    work, waited_for = streams[stream], streams[1 - stream if fault == "wrong stream" else stream]
    if fault != "cold first call":
        gpu.launch("kernel", reads=buffers[-1], stream=work)
    gpu.synchronize()
    start_s = gpu.now_s()
    for call in range(calls):
        gpu.launch("kernel", reads=buffers[call % len(buffers)], stream=work)
        if fault == "sync per call":
            waited_for.synchronize()
    if fault not in ("no sync", "sync per call"):
        waited_for.synchronize()
    return (gpu.now_s() - start_s) / calls, gpu


def cold_s(machine: VirtualMachine) -> float:
    """How long the kernel runs when nothing of its data is in the cache."""
    return _working_set(machine) / machine.memory_bandwidth_byte_per_s


def draw_machine(rng: Any) -> VirtualMachine:
    """A machine on which any two faults report alike at one call count at most."""
    while True:
        machine = _random_machine(rng)
        if not look_alikes(machine):
            return machine


def look_alikes(machine: VirtualMachine) -> list[tuple[str, str]]:
    """The pairs of faults whose reports agree within ALIKE at more than one call count."""
    reports = {fault: [timed(fault, _with_its_clock(fault, machine), n)[0] for n in CALLS] for fault in FAULTS}
    return [
        (one, other)
        for one, other in combinations(FAULTS, 2)
        if sum(abs(a - b) <= ALIKE * max(a, b) for a, b in zip(reports[one], reports[other], strict=True)) > 1
    ]


def _working_set(machine: VirtualMachine) -> int:
    # One fits into the L2, two do not: a timer that takes turns never finds its data there.
    return int(0.7 * machine.l2_bytes)


def _random_machine(rng: Any) -> VirtualMachine:
    launch_s = float(rng.uniform(3e-6, 8e-6))
    kernel_s = launch_s * float(rng.uniform(7, 25))
    l2_bytes = int(rng.integers(6_000_000, 100_000_000))
    bandwidth = 0.7 * l2_bytes / kernel_s
    return VirtualMachine(
        name="drawn",
        launch_overhead_s=round(launch_s, 9),
        sync_overhead_s=round(float(rng.uniform(4e-6, 9e-6)), 9),
        module_load_s=round(kernel_s * float(rng.uniform(8, 15)), 9),
        clock_resolution_s=max(1e-9, round(kernel_s * float(rng.uniform(5e-4, 2e-3)), 9)),
        clock_read_cost_s=round(float(rng.uniform(5e-8, 4e-7)), 9),
        memory_bandwidth_byte_per_s=bandwidth,
        l2_bandwidth_byte_per_s=bandwidth * float(rng.uniform(1.8, 3.2)),
        l2_bytes=l2_bytes,
    )


def _spans(gpu: VirtualGPU) -> list[dict[str, Any]]:
    """What ran from the first reading on, with that reading as time 0."""
    spans = gpu.timeline.spans
    from_s = min(span.end_s for span in spans if span.name == "read clock")
    return [
        {
            "row": span.row,
            "kind": span.kind,
            "name": span.name,
            "start_s": round(span.start_s - from_s, 9),
            "end_s": round(span.end_s - from_s, 9),
        }
        for span in spans
        if span.start_s >= from_s
    ]
