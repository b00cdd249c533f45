"""The kind of an event, from its category and name, in the words of each profiler and backend."""

from __future__ import annotations

import re

from edl_labs.trace.collectives import is_collective

# Drawn for orientation, or counters: time that other events have as well (Kineto's ActivityType names).
_IGNORED = {
    "gpu_user_annotation", "cuda_sync", "cuda_event", "overhead", "ac2g", "fwdbwd", "trace", "async_cpu_to_gpu",
    "issue", "cpu_instant_event", "external_correlation", "cuda_profiler_range", "gpu_pm_counter", "mtia_counters",
}  # fmt: skip
_VIRTUAL = {"call", "work", "wait", "kernel", "copy"}
# cuda_runtime, hip_driver, xpu_runtime, mtia_runtime, privateuse1_driver, cuda_api: a backend's calls.
_RUNTIME = re.compile(r"runtime|\w+_(runtime|driver)|cuda[-_]api")
_ANNOTATION = {"user_annotation", "nvtx", "annotation", "user_scope", "python_user_annotation"}
_KERNEL = re.compile(r"(\w+_)?kernel|gpu_op|hpu_op|cuda|gpu|mtia_ccp_events")
_COPIED = re.compile(r"copy|(\w+_)?mem(cpy|set)")
_STEP = re.compile(r"(ProfilerStep|step|iteration)\s*#?\s*\d+$", re.IGNORECASE)
# In the words of CUDA, HIP, Level Zero and Unified Runtime (XPU), SYCL's plugins, MTIA, ACL (Ascend) and MUSA.
_LAUNCH = re.compile(r"launch(?!HostFunc)|EnqueueKernel|InvokeKernel|^runFunction", re.IGNORECASE)
_COPY_CALL = re.compile(r"mem(cpy|set|copy|ory_?copy|oryfill)|USMFill|MemBuffer(Copy|Read|Write|Fill)", re.IGNORECASE)
_SYNC = re.compile(r"synchroni[sz]e|^(ur|pi)(QueueFinish|Events?Wait)$|(Stream|Queue)Sync$", re.IGNORECASE)
_ALLOC = re.compile(
    r"Malloc|Free(Async|Host|Array)?(_|$)|Mem(Alloc|Free|Create|Map|Unmap|Release|AddressReserve)"
    r"|HostAlloc|HostRegister|USM\w*Alloc"
)
_COPY = re.compile(r"\[?(CUDA |HIP )?mem(cpy|set)|Copy(Host|Device)To|dma_request$", re.IGNORECASE)
# A device that waits for another is idle.
_DEVICE_WAITS = re.compile(r"event_(wait|record)$")


def kind_of(category: str, name: str) -> str | None:
    """The kind of a complete event, one of KINDS; None for what says nothing about time.

    >>> kind_of("cuda_runtime", "cudaLaunchKernel"), kind_of("user_annotation", "ProfilerStep#4")
    ('launch', 'step')
    """
    category = category.lower()
    if category in _IGNORED or not category:
        return None
    if _RUNTIME.fullmatch(category):
        return _runtime(name)
    if category in _ANNOTATION:
        return "step" if _STEP.match(name) else "annotation"
    if category in _VIRTUAL and category not in ("kernel", "copy"):
        return _virtual(category, name)
    return _other(category, name)


def is_known(category: str) -> bool:
    """Whether a category is one that this module knows, if only to leave it out."""
    return category.lower() in _IGNORED or kind_of(category, "") is not None


def _other(category: str, name: str) -> str | None:
    if category in ("cpu_op", "operator"):
        # Some versions write steps as operators.
        return "step" if _STEP.match(name) else "operator"
    if category in ("python_function", "python"):
        return "python"
    if category == "collective_comm":
        return "communication"
    if _COPIED.fullmatch(category):
        return "copy"
    return _device(name) if _KERNEL.fullmatch(category) else None


def _device(name: str) -> str | None:
    if _DEVICE_WAITS.match(name):
        return None
    if _COPY.match(name):
        return "copy"
    return "communication" if is_collective(name) else "kernel"


def _runtime(name: str) -> str:
    if _LAUNCH.search(name):
        return "launch"
    if _COPY_CALL.search(name):
        return "copy call"
    if _SYNC.search(name):
        return "sync"
    return "alloc" if _ALLOC.search(name) else "runtime"


def _virtual(category: str, name: str) -> str:
    if category == "wait":
        return "queue full" if name == "queue full" else "sync"
    if category == "work":
        return "sync" if name.endswith("synchronize") else "work"
    return "copy call" if name == "item" or " to " in name else "launch"
