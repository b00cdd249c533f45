"""How fast the VirtualCluster is, compared with the VirtualGPU, in operations per second of processor time.

Processor time is used so that other programs on the machine do not count. Both machines alternate in one process, and
the median of the ratios of consecutive runs is printed. Growth is the factor by which the replay's time grows for twice
the operations: 2 is linear.

Run with `python benchmarks/virtual_cluster.py [--full] [--json]`. `--full` runs 64 ranks x 10,000 operations. Exit
status 1 means that a target is missed.
"""

from __future__ import annotations

import gc
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from edl_labs.virtual import VirtualGPU, VirtualMachine, replay
from edl_labs.virtual.cluster import VirtualCluster, replay_cluster

ROUNDS = 5
# No slower than the VirtualGPU's kernels with buffers; linear, with the doubt of a run.
TARGET_RATIO, MOST_GROWTH = 1.0, 2.5


def training(dist: Any, operations: int) -> None:
    """A data-parallel loop: kernels, buckets reduced beside them, waits, an update."""
    grads = [dist.tensor(1_000_000, name=f"bucket {at}") for at in range(4)]
    for _ in range(operations // 13):
        works = []
        for grad in grads:
            dist.launch("backward", duration_s=1e-3, writes=grad)
            works.append(dist.all_reduce(grad, async_op=True))
        for work in works:
            work.wait()
        dist.launch("update", duration_s=1e-4, reads=grads)


def neighbours(dist: Any, operations: int) -> None:
    """A pipeline's loop: receive, compute, send."""
    count, rank, x, y = dist.get_world_size(), dist.get_rank(), dist.tensor(1000), dist.empty(1000)
    for _ in range(operations // 4):
        work = dist.isend(x, (rank + 1) % count)
        dist.recv(y, (rank - 1) % count)
        dist.launch("stage", duration_s=1e-5, reads=y, writes=y)
        work.wait()


def pipeline(gpu: VirtualGPU, count: int) -> None:
    """The VirtualGPU's comparison: copies, kernels, events and waits on three streams (benchmarks/virtual_gpu.py)."""
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
    """The VirtualGPU's kernels with declared buffers, which is what a cluster's programs are made of."""
    x, y = gpu.empty(1 << 20), gpu.empty(1 << 20)
    for _ in range(count):
        gpu.launch("kernel", flops=1e6, reads=x, writes=y, elementwise=True)


def seconds_of(act: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds of a call, and what it gave."""
    gc.collect()
    start_s = time.process_time()
    result = act()
    return time.process_time() - start_s, result


def gpu_rate(program: Callable[[VirtualGPU, int], None], count: int) -> float:
    """Operations of a program that the VirtualGPU replays in a processor second."""
    gpu = VirtualGPU(VirtualMachine.of("H200").warm())
    program(gpu, count)
    recorded = gpu.program
    took_s, _ = seconds_of(lambda: replay(recorded, gpu.machine))
    return len(recorded) / took_s


def measure(program: Callable[[Any, int], None], *, ranks: int, operations: int) -> dict[str, float]:
    """The rates of one program on a cluster, against the VirtualGPU's of the same minute."""
    cluster = VirtualCluster.of("8xH100", nodes=ranks // 8)
    record_s, programs = seconds_of(lambda: cluster.record(program, operations))
    half = cluster.record(program, operations // 2)
    total = sum(map(len, programs))
    rates, growth = [], []
    ratios: dict[str, list[float]] = {"pipeline": [], "priced": []}
    for _ in range(ROUNDS):
        beside = {one.__name__: gpu_rate(one, 60_000) for one in (pipeline, priced)}
        took_s, _ = seconds_of(lambda: replay_cluster(programs, cluster.machine))
        half_s, _ = seconds_of(lambda: replay_cluster(half, cluster.machine))
        rates.append(total / took_s)
        for name, rate in beside.items():
            ratios[name].append(total / took_s / rate)
        growth.append(took_s / half_s)
    return {
        "operations": total,
        "recorded_per_s": total / record_s,
        "replayed_per_s": statistics.median(rates),
        **{f"ratio_{name}": statistics.median(found) for name, found in ratios.items()},
        "growth": statistics.median(growth),
    }


def main(arguments: list[str]) -> int:
    """Measure, print, and say whether the targets are met."""
    ranks, operations = (64, 10_000) if "--full" in arguments else (16, 2_000)
    rows = {one.__name__: measure(one, ranks=ranks, operations=operations) for one in (training, neighbours)}
    if "--json" in arguments:
        print(json.dumps({"schema": 1, "ranks": ranks, "target_ratio": TARGET_RATIO, "programs": rows}, indent=1))
    else:
        for name, row in rows.items():
            print(
                f"{name:12} {row['operations']:>8,.0f} operations on {ranks} ranks: {row['recorded_per_s']:>9,.0f} "
                f"recorded/s {row['replayed_per_s']:>9,.0f} replayed/s, {row['ratio_priced']:.2f}x the rate of the "
                f"VirtualGPU's kernels with buffers, {row['ratio_pipeline']:.2f}x that of its pipeline, "
                f"{row['growth']:.2f}x the time for 2x the operations"
            )
    good = all(row["ratio_priced"] >= TARGET_RATIO and row["growth"] <= MOST_GROWTH for row in rows.values())
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
