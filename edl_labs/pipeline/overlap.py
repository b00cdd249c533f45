"""Overlap of loading, copying and computing: on the VirtualGPU, on a real accelerator, and told from a trace."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edl_labs.arguments import checked_arguments
from edl_labs.errors import UsageError
from edl_labs.values import Value
from edl_labs.virtual import Span, Timeline, VirtualGPU, VirtualMachine

_KERNELS = ("kernel", "gpu_op")
_COPIES = ("copy", "gpu_memcpy", "memcpy")


@dataclass(frozen=True, repr=False)
class Overlap(Value):
    """How long copies and kernels ran, and how long both at once; `fraction` is the share of copying that is hidden."""

    DERIVED = ("fraction",)

    copy_s: float
    kernel_s: float
    both_s: float
    makespan_s: float

    @property
    def fraction(self) -> float:
        """The share of the copying time during which a kernel runs; 0 without copies."""
        return self.both_s / self.copy_s if self.copy_s else 0.0


@checked_arguments()
def overlap_of_timeline(line: Timeline) -> Overlap:
    """The `Overlap` of a VirtualGPU's timeline."""
    return Overlap(line.busy_s("copy"), line.busy_s("kernel"), line.overlap_s("copy", "kernel"), line.makespan_s)


@checked_arguments()
def overlap_of_trace(trace: Mapping[str, Any] | str | Path) -> Overlap:
    """The `Overlap` of a Chrome trace: torch.profiler's, or a VirtualGPU's; a path to one, or its parsed JSON.

    Device copies between host and device count, those on the device do not; times are from the first event to the last.
    """
    tree = _tree(trace)
    spans = [span for event in tree["traceEvents"] if (span := _span(event)) is not None]
    if not spans:
        raise UsageError(
            "the trace shows no work on a device",
            why="none of its events is a kernel or a copy: it was recorded on a CPU, or without CUDA activities",
            next="profile with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]",
        )
    begin = min(span.start_s for span in spans)
    moved = tuple(Span(s.row, s.kind, s.name, s.start_s - begin, s.end_s - begin) for s in spans)
    return overlap_of_timeline(Timeline(moved))


@checked_arguments()
def virtual_overlap(
    *,
    batches: int = 16,
    load_s: float = 2e-3,
    batch_bytes: int = 20_000_000,
    step_s: float = 3e-3,
    prefetch: int = 1,
    pin_memory: bool = True,
    streams: int = 2,
    chip: str = "A100",
) -> VirtualGPU:
    """A VirtualGPU that has run a training loop: the host loads, the device copies and computes.

    `prefetch` batches are copied ahead of the step that uses them (0: load, copy, compute, wait), each into a buffer of
    its own; copies run in a stream of their own where `streams` is 2, and in the host's time where memory is pageable.
    """
    if batches < 1 or prefetch < 0 or streams not in (1, 2):
        raise UsageError(
            f"batches={batches}, prefetch={prefetch}, streams={streams}",
            why="a loop has at least one batch, a prefetch of 0 or more, and one stream or two",
            next="virtual_overlap(prefetch=2, streams=2)",
        )
    gpu = VirtualGPU(VirtualMachine.of(chip).warm())
    side = gpu.Stream() if streams == 2 else gpu.default_stream()
    slots = prefetch + 1
    outside = [gpu.host_empty(batch_bytes, pin_memory=pin_memory, name=f"host {n}") for n in range(slots)]
    inside = [gpu.empty(batch_bytes, name=f"batch {n}") for n in range(slots)]
    arrived = [gpu.Event() for _ in range(slots)]
    used = [gpu.Event() for _ in range(slots)]
    for batch in range(batches + prefetch):
        if batch < batches:
            turn = batch % slots
            if batch >= slots:
                # Neither buffer may be filled again before it has been used.
                arrived[turn].synchronize()
                side.wait_event(used[turn])
            gpu.host_work(load_s, writes=outside[turn])
            gpu.copy(inside[turn], outside[turn], non_blocking=True, stream=side)
            arrived[turn].record(side)
        ready = batch - prefetch
        if ready >= 0:
            slot = ready % slots
            gpu.default_stream().wait_event(arrived[slot])
            gpu.launch("step", duration_s=step_s, reads=inside[slot], stream=gpu.default_stream())
            used[slot].record(gpu.default_stream())
            if not prefetch:
                gpu.synchronize()
    gpu.synchronize()
    return gpu


@checked_arguments()
def device_overlap(
    device: str = "cuda", *, batch_bytes: int = 64_000_000, batches: int = 12, pin_memory: bool = True, streams: int = 2
) -> Overlap:
    """The `Overlap` on a real accelerator, from a trace of copies beside matrix products of about the same time."""
    import torch

    if device.split(":")[0] != "cuda" or not torch.cuda.is_available():
        raise UsageError(
            f"there is no copy engine to overlap with on {device!r} here",
            why="torch sees no CUDA device, and on a CPU nothing is copied",
            next="virtual_overlap() shows the same loop on a modelled device",
        )
    from tempfile import TemporaryDirectory

    from torch.profiler import ProfilerActivity, profile

    loop = _device_loop(torch, device, batch_bytes, batches, pin_memory=pin_memory, streams=streams)
    loop()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        loop()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        return overlap_of_trace(path)


def _device_loop(torch: Any, device: str, batch_bytes: int, batches: int, *, pin_memory: bool, streams: int) -> Any:
    from edl_labs.clock import AcceleratorClock

    clock = AcceleratorClock(device)
    host = [torch.empty(batch_bytes, dtype=torch.uint8, pin_memory=pin_memory) for _ in range(2)]
    there = [torch.empty(batch_bytes, dtype=torch.uint8, device=device) for _ in range(2)]
    matrix = torch.randn(4096, 4096, device=device)
    work = torch.cuda.current_stream(device)
    side = torch.cuda.Stream(device) if streams == 2 else work
    arrived, used = ([torch.cuda.Event() for _ in range(2)] for _ in range(2))

    def loop() -> None:
        for batch in range(batches):
            slot = batch % 2
            side.wait_event(used[slot])
            with torch.cuda.stream(side):
                there[slot].copy_(host[slot], non_blocking=True)
                arrived[slot].record(side)
            work.wait_event(arrived[slot])
            for _ in range(2):
                matrix @ matrix
            used[slot].record(work)
        clock.synchronize()

    return loop


def _tree(trace: Mapping[str, Any] | str | Path) -> Mapping[str, Any]:
    try:
        tree = json.loads(Path(trace).read_text(encoding="utf-8")) if isinstance(trace, (str, Path)) else trace
        if isinstance(tree["traceEvents"], list):
            return tree
        problem = "traceEvents is not a list"
    except (OSError, ValueError, KeyError, TypeError) as error:
        problem = f"{type(error).__name__}: {error}"
    raise UsageError("this is not a Chrome trace", why=problem, next="profiler.export_chrome_trace(path) writes one")


def _span(event: Any) -> Span | None:
    if not isinstance(event, Mapping) or event.get("ph") != "X":
        return None
    category, name = str(event.get("cat", "")).lower(), str(event.get("name", ""))
    kind = "kernel" if category in _KERNELS else "copy" if category in _COPIES else None
    if kind == "copy" and ("DtoD" in name or "Device -> Device" in name):
        return None
    start, took = event.get("ts"), event.get("dur")
    if kind is None or not isinstance(start, (int, float)) or not isinstance(took, (int, float)) or took < 0:
        return None
    return Span(category, kind, name, start * 1e-6, (start + took) * 1e-6)
