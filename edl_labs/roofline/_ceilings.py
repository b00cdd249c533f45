"""`ceilings`: what this device really reaches, memory level by memory level and dtype by dtype."""

from __future__ import annotations

import hashlib
import json
import math
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from edl_labs.arguments import checked_arguments, require_positive
from edl_labs.clock import AcceleratorClock, Clock, EventClock, HostClock
from edl_labs.device import Device, best_device, budget_here, describe, free_bytes, is_quick
from edl_labs.errors import UsageError
from edl_labs.hardware import Accelerator, accelerator, dtype_name
from edl_labs.roofline.machine_ceilings import CUT_SHORT, DOUBTFUL, Ceiling, Machine, MemoryLevel
from edl_labs.roofline.microbenchmarks import fastest_kernels
from edl_labs.roofline.microbenchmarks.compiled_streams import cache_folder, compiled_streams
from edl_labs.roofline.microbenchmarks.kernels import TimedKernel, Workers, block_rate, link_kernels, measure_all
from edl_labs.units import byte_count

# A promise to users: a notebook waits this long, once; a GPU's cell is to be done within 10 s, search included.
CPU_BUDGET_S, GPU_BUDGET_S = 12.0, 7.0
LEAST_BUDGET_S = 2.0  # with less, not each ceiling has a measurement of its own
DTYPES = {
    "cpu": ("fp64", "fp32", "bf16", "fp16", "int8"),
    "cuda": ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8"),
}
_LEAST_LARGEST_BYTES = 128 << 20  # of a sweep's working sets; in a quick run also the most: some are held at a time
_MOST_LARGEST_BYTES = 2 << 30  # six times the last cache of large servers is more than a measurement may hold
_HELD_AT_A_TIME = 8  # working sets of the largest size that fit into free memory: measured were four; half stays free
_UNKNOWN_LLC_BYTES = 32 << 20  # the last cache of a common server, where the system does not tell
_NEEDS_COMPILED = ("L1", "L2")  # a call of numpy costs as much as going over what they hold
_UNTOLD_NEAREST_BYTES = 4 << 20  # a core's: more than the L2 of any common one
_NO_COMPILER = "not measured: no C compiler here (on Debian and Ubuntu: apt-get install g++)"
_LAUNCHES = 200  # so many that the start of the row no longer shows
_CACHE_VERSION = 2  # counts up when the way of measuring changes, so that kept machines are measured again
# What a ceiling depends on: another value means that it must be measured again.
_FACTS = ("kind", "device_name", "driver", "cuda", "torch", "threads", "usable_cores", "sm_count", "memory_bytes")
# Cards in doubt that this process has measured again: on a machine that stays busy once is enough.
_TAKEN_AGAIN: set[Path] = set()
Progress = Callable[[int, int, str], None]


@checked_arguments()
def ceilings(
    device: object = None,
    *,
    budget_s: float | None = None,
    dtypes: Iterable[object] | None = None,
    refresh: bool = False,
    progress: Progress | None = None,
) -> Machine:
    """This device's ceilings as a `Machine`: measured once, then read from a file of the user's cache folder.

    Bandwidth of every memory level for reading, copying and adding two streams (triad), from a sweep of working sets;
    the peak of matrix products for each dtype, from a search over shapes on random data, dense, with TF32 only where it
    says so; host and device links; the time of the smallest operation. What a core's own caches give, only compiled
    loops show (built once, by the system's C compiler): without one they are `unmeasured`. `refresh` measures again. A
    remembered card in doubt by over 15 % is measured again automatically (once in a process; the surer one is kept), as
    is one that a point has beaten. Takes `budget_s` (12 on a CPU, 7 on an accelerator) and a little more; on a CPU,
    half of the free memory, or 0.5 GB where that is more. UsageError where there is no such device.
    """
    name = best_device() if device is None else str(device)
    stamp = describe(name)
    wanted = _wanted(stamp.kind, dtypes)
    budget = (CPU_BUDGET_S if stamp.kind == "cpu" else GPU_BUDGET_S) if budget_s is None else budget_s
    require_positive(budget_s=budget)
    budget = budget_here(budget, least_s=LEAST_BUDGET_S)
    path = _cache_path(stamp, asked=wanted)
    known = None if refresh else _remembered(path)
    if known is not None and known.unmeasured and compiled_streams() is not None:
        known = None  # a compiler came since
    if known is not None and (known.doubt <= DOUBTFUL or path in _TAKEN_AGAIN):
        return known
    if known is not None:
        _TAKEN_AGAIN.add(path)
    machine = _measured(stamp, wanted, budget_s=budget, progress=progress)
    if known is not None and known.doubt < machine.doubt:
        machine = known
    _remember(path, machine)
    return machine


def forget(machine: Machine) -> bool:
    """Drops the remembered card of `machine`, so that the next call measures again; whether there was one."""
    found = [path for path in cache_folder().glob("ceilings-*.json") if _remembered(path) == machine]
    for path in found:
        path.unlink(missing_ok=True)
    return bool(found)


def _wanted(kind: str, dtypes: Iterable[object] | None) -> tuple[str, ...]:
    if dtypes is None:
        return DTYPES.get(kind, ("fp32", "fp16", "bf16"))
    chosen = tuple(dict.fromkeys(dtype_name(dtype) for dtype in dtypes))
    if not chosen:
        raise UsageError(
            "there is no dtype to measure",
            why="a roofline needs at least one compute ceiling",
            next="pass dtypes=['fp32'], or omit dtypes",
        )
    return chosen


def _measured(stamp: Device, dtypes: tuple[str, ...], *, budget_s: float, progress: Progress | None) -> Machine:
    start = time.perf_counter()
    say = progress or (lambda done, total, text: None)
    chip = accelerator(stamp.hardware_key) if stamp.hardware_key else None
    is_cpu = stamp.kind == "cpu"
    clock: Clock = HostClock() if is_cpu else _device_clock(stamp)
    streams = compiled_streams() if is_cpu else None
    workers = Workers(stamp.threads or stamp.usable_cores, streams=streams) if is_cpu else None
    try:
        say(0, 4, "working sets")
        told, unmeasured = _reachable(_told_levels(stamp, workers), workers)
        smallest_bytes = _smallest_bytes(workers, unmeasured)
        largest_bytes = _largest_bytes(told, room_bytes=free_bytes() if is_cpu else None)
        looked_at = fastest_kernels.working_sets(
            told if is_cpu else [], smallest_bytes=smallest_bytes, largest_bytes=largest_bytes
        )
        sweep = fastest_kernels.sweep(stamp, clock, workers, working_sets=looked_at)
        capacities = told or _seen_levels(sweep)
        say(1, 4, "matrix products")
        left_s = budget_s - (time.perf_counter() - start)
        products, refused = fastest_kernels.fastest_products(
            stamp.device, dtypes, clock, until_s=clock.now_s() + left_s / 2
        )
        say(2, 4, "ceilings")
        kernels = fastest_kernels.fastest_memory_kernels(stamp, clock, workers, capacities=capacities, sweep=sweep)
        kernels |= {f"matmul {dtype}": kernel for dtype, kernel in products.items()}
        kernels |= {} if is_cpu else {f"link {name}": kernel for name, kernel in link_kernels(stamp.device).items()}
        left_s = max(1.0, budget_s - (time.perf_counter() - start))
        found = measure_all(kernels, clock, until_s=clock.now_s() + left_s)
    finally:
        if workers is not None:
            workers.close()
    say(3, 4, "smallest operation")
    machine = Machine(
        name=stamp.device_name,
        levels=_levels(capacities, found, sweep, main=_main_name(stamp, chip)),
        matmul=_named("matmul ", found),
        vector=_vector(chip),
        units=stamp.sm_count or stamp.threads or stamp.usable_cores,
        latency_s=_latency_s(stamp.device, clock),
        links=_named("link ", found),
        origin="measured",
        settings=_settings(stamp, refused) | dict.fromkeys(unmeasured, _NO_COMPILER) | _cut_short(told, largest_bytes),
        sweep=tuple((pattern, float(one.size_bytes), one.rate) for pattern, some in sweep.items() for one in some),
        hardware_key=stamp.hardware_key,
        stamp=stamp,
        wall_s=time.perf_counter() - start,
        unmeasured=unmeasured,
    )
    say(4, 4, "")
    return machine


def _device_clock(stamp: Device) -> Clock:
    return EventClock.of(stamp.device) if stamp.kind == "cuda" else AcceleratorClock(stamp.device)


def _told_levels(stamp: Device, workers: Workers | None) -> list[tuple[str, float]]:
    if workers is not None:
        return [(name, float(size)) for name, size in fastest_kernels.host_caches(workers.count)]
    return [("L2", float(stamp.l2_bytes))] if stamp.l2_bytes else []


def _reachable(
    told: list[tuple[str, float]], workers: Workers | None
) -> tuple[list[tuple[str, float]], dict[str, float]]:
    """The caches that can be measured here, and those for which only compiled loops are quick enough."""
    if workers is None or workers.streams is not None:
        return told, {}
    nearest = {name: size for name, size in told if name in _NEEDS_COMPILED}
    return [(name, size) for name, size in told if name not in nearest], nearest or {
        "nearest caches": _UNTOLD_NEAREST_BYTES * workers.count
    }


def _smallest_bytes(workers: Workers | None, unmeasured: Mapping[str, float]) -> int:
    """The smallest working set that calls of this machine can show the rate of."""
    if workers is None:
        return 4 << 20
    return max((16 << 10) * workers.count, *(int(1.5 * size) for size in unmeasured.values()), 0)


def _seen_levels(sweep: fastest_kernels.Sweep) -> list[tuple[str, float]]:
    found = fastest_kernels.steps([(point.size_bytes, point.rate) for point in sweep["read"]])
    return [(f"cache {place + 1}", float(size)) for place, size in enumerate(found)]


def _largest_bytes(told: list[tuple[str, float]], *, room_bytes: int | None = None) -> int:
    most = _MOST_LARGEST_BYTES if room_bytes is None else room_bytes // _HELD_AT_A_TIME
    return max(min(_far_beyond(told), _LEAST_LARGEST_BYTES if is_quick() else most), _LEAST_LARGEST_BYTES)


def _far_beyond(told: list[tuple[str, float]]) -> int:
    """A working set of which the last cache holds little."""
    last = int(told[-1][1]) if told else _UNKNOWN_LLC_BYTES
    return max(min(6 * last, _MOST_LARGEST_BYTES), _LEAST_LARGEST_BYTES)


def _cut_short(told: list[tuple[str, float]], largest_bytes: int) -> dict[str, str]:
    """What the card says where the memory here, or a quick run, allowed no working sets far beyond the last cache."""
    wanted = _far_beyond(told)
    if largest_bytes >= wanted:
        return {}
    why = "this was a quick run" if is_quick() else "half of the free memory is left free"
    return {
        CUT_SHORT: f"sweep cut short at {byte_count(largest_bytes)} of {byte_count(wanted)} ({why}), so caches may "
        "have helped"
    }


def _levels(
    capacities: list[tuple[str, float]],
    found: Mapping[str, Ceiling],
    sweep: fastest_kernels.Sweep,
    *,
    main: str,
) -> tuple[MemoryLevel, ...]:
    made: list[MemoryLevel] = []
    farther: dict[str, Ceiling] = {}
    for name, capacity in reversed([*capacities, ("main", math.inf)]):
        bandwidth = {pattern: found[f"{name} {pattern}"] for pattern in sweep if f"{name} {pattern}" in found}
        # Nearer memory is never slower: where it seems so, the calls were too short to show it.
        bandwidth = {pattern: max(own, farther.get(pattern, own), key=_rate_of) for pattern, own in bandwidth.items()}
        if bandwidth:
            made.append(MemoryLevel(main if name == "main" else name, capacity, bandwidth))
            farther = bandwidth
    return tuple(reversed(made))


def _rate_of(ceiling: Ceiling) -> float:
    return ceiling.rate


def _main_name(stamp: Device, chip: Accelerator | None) -> str:
    if chip is not None and chip.memory_kind.startswith("HBM"):
        return "HBM"
    return "DRAM"


def _vector(chip: Accelerator | None) -> dict[str, Ceiling]:
    """What the CUDA cores do beside the tensor cores: from the datasheet, since no kernel of torch is bound by it."""
    if chip is None:
        return {}
    return {
        dtype: Ceiling(chip.peak_flop_per_s(dtype, unit="cuda"), note="datasheet") for dtype in chip.dtypes(unit="cuda")
    }


def _latency_s(device: str, clock: Clock) -> float:
    """The time of the smallest operation, one of many in a row."""
    import torch

    one = torch.ones((), device=device)
    kernel = TimedKernel("in-place addition of one number", 1.0, lambda: one.add_(1.0))
    return 1.0 / block_rate(kernel, clock, calls=_LAUNCHES)


def _named(prefix: str, found: Mapping[str, Ceiling]) -> dict[str, Ceiling]:
    return {name.removeprefix(prefix): value for name, value in found.items() if name.startswith(prefix)}


def _settings(stamp: Device, refused: Mapping[str, str]) -> dict[str, str]:
    import torch

    stated = {"sparsity": "dense: no 2:4 sparsity", "data": "random normal values"}
    if stamp.kind == "cuda":
        matmul: Any = torch.backends.cuda.matmul
        stated["fp32"] = "TF32 is off, and has a separate ceiling"
        stated["fp16 reduced-precision reduction"] = str(matmul.allow_fp16_reduced_precision_reduction)
        stated["bf16 reduced-precision reduction"] = str(matmul.allow_bf16_reduced_precision_reduction)
        stated["vector"] = (
            "from the datasheet"
            if stamp.hardware_key
            else "unknown device, so shares are relative to the measured peak of matrix products"
        )
    else:
        stated["threads"] = str(stamp.threads)
    return {**stated, **{f"{dtype} left out": why for dtype, why in refused.items()}}


def _cache_path(stamp: Device, *, asked: Any = None) -> Path:
    """The file of the machine with this stamp; `asked` is what else was asked for (dtypes)."""
    facts = {name: getattr(stamp, name) for name in _FACTS}
    text = json.dumps([Machine.SCHEMA, _CACHE_VERSION, facts, asked], sort_keys=True, default=str)
    return cache_folder() / f"ceilings-{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"


def _remembered(path: Path) -> Machine | None:
    """The machine in a file; None without a file that can be read."""
    try:
        return Machine.from_json(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, UsageError):
        return None


def _remember(path: Path, machine: Machine) -> None:
    """Keep a machine, whole or not at all; a folder that cannot be written to keeps nothing."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".new", delete=False, encoding="utf-8") as file:
            json.dump(machine.to_json(), file)
        os.replace(file.name, path)
    except OSError:
        return
