"""The cases of broken_timers: timers with one fault each, run on a VirtualGPU, and what they reported.

All timelines hold the same spans but for their times, in any order: what tells the faults apart is when things happen.
A plain report of each fault, in stream 0, is what goldens show; most are odd ones, which look like others' plain ones.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

from edl_labs.checks import Case, case_source
from edl_labs.exercises.lab01_gpu_basics.broken_timers import CHECK, FAULTS, KERNEL, SHOWN_CALLS
from edl_labs.virtual import VirtualGPU, VirtualMachine

CALLS = (1, 4, 16, 64)  # fourfold steps, over which what is paid once fades
ODD = 3  # odd reports of each fault, beside a plain one: one lucky guess names no fault for good
ALIKE = 0.02  # closer than this, two reports look the same in the digits that are shown
_CHECKS, _WAITS = 5, 5  # kernels that check the results; waits of a timer with all of its check
_COARSER = 1100  # a step of 1.05e-3 to 8e-3 calls becomes one of 1.2 to 9
# What a machine's costs are in calls on data that are not in the cache: a plain machine's, and what is other where a
# fault hides: its report then is, by every number in it, most like a plain one of another fault.
_PLAIN = {
    "launch": (0.04, 0.07),
    "sync": (0.04, 0.07),
    "load": (8, 15),
    "warm": (0.4, 0.55),
    "copied": (0.14, 0.2),
    "step": (2e-3, 8e-3),
}
_ODD = {
    "no sync": {"launch": (0.3, 0.45), "sync": (0.02, 0.03), "warm": (0.6, 0.9), "copied": (0.6, 0.9)},
    "sync per call": {"launch": (0.027, 0.032), "sync": (0.02, 0.03)},
    "cold first call": {"load": (0.4, 0.7), "launch": (0.03, 0.04), "sync": (0.02, 0.03)},
    "wrong stream": {"copied": (0.9, 0.96)},
    "cache-warm": {"warm": (0.88, 0.93), "launch": (0.14, 0.2), "copied": (0.5, 0.8)},
    "clock too coarse": {"step": (1.05e-3, 1.6e-3)},
    "none": {"launch": (0.7, 0.85), "sync": (0.7, 0.85), "warm": (0.9, 0.95), "copied": (0.9, 0.95)},
}


@case_source("broken_timers")
def cases(rng: Any) -> list[Case]:
    # The fault itself is not part of a case: cases travel to the student's process.
    plain = draw_machine(rng)
    reports = [report(fault, plain, rng=rng) for fault in FAULTS]
    reports += [report(fault, draw_machine(rng, fault), stream=1, rng=rng) for fault in FAULTS for _ in range(ODD)]
    return [Case(given=reports[i]) for i in rng.permutation(len(reports))]


def report(fault: str, machine: VirtualMachine, *, stream: int = 0, rng: Any = None) -> dict[str, Any]:
    """What a timer with `fault` reports on `machine`, as plain data that does not name the fault."""
    machine = _with_its_clock(fault, machine)
    spans = _spans(_checked(fault, machine, stream=stream))
    return {
        "calls": list(CALLS),
        "seconds_per_call": [timed(fault, machine, calls, stream=stream)[0] for calls in CALLS],
        "true_seconds_per_call": cold_s(machine),
        "launch_s": machine.launch_overhead_s,
        "clock_resolution_s": machine.clock_resolution_s,
        "timeline": spans if rng is None else [spans[i] for i in rng.permutation(len(spans))],
    }


def _with_its_clock(fault: str, machine: VirtualMachine) -> VirtualMachine:
    # A sound clock's step is a small share of a call; the coarse one's is some thousand times as long.
    if fault != "clock too coarse":
        return machine
    return machine.replace(clock_resolution_s=_COARSER * machine.clock_resolution_s)


def timed(fault: str, machine: VirtualMachine, calls: int, *, stream: int = 0) -> tuple[float, VirtualGPU]:
    """Seconds per call as a timer with `fault` reports them, and the GPU that it ran on.

    A loader's copy overlaps the calls, in a stream of its own, and ends before the last of them.
    """
    gpu, nbytes = VirtualGPU(machine), _working_set(machine)
    buffers = [gpu.empty(nbytes) for _ in range(1 if fault == "cache-warm" else 2)]
    batch, there = gpu.host_empty(calls * nbytes, pin_memory=True), gpu.empty(calls * nbytes)
    streams = [gpu.default_stream(), gpu.Stream()]
    work, beside = streams[stream], streams[1 - stream]
    if fault == "cold first call":
        gpu.launch(CHECK, duration_s=0.0, stream=work)
    else:
        gpu.launch(KERNEL, reads=buffers[-1], stream=work)
    gpu.synchronize()
    start_s = gpu.now_s()
    gpu.copy(there, batch, non_blocking=True, stream=beside)
    for call in range(calls):
        gpu.launch(KERNEL, reads=buffers[call % len(buffers)], stream=work)
        if fault == "sync per call":
            work.synchronize()
    if fault not in ("no sync", "sync per call"):
        (beside if fault == "wrong stream" else work).synchronize()
    return (gpu.now_s() - start_s) / calls, gpu


def _checked(fault: str, machine: VirtualMachine, *, stream: int) -> VirtualGPU:
    """The GPU after SHOWN_CALLS timed calls and a check of their results, which makes up for the waits they lack."""
    _, gpu = timed(fault, machine, SHOWN_CALLS, stream=stream)
    work = gpu.streams[stream]
    waits = _WAITS - {"no sync": 0, "sync per call": SHOWN_CALLS}.get(fault, 1)
    if fault in ("no sync", "wrong stream"):
        work.synchronize()
        waits -= 1
    for number in range(_CHECKS):
        gpu.launch(CHECK, duration_s=cold_s(machine), stream=work)
        if number < waits:
            work.synchronize()
    return gpu


def cold_s(machine: VirtualMachine) -> float:
    """How long the kernel runs when nothing of its data is in the cache."""
    return _working_set(machine) / machine.memory_bandwidth_byte_per_s


def draw_machine(rng: Any, fault: str = "") -> VirtualMachine:
    """A plain machine, or one on which `fault` hides; any two faults report alike at one call count at most."""
    while True:
        machine = _random_machine(rng, **{**_PLAIN, **_ODD.get(fault, {})})
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


def _random_machine(rng: Any, **calls: tuple[float, float]) -> VirtualMachine:
    kernel_s, l2_bytes = float(rng.uniform(40e-6, 250e-6)), int(rng.integers(6_000_000, 100_000_000))
    share = {name: float(rng.uniform(*between)) for name, between in calls.items()}
    bandwidth = 0.7 * l2_bytes / kernel_s
    return VirtualMachine(
        name="drawn",
        launch_overhead_s=round(kernel_s * share["launch"], 9),
        sync_overhead_s=round(kernel_s * share["sync"], 9),
        module_load_s=round(kernel_s * share["load"], 9),
        clock_resolution_s=max(1e-9, round(kernel_s * share["step"], 9)),
        clock_read_cost_s=round(float(rng.uniform(5e-8, 4e-7)), 9),
        memory_bandwidth_byte_per_s=bandwidth,
        l2_bandwidth_byte_per_s=bandwidth / share["warm"],
        link_byte_per_s=bandwidth / share["copied"],
        l2_bytes=l2_bytes,
    )


def _spans(gpu: VirtualGPU) -> list[dict[str, Any]]:
    """What ran from the first reading on, with its end as time 0."""
    spans = gpu.timeline.spans
    first = min((span for span in spans if span.name == "read clock"), key=lambda span: span.start_s)
    from_s = first.end_s
    return [
        {
            "row": span.row,
            "kind": span.kind,
            "name": "copy" if span.kind == "copy" else "load a kernel" if span.name.startswith("load ") else span.name,
            "start_s": round(span.start_s - from_s, 9),
            "end_s": round(span.end_s - from_s, 9),
        }
        for span in spans
        if span.start_s >= first.start_s
    ]
