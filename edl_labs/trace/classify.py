"""What an event of a trace file is, by its category and name: Kineto's, VirtualGPU's and nsys' words."""

from __future__ import annotations

import re

# The device's own rows and what is drawn on them for orientation alone.
_IGNORED = {"gpu_user_annotation", "cuda_sync", "overhead", "ac2g", "fwdbwd", "trace", "async_cpu_to_gpu", "issue"}
_VIRTUAL = {"call", "work", "wait", "kernel", "copy"}
_RUNTIME = {
    "cuda_runtime",
    "cuda_driver",
    "runtime",
    "cuda_api",
    "cuda-api",
    "hip_runtime",
    "hip_driver",
    "privateuse1_runtime",
}
_ANNOTATION = {"user_annotation", "nvtx", "annotation", "user_scope", "python_user_annotation"}
_STEP = re.compile(r"(ProfilerStep|step|iteration)\s*#?\s*\d+$", re.IGNORECASE)
_LAUNCH = re.compile(
    r"(cuda|cu|hip|hipExt|hipModule)(Launch|ModuleLaunch|GraphLaunch|ExtModuleLaunch)|LaunchKernel|GraphLaunch"
)
_COPY_CALL = re.compile(r"(cuda|cu|hip)(Memcpy|Memset)")
_SYNC = re.compile(r"(Device|Stream|Event|Ctx|Context)Synchronize")
_ALLOC = re.compile(
    r"(cuda|cu|hip)(Malloc|Free|Mem(Alloc|Free|Create|Map|Unmap|Release|AddressReserve)|HostAlloc|HostRegister)"
)
_COMMUNICATION = re.compile(
    r"nccl|rccl|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|broadcast_kernel", re.IGNORECASE
)
_COPY = re.compile(r"\[?(CUDA |HIP )?mem(cpy|set)", re.IGNORECASE)


def kind_of(category: str, name: str) -> str | None:
    """The kind of a complete event, one of KINDS; None for what says nothing about time.

    >>> kind_of("cuda_runtime", "cudaLaunchKernel"), kind_of("user_annotation", "ProfilerStep#4")
    ('launch', 'step')
    """
    category = category.lower()
    if category in _IGNORED or not category:
        return None
    if category in _RUNTIME:
        return _runtime(name)
    if category in _ANNOTATION:
        return "step" if _STEP.match(name) else "annotation"
    if category in _VIRTUAL and category not in ("kernel", "copy"):
        return _virtual(category, name)
    return _other(category, name)


def _other(category: str, name: str) -> str | None:
    if category in ("cpu_op", "operator"):
        # Some versions write steps as operators.
        return "step" if _STEP.match(name) else "operator"
    if category in ("python_function", "python"):
        return "python"
    if category in ("gpu_memcpy", "gpu_memset", "copy", "memcpy", "memset"):
        return "copy"
    if category in ("kernel", "gpu_op", "cuda", "gpu", "cuda_kernel"):
        return _device(name)
    return None


def _device(name: str) -> str:
    if _COPY.match(name):
        return "copy"
    return "communication" if _COMMUNICATION.search(name) else "kernel"


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
