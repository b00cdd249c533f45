"""Experiments that run unchanged on a VirtualGPU and on a real GPU, and a command that records them.

    python -m tools.gpu_experiments [FOLDER]

This records them on the machine's CUDA device. The default folder is edl_labs/hardware/recordings.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from edl_labs.device import describe
from edl_labs.errors import UsageError
from edl_labs.hardware.recordings import Recording, Series
from edl_labs.virtual.gpu.machine import VirtualMachine
from edl_labs.virtual.gpu.virtual_gpu import VirtualGPU
from tools.real_gpu import RealGPU

Run = Callable[[], None]
Program = Callable[[Any], Run]
US, MIB = 1e-6, 1 << 20  # units
# Evenly spaced on a logarithmic axis, up to where the queue of launches fills.
LAUNCH_COUNTS = (1, 2, 5, 10, 20, 50, 100, 200)
COPY_BYTES = tuple(4096 * 4**step for step in range(9))


def async_launch(gpu: Any, *, repeats: int = 5, kernel_s: float = 200 * US) -> dict[str, list[float]]:
    """Seconds that n launches seem to take without a synchronisation, and do take with one, for `LAUNCH_COUNTS`."""
    returned, drained = [], []
    for count in LAUNCH_COUNTS:

        def issue(count: int = count) -> None:
            for _ in range(count):
                gpu.launch("kernel", duration_s=kernel_s)

        pairs = [_host_and_drained_s(gpu, issue) for _ in range(repeats)]
        returned.append(statistics.median(pair[0] for pair in pairs))
        drained.append(statistics.median(pair[1] for pair in pairs))
    return {"host returned, not synchronised": returned, "device done, synchronised": drained}


def pinned_copies(gpu: Any, *, repeats: int = 5) -> dict[str, list[float]]:
    """Seconds to copy `COPY_BYTES` to the device, pageable and pinned, and until a non-blocking copy returns."""
    result: dict[str, list[float]] = {"pageable": [], "pinned": [], "pinned, non_blocking: host returned": []}
    for nbytes in COPY_BYTES:
        there = gpu.empty(nbytes)
        pageable, pinned = gpu.host_empty(nbytes), gpu.host_empty(nbytes, pin_memory=True)
        kinds = (
            ("pageable", pageable, False, 1),
            ("pinned", pinned, False, 1),
            ("pinned, non_blocking: host returned", pinned, True, 0),
        )
        for label, source, non_blocking, which in kinds:

            def copy(source: Any = source, non_blocking: bool = non_blocking, there: Any = there) -> None:
                gpu.copy(there, source, non_blocking=non_blocking)

            pairs = [_host_and_drained_s(gpu, copy) for _ in range(repeats)]
            result[label].append(statistics.median(pair[which] for pair in pairs))
    return result


def makespan_s(gpu: Any, program: Program, *, repeats: int = 5) -> float:
    """The time of a program from its first call until the device has drained: the median of a few runs after one."""
    run = program(gpu)
    run()
    return statistics.median(_host_and_drained_s(gpu, run)[1] for _ in range(repeats))


def calibrated(gpu: Any, base: VirtualMachine) -> VirtualMachine:
    """`base` with host costs and copy rates as measured on `gpu` by programs other than `PROGRAMS`."""
    short = [_host_and_drained_s(gpu, lambda: _launches(gpu, 200, 1 * US)) for _ in range(5)]
    launch_s = statistics.median(pair[0] for pair in short) / 200
    idle_s = statistics.median(_host_and_drained_s(gpu, lambda: None)[1] for _ in range(20))
    small, large = (_copy_s(gpu, nbytes, pin_memory=True) for nbytes in (4096, 256 * MIB))
    staged = _copy_s(gpu, 256 * MIB, pin_memory=False)
    return base.warm().replace(
        launch_overhead_s=launch_s,
        sync_overhead_s=idle_s,
        copy_overhead_s=small / 2,
        copy_latency_s=small / 2,
        link_byte_per_s=256 * MIB / (large - small),
        pageable_byte_per_s=256 * MIB / (staged - small),
    )


def _launches(gpu: Any, count: int, duration_s: float) -> None:
    for _ in range(count):
        gpu.launch("kernel", duration_s=duration_s)


def _after_each_launch(gpu: Any, then: Callable[[], Any]) -> Run:
    def run() -> None:
        for _ in range(50):
            gpu.launch("kernel", duration_s=50 * US)
            then()

    return run


def _items(gpu: Any) -> Run:
    loss = gpu.empty(4)
    return _after_each_launch(gpu, lambda: gpu.item(loss[0:4]))


def _copies(gpu: Any, *, pin_memory: bool, to_device: bool, non_blocking: bool = True) -> Run:
    host, there = gpu.host_empty(64 * MIB, pin_memory=pin_memory), gpu.empty(64 * MIB)
    dst, src = (there, host) if to_device else (host, there)

    def run() -> None:
        for _ in range(4):
            gpu.copy(dst, src, non_blocking=non_blocking)

    return run


def _both_ways(gpu: Any) -> Run:
    up, down = gpu.Stream(), gpu.Stream()
    hosts = [gpu.host_empty(64 * MIB, pin_memory=True) for _ in range(2)]
    there, back = gpu.empty(64 * MIB), gpu.empty(64 * MIB)

    def run() -> None:
        gpu.copy(there, hosts[0], non_blocking=True, stream=up)
        gpu.copy(hosts[1], back, non_blocking=True, stream=down)

    return run


def _beside_a_kernel(gpu: Any) -> Run:
    host, there, side = gpu.host_empty(64 * MIB, pin_memory=True), gpu.empty(64 * MIB), gpu.Stream()

    def run() -> None:
        gpu.launch("kernel", duration_s=2000 * US)
        gpu.copy(there, host, non_blocking=True, stream=side)

    return run


def _chunks(gpu: Any, *, overlapped: bool) -> Run:
    host, there = gpu.host_empty(64 * MIB, pin_memory=True), gpu.empty(64 * MIB)
    one = gpu.Stream()
    up, work, down = (gpu.Stream(), gpu.Stream(), gpu.Stream()) if overlapped else (one, one, one)

    def run() -> None:
        for start in range(0, 64 * MIB, 8 * MIB):
            part = slice(start, start + 8 * MIB)
            gpu.copy(there[part], host[part], non_blocking=True, stream=up)
            work.wait_stream(up)
            gpu.launch("kernel", duration_s=300 * US, stream=work)
            down.wait_stream(work)
            gpu.copy(host[part], there[part], non_blocking=True, stream=down)

    return run


# Each prepares its memory and streams, which takes a real machine long, and gives what is to be timed.
PROGRAMS: dict[str, Program] = {
    "short kernels": lambda gpu: lambda: _launches(gpu, 500, 2 * US),
    "long kernels": lambda gpu: lambda: _launches(gpu, 100, 100 * US),
    "more launches than the queue holds": lambda gpu: lambda: _launches(gpu, 3000, 20 * US),
    "a synchronisation after each launch": lambda gpu: _after_each_launch(gpu, gpu.synchronize),
    "an item() after each launch": _items,
    "host work between launches": lambda gpu: _after_each_launch(gpu, lambda: gpu.host_work(100 * US)),
    "pinned copies to the device": lambda gpu: _copies(gpu, pin_memory=True, to_device=True),
    "pinned copies to the host": lambda gpu: _copies(gpu, pin_memory=True, to_device=False),
    "blocking pinned copies": lambda gpu: _copies(gpu, pin_memory=True, to_device=True, non_blocking=False),
    "pageable copies to the device": lambda gpu: _copies(gpu, pin_memory=False, to_device=True),
    "copies both ways at once": _both_ways,
    "a copy beside a kernel": _beside_a_kernel,
    "copy, compute, copy in one stream": lambda gpu: _chunks(gpu, overlapped=False),
    "copy, compute, copy in three streams": lambda gpu: _chunks(gpu, overlapped=True),
}


def _host_and_drained_s(gpu: Any, work: Callable[[], None]) -> tuple[float, float]:
    gpu.synchronize()
    start_s = gpu.now_s()
    work()
    returned_s = gpu.now_s()
    gpu.synchronize()
    return returned_s - start_s, gpu.now_s() - start_s


def _copy_s(gpu: Any, nbytes: int, *, pin_memory: bool) -> float:
    host, there = gpu.host_empty(nbytes, pin_memory=pin_memory), gpu.empty(nbytes)
    gpu.copy(there, host)
    return statistics.median(_host_and_drained_s(gpu, lambda: gpu.copy(there, host))[1] for _ in range(5))


_EXPERIMENTS: dict[str, tuple[Any, str, str, tuple[int, ...], str]] = {
    "async_launch": (async_launch, "kernels launched", "", LAUNCH_COUNTS, "launches of 200 µs kernels"),
    "pinned_copies": (pinned_copies, "bytes copied", "B", COPY_BYTES, "copies from pageable and pinned memory"),
}


def modelled(hardware_key: str) -> tuple[Recording, ...]:
    """Every experiment on a VirtualGPU of the hardware table; the titles say that nothing was measured."""
    machine = VirtualMachine.of(hardware_key).warm()
    environment = {"virtual_machine": machine.to_dict()}
    return tuple(
        _run(name, VirtualGPU(machine), key=hardware_key, environment=environment, is_modelled=True)
        for name in _EXPERIMENTS
    )


def measured() -> tuple[Recording, ...]:
    """Every experiment on this machine's CUDA device, with its environment stamp.

    Raises UsageError without a CUDA device, or with one that the hardware table does not know by its reported name.
    """
    gpu, stamp = RealGPU(), describe("cuda")
    if stamp.hardware_key is None:
        raise UsageError(
            f"{stamp.device_name} is not in the hardware table",
            why="recordings are found by the key of the accelerator in this table",
            next="add it to edl_labs/hardware/accelerators.toml, with sources",
        )
    environment = stamp.to_dict()
    return tuple(
        _run(name, gpu, key=stamp.hardware_key, environment=environment, is_modelled=False) for name in _EXPERIMENTS
    )


def write(recordings: tuple[Recording, ...], directory: Path) -> tuple[Path, ...]:
    """Write recordings as files, one each, and give their paths."""
    directory.mkdir(parents=True, exist_ok=True)
    paths = tuple(directory / f"{recording.name}.json" for recording in recordings)
    for path, recording in zip(paths, recordings, strict=True):
        path.write_text(recording.to_json(), encoding="utf-8")
    return paths


def _run(name: str, gpu: Any, *, key: str, environment: Mapping[str, Any], is_modelled: bool) -> Recording:
    experiment, x_label, x_unit, x, subject = _EXPERIMENTS[name]
    how = "Modelled, not measured" if is_modelled else f"Measured on {environment['device_name']}"
    lines = experiment(gpu, repeats=1 if is_modelled else 9)
    return Recording(
        name=f"{key.lower().replace('-', '_')}_{name}" + ("_modelled" if is_modelled else ""),
        title=f"{how}: {subject} ({key})",
        experiment=name,
        hardware_key=key,
        modelled=is_modelled,
        environment=environment,
        x_label=x_label,
        x_unit=x_unit,
        x=tuple(x),
        series=tuple(
            Series(label, "s", tuple(float(f"{value:.6g}") for value in values)) for label, values in lines.items()
        ),
    )


def main() -> None:
    """Record here, and print the paths."""
    from edl_labs.hardware import recordings

    folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(recordings.__file__).parent)
    for path in write(measured(), folder):
        print(path)


if __name__ == "__main__":
    main()
