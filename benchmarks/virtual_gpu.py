"""How fast the VirtualGPU is: operations issued and replayed per second of processor time, and memory per operation.

Processor time is used so that other programs on the machine do not count.

Run with `python benchmarks/virtual_gpu.py [--json]`. Exit status 1 means that a target is missed. `--against PATH`
compares with the library of another worktree (`git worktree add PATH COMMIT`). The two alternate, each in a separate
process, and the medians of the ratios of consecutive runs are printed.
"""

from __future__ import annotations

import gc
import json
import os
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

from edl_labs.virtual import VirtualGPU, VirtualMachine, replay

TARGET_PER_S = 200_000
# Of the rate of commit 0156795, which is what `--against` was written for.
TARGET_RATIO = 2.5
COUNT, ROUNDS = 60_000, 5
MACHINE = VirtualMachine.of("H200").warm()


def device_bound(gpu: VirtualGPU, count: int) -> None:
    """Launches longer than their overhead: the queue is full, and the host waits for room at every launch."""
    for _ in range(count):
        gpu.launch("kernel", duration_s=10e-6)


def launch_bound(gpu: VirtualGPU, count: int) -> None:
    """Launches shorter than their overhead."""
    for _ in range(count):
        gpu.launch("kernel", duration_s=1e-6)


def timed_calls(gpu: VirtualGPU, count: int) -> None:
    """A timer's loop: a launch, a synchronisation and a reading of the clock."""
    for _ in range(count // 3):
        gpu.launch("kernel", duration_s=10e-6)
        gpu.synchronize()
        gpu.now_s()


def pipeline(gpu: VirtualGPU, count: int) -> None:
    """Copies, kernels, events and waits on three streams."""
    up, work, down = gpu.Stream(), gpu.Stream(), gpu.Stream()
    host, there = gpu.host_empty(1 << 20, pin_memory=True), gpu.empty(1 << 20)
    arrived, computed = gpu.Event(), gpu.Event()
    for _ in range(count // 7):
        gpu.copy(there, host, non_blocking=True, stream=up)
        arrived.record(up)
        work.wait_event(arrived)
        gpu.launch("kernel", duration_s=20e-6, stream=work)
        computed.record(work)
        down.wait_event(computed)
        gpu.copy(host, there, non_blocking=True, stream=down)


def priced(gpu: VirtualGPU, count: int) -> None:
    """Kernels given as work on declared buffers, priced by the machine with its cache."""
    x, y = gpu.empty(1 << 20), gpu.empty(1 << 20)
    for _ in range(count):
        gpu.launch("kernel", flops=1e6, reads=x, writes=y, elementwise=True)


PROGRAMS = (device_bound, launch_bound, timed_calls, pipeline, priced)


def main(arguments: list[str]) -> int:
    """Measure, print, and say whether the targets are met."""
    if "--rates" in arguments:
        program = next(program for program in PROGRAMS if program.__name__ == arguments[-1])
        print(json.dumps(rates(program)))
        return 0
    if "--against" in arguments:
        return against(Path(arguments[arguments.index("--against") + 1]), as_json="--json" in arguments)
    rows = {program.__name__: measure(program) for program in PROGRAMS}
    if "--json" in arguments:
        print(json.dumps({"schema": 1, "target_per_s": TARGET_PER_S, "programs": rows}, indent=1))
    else:
        for name, row in rows.items():
            print(
                f"{name:14} {row['issued_per_s']:>10,.0f} issued/s {row['replayed_per_s']:>10,.0f} replayed/s", end=""
            )
            print(f" {row['bytes_per_operation']:>6.0f} B per operation, ", end="")
            print(f"{row['memory_growth']:.2f}x the memory for 2x the operations")
    plain = min(rows[name]["issued_per_s"] for name in ("device_bound", "launch_bound"))
    is_linear = all(row["memory_growth"] < 2.2 for row in rows.values())
    return 0 if plain >= TARGET_PER_S and is_linear else 1


def against(other: Path, *, as_json: bool) -> int:
    """How many times faster this library is than that of another worktree, by program, issued and replayed."""
    here, rows = Path(__file__).resolve().parent.parent, {}
    for program in PROGRAMS:
        pairs = [[_rates_of(tree, program.__name__) for tree in (other, here)] for _ in range(ROUNDS)]
        for which, name in enumerate(("issued", "replayed")):
            ratios = sorted(after[which] / before[which] for before, after in pairs)
            row = {"ratio": statistics.median(ratios), "lowest": ratios[0], "highest": ratios[-1]}
            rows[f"{program.__name__}, {name}"] = row
            if not as_json:
                print(
                    f"{program.__name__:14} {name:9} {row['ratio']:5.2f}x ({ratios[0]:.2f} to {ratios[-1]:.2f})",
                    flush=True,
                )
    if as_json:
        print(json.dumps({"schema": 1, "target": TARGET_RATIO, "ratios": rows}, indent=1))
    return 0 if all(row["ratio"] >= TARGET_RATIO for row in rows.values()) else 1


def _rates_of(tree: Path, program: str) -> list[float]:
    # This very file with the library of `tree`: both run the same programs.
    command = [sys.executable, __file__, "--rates", program]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(tree)}, capture_output=True, text=True, check=True
    )
    result: list[float] = json.loads(done.stdout)
    return result


def rates(program: Callable[[VirtualGPU, int], None]) -> tuple[float, float]:
    """Operations issued and replayed per processor second, the best of three."""
    issue_s, replay_s, operations = [], [], 0
    for _ in range(3):
        gc.collect()
        gpu = VirtualGPU(MACHINE)
        start_s = time.process_time()
        program(gpu, COUNT)
        gpu.synchronize()
        issue_s.append(time.process_time() - start_s)
        record = gpu.program
        operations = len(record)
        del gpu
        start_s = time.process_time()
        replay(record, MACHINE)
        replay_s.append(time.process_time() - start_s)
    return operations / min(issue_s), operations / min(replay_s)


def measure(program: Callable[[VirtualGPU, int], None]) -> dict[str, float]:
    """The rates of one program, and the memory that its record takes."""
    issued_per_s, replayed_per_s = rates(program)
    half, whole = (recorded_bytes(program, count) for count in (COUNT // 6, COUNT // 3))
    return {
        "issued_per_s": issued_per_s,
        "replayed_per_s": replayed_per_s,
        "bytes_per_operation": whole / (COUNT / 3),
        "memory_growth": whole / half,
    }


def recorded_bytes(program: Callable[[VirtualGPU, int], None], count: int) -> int:
    """What is still allocated after issuing `count` operations and draining."""
    gc.collect()
    tracemalloc.start()
    gpu = VirtualGPU(MACHINE)
    program(gpu, count)
    gpu.synchronize()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return held


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
