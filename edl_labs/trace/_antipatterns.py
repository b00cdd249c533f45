"""Habits that cost time, found by what they do in a trace, with the line that does it and what to do instead."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median

from edl_labs.arguments import checked_arguments
from edl_labs.trace.analysed_trace import AnalysedTrace, TraceLike
from edl_labs.trace.causes import EMPTY_CACHE
from edl_labs.trace.device_work import DeviceOperation
from edl_labs.trace.trace_table import KINDS
from edl_labs.units import seconds
from edl_labs.values import Value

# A kernel shorter than this is over before the next launch arrives: typical costs of a launch in eager mode.
TINY_KERNEL_S = 5e-6
# Fewer kernels a step than this are not a habit.
_MANY = 8
# Of more events than this, the first tell which line is the commonest.
_ASKED = 2000
# Waiting for values while the device is idle is a habit from this part of a step on.
_IDLE_READS = 0.1
# A copy shorter than this does not hold the host for long enough to matter: about four launches.
_SHORT_COPY_S = 20e-6
# The clocks of host and device agree to about this in real traces, and exactly, but for rounding, in virtual ones.
_TOUCH_S, _ROUNDING_S = 1e-6, 1e-9
_OPTIMIZER = re.compile(r"optimi[sz]er|\bstep\b.*(adam|sgd)|adam|sgd", re.IGNORECASE)
_FUSED = re.compile(r"multi_tensor|fused|foreach", re.IGNORECASE)
# In the kernel's own name: cuBLAS scales vectors with `scal_kernel<…>(cublasTransposeParams<float>, …)`.
_LAYOUT = re.compile(r"^[^<]*(nchw.?to.?nhwc|nhwc.?to.?nchw|transpose|permute|contiguous|cvt_layout)", re.IGNORECASE)
_MATRIX = re.compile(r"gemm|matmul|\bmm\b|conv|cutlass|cublas|attention|flash|linear", re.IGNORECASE)
# Names of kernels that use tensor cores, Volta to Hopper: instruction shapes, and the makers' words for them.
_TENSOR_CORES = re.compile(
    r"884|1688|16816|16832|tensorop|tensor_op|wgmma|gmma|hmma|imma|nvjet|sm90_xmma|flash|xmma.*(f16|bf16|tf32)|_tf32_?",
    re.IGNORECASE,
)
_NO_TENSOR_CORES = re.compile(r"sgemm|dgemm|_simt_|f32f32_f32f32_f32(?!.*tf32)|fp32|ffma", re.IGNORECASE)


@dataclass(frozen=True, repr=False)
class Finding(Value):
    """A habit found: `per_step` times in a step, at a line, costing about `cost_s` a step; what, why, what next."""

    name: str
    what: str
    why: str
    next: str
    line: str
    per_step: float
    cost_s: float


@checked_arguments()
def antipatterns(trace: TraceLike, *, skip: int | None = None) -> tuple[Finding, ...]:
    """The habits found in the steady state of a trace, the most expensive first."""
    analysed = AnalysedTrace.of(trace)
    seen = _Seen(analysed, (1 if len(analysed.trace.steps) >= 3 else 0) if skip is None else skip)
    found = [finding for look in _LOOKS for finding in look(seen)]
    return tuple(sorted(found, key=lambda finding: -finding.cost_s))


class _Seen:
    """What the looks have in common: the steady part of a trace."""

    def __init__(self, analysed: AnalysedTrace, skip: int) -> None:
        self.trace, self._places = analysed.trace, analysed.places
        self._start_s = self.trace.steps[min(skip, len(self.trace.steps) - 1)][0]
        self.steps = max(len(self.trace.steps) - skip, 1)
        self._blocking = {copy.copy: (call, copy.is_read) for call, copy in analysed.blocking.items()}
        self._work_s = analysed.device.work_s
        self.operations = [o for o in analysed.device.operations if o.start_s >= self._start_s]

    def per_step(self, count: int) -> float:
        return count / self.steps

    def events(self, *kinds: str) -> list[int]:
        found = self.trace.select(*kinds)
        steady: list[int] = found[self.trace.start_s[found] >= self._start_s].tolist()
        return steady

    def name(self, event: int) -> str:
        return self.trace.names[self.trace.name[event]]

    def duration_s(self, events: list[int]) -> float:
        return float(sum(self.trace.end_s[i] - self.trace.start_s[i] for i in events)) / self.steps

    def line(self, events: list[int]) -> str:
        lines = Counter(self._places.where(event)[0] for event in events[:_ASKED])
        return lines.most_common(1)[0][0] if lines else ""

    def finding(
        self, name: str, what: str, why: str, next: str, events: list[int], *, cost_s: float | None = None
    ) -> Finding:
        """A habit of so many events, which cost what they take unless another cost is given."""
        cost_s = self.duration_s(events) if cost_s is None else cost_s
        return Finding(name, what, why, next, self.line(events), self.per_step(len(events)), cost_s)

    def inside(self, pattern: re.Pattern[str]) -> list[bool]:
        """For each event, whether an event around it has such a name."""
        named = [bool(pattern.search(name)) for name in self.trace.names]
        names, found = self.trace.name.tolist(), list[bool]()
        for above in self.trace.parent.tolist():
            found.append(above >= 0 and (found[above] or named[names[above]]))
        return found

    def waiting_read(self, copy: int) -> int:
        """The call that waits for a copy to the host, for longer than the copy itself takes; -1 where none does."""
        call, is_read = self._blocking.get(copy, (-1, False))
        waits = is_read and self._length_s(copy) < self._length_s(call) / 2
        return call if waits else -1

    def idle_s(self, calls: list[int]) -> float:
        """How long the device is idle during calls, in seconds per step."""
        start, end = self.trace.start_s, self.trace.end_s
        idle = (self._length_s(i) - self._work_s(float(start[i]), float(end[i])) for i in calls)
        return sum(idle) / self.steps

    def step_s(self) -> float:
        """The mean time of a step."""
        return (self.trace.steps[-1][1] - self._start_s) / self.steps

    def _length_s(self, event: int) -> float:
        return float(self.trace.end_s[event] - self.trace.start_s[event])

    def copy_waits(self) -> list[float]:
        """When the host's waits for copies end."""
        return sorted(float(self.trace.end_s[i]) for i in self.events("sync") if self.name(i) == "copy")


def _times(per_step: float) -> str:
    return "once per step" if round(per_step) == 1 else f"{per_step:.0f} times per step"


def _host_reads(seen: _Seen) -> Iterator[Finding]:
    copied = {operation.event: seen.waiting_read(operation.event) for operation in seen.operations}
    reads = [o.event for o in seen.operations if o.cause == "sync" or copied[o.event] >= 0]
    syncs = [i for i in seen.events("sync") if seen.name(i) not in ("copy",) and "cudaFree" not in seen.name(i)]
    calls = sorted({*syncs, *(call for call in copied.values() if call >= 0)})
    explicit = [i for i in syncs if seen.name(i) != "item"]
    where_from = reads or explicit
    # One read at the end of a step, for a log, is the least that a loop does, unless the device is idle meanwhile.
    if seen.per_step(len(where_from)) > 1.5 or (where_from and seen.idle_s(calls) > _IDLE_READS * seen.step_s()):
        yield seen.finding(
            "host reads",
            f"the host waits {_times(seen.per_step(len(where_from)))} for the device, or for values from it",
            "item(), tolist(), cpu(), printing or comparing values on the device empties the launch queue",
            "keep values on the device, and read them every few hundred steps",
            where_from,
            cost_s=seen.duration_s(calls),
        )


def _blocking_copies(seen: _Seen) -> Iterator[Finding]:
    waits = seen.copy_waits()
    copies = [o for o in seen.operations if o.cause == "copy" and seen.waiting_read(o.event) < 0]
    found = [operation for operation in copies if _held(seen, operation, waits)]
    if seen.per_step(len(found)) >= 0.5:
        events = [operation.event for operation in found]
        yield seen.finding(
            "blocking copies",
            f"a copy blocks the host until it ends, {_times(seen.per_step(len(found)))}",
            "the host memory is not pinned, or the call lacks non_blocking=True",
            "use pin_memory=True in the DataLoader and .to(device, non_blocking=True); copy the next batch in a side "
            "stream",
            events,
        )


def _held(seen: _Seen, operation: DeviceOperation, waits: list[float]) -> bool:
    name = seen.name(operation.event)
    if "Pageable" in name:
        return True
    if "DtoD" in name or "Device -> Device" in name or operation.end_s - operation.start_s < _SHORT_COPY_S:
        return False
    if operation.call >= 0 and seen.trace.end_s[operation.call] >= operation.end_s - _TOUCH_S:
        return True
    place = bisect_left(waits, operation.end_s)
    return any(abs(end_s - operation.end_s) < _ROUNDING_S for end_s in waits[max(place - 1, 0) : place + 1])


def _per_parameter_optimizer(seen: _Seen) -> Iterator[Finding]:
    inside = seen.inside(_OPTIMIZER)
    launches = [i for i in seen.events("launch") if inside[i]]
    kernels = {operation.call: operation for operation in seen.operations}
    mine = [kernels[i] for i in launches if i in kernels and not _FUSED.search(seen.name(kernels[i].event))]
    short = [operation for operation in mine if operation.end_s - operation.start_s < 4 * TINY_KERNEL_S]
    if seen.per_step(len(short)) >= 2 * _MANY:
        calls = [operation.call for operation in short]
        yield seen.finding(
            "optimiser per parameter",
            f"the optimiser launches {seen.per_step(len(short)):.0f} short kernels per step",
            "it launches a kernel for each tensor and operation; for small tensors, launching takes longer than the "
            "update",
            "pass foreach=True or fused=True to the optimiser",
            calls,
        )


def _layout_conversions(seen: _Seen) -> Iterator[Finding]:
    found = [operation.event for operation in seen.operations if _LAYOUT.search(seen.name(operation.event))]
    if seen.per_step(len(found)) >= 2:
        yield seen.finding(
            "layout conversions",
            f"{seen.per_step(len(found)):.0f} kernels per step only reorder data",
            "neighbouring operators use different memory formats",
            "convert the model and its inputs with .to(memory_format=torch.channels_last); remove needless "
            ".contiguous() calls",
            found,
        )


def _tiny_kernels(seen: _Seen) -> Iterator[Finding]:
    kernels = [operation for operation in seen.operations if operation.cause == "compute"]
    launches = seen.events("launch")
    if len(kernels) < _MANY * seen.steps or not launches:
        return
    typical_s = median(operation.end_s - operation.start_s for operation in kernels)
    launch_s = median(float(seen.trace.end_s[i] - seen.trace.start_s[i]) for i in launches)
    if typical_s < max(launch_s, TINY_KERNEL_S / 2):
        yield seen.finding(
            "tiny kernels",
            f"half of the {seen.per_step(len(kernels)):.0f} kernels per step are shorter than a launch, which takes "
            f"{seconds(launch_s)}",
            "the device finishes each kernel before the next one arrives",
            "use torch.compile, CUDA graphs or a larger batch",
            [operation.event for operation in kernels],
            cost_s=max(launch_s - typical_s, 0.0) * seen.per_step(len(kernels)),
        )


def _allocator_churn(seen: _Seen) -> Iterator[Finding]:
    inside = seen.inside(EMPTY_CACHE)
    found = [i for i in seen.events("alloc") if not inside[i]]
    if seen.per_step(len(found)) >= 1:
        yield seen.finding(
            "allocator churn",
            f"memory is requested from the driver, or returned to it, {_times(seen.per_step(len(found)))}",
            "sizes change from step to step, or memory is nearly full, so the caching allocator cannot reuse its "
            "blocks",
            "pad inputs to a few sizes, allocate buffers once, or set expandable_segments:True",
            found,
        )


def _empty_cache(seen: _Seen) -> Iterator[Finding]:
    marked = [i for i in seen.events("annotation", "python", "operator") if EMPTY_CACHE.search(seen.name(i))]
    if seen.per_step(len(marked)) >= 0.2:
        yield seen.finding(
            "needless empty_cache",
            f"the memory cache is emptied {_times(seen.per_step(len(marked)))}",
            "this synchronises and returns all free blocks to the driver, and the next step requests them again",
            "remove torch.cuda.empty_cache() from the loop",
            marked,
        )


def _no_tensor_cores(seen: _Seen) -> Iterator[Finding]:
    found = [operation.event for operation in seen.operations if _without_tensor_cores(seen, operation)]
    kernels_s = sum(
        operation.end_s - operation.start_s for operation in seen.operations if operation.cause == "compute"
    )
    share = seen.duration_s(found) * seen.steps / kernels_s if kernels_s else 0.0
    if share > 0.1:
        yield seen.finding(
            "no tensor cores",
            f"matrix products that do not use tensor cores take {share:.0%} of the kernels' time",
            "they run in full fp32, or their sizes are not multiples of 8",
            'use torch.autocast("cuda", torch.bfloat16) or matmul.fp32_precision = "tf32"; pad sizes to multiples of 8',
            found,
        )


def _without_tensor_cores(seen: _Seen, operation: DeviceOperation) -> bool:
    if operation.cause != "compute":
        return False
    name = seen.name(operation.event)
    work = seen.trace.meta.get("kernels", {}).get(name)
    if work:
        # A VirtualGPU says what a kernel does: many FLOPs a byte in fp32 or fp64 are a matrix product without them.
        dense = work["flops"] > 16 * max(work["moved_bytes"], 1)
        return bool(dense and work["dtype"] in ("fp32", "fp64") and KINDS[seen.trace.kind[operation.event]] == "kernel")
    return bool(_MATRIX.search(name) and _NO_TENSOR_CORES.search(name) and not _TENSOR_CORES.search(name))


_LOOKS: tuple[Callable[[_Seen], Iterator[Finding]], ...] = (
    _host_reads,
    _blocking_copies,
    _per_parameter_optimizer,
    _layout_conversions,
    _tiny_kernels,
    _allocator_churn,
    _empty_cache,
    _no_tensor_cores,
)
