"""Sandboxed kernels for students' code, and a client that stays alive and bounded whatever they send.

with KernelPool(preload=("numpy", "torch")) as pool, pool.kernel() as kernel:
    result = kernel.run("x = 6 * 7; x", timeout_s=10)
    evidence = kernel.ask("answer(payload + bytes([student['x']]))", b"case", timeout_s=10)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from edl_labs.course.sandbox.kernel.cell_outputs import CellResult
    from edl_labs.course.sandbox.kernel.client import Answer, KernelStats, SandboxKernel
    from edl_labs.course.sandbox.kernel.exchange import KernelDied, Violation
    from edl_labs.course.sandbox.kernel.pool import KernelPool

_HOMES = {
    "Answer": "client",
    "CellResult": "cell_outputs",
    "KernelDied": "exchange",
    "KernelPool": "pool",
    "KernelStats": "client",
    "SandboxKernel": "client",
    "Violation": "exchange",
}
__all__ = ["Answer", "CellResult", "KernelDied", "KernelPool", "KernelStats", "SandboxKernel", "Violation"]


def __getattr__(name: str) -> object:
    # Lazy: the zygote is a module below this one and must not carry the judge's client into students' kernels.
    if name not in _HOMES:
        raise AttributeError(f"edl_labs.course.sandbox.kernel has no {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(f"edl_labs.course.sandbox.kernel.{_HOMES[name]}"), name)
