"""Pools shared by the tests of a module: a zygote's imports take seconds, its kernels a tenth of one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from edl_labs.course.sandbox import Level, Limits, level_problem
from edl_labs.course.sandbox.kernel import KernelPool, SandboxKernel
from edl_labs.course.sandbox.limits import MIB

TIGHT = Limits(
    memory_bytes=512 * MIB,
    processes=64,
    home_bytes=32 * MIB,
    tmp_bytes=32 * MIB,
    inodes=2000,
    sockets=1024,
    cell_messages=5000,
    cell_bytes=32 * MIB,
    message_bytes=8 * MIB,
    kept_bytes=1 * MIB,
    grace_s=1.0,
)


def require_namespaces() -> None:
    """Skip, saying why, where bubblewrap's namespaces are not to be had."""
    if problem := level_problem(Level.NAMESPACES):
        pytest.skip(f"no sandbox of level namespaces here: {problem}")


@pytest.fixture(scope="module")
def pool() -> Iterator[KernelPool]:
    require_namespaces()
    with KernelPool(level=Level.NAMESPACES, limits=TIGHT, preload=("edl_labs", "numpy")) as pool:
        yield pool


@pytest.fixture(scope="module")
def torch_pool() -> Iterator[KernelPool]:
    require_namespaces()
    with KernelPool(level=Level.NAMESPACES) as pool:
        yield pool


@pytest.fixture
def kernel(pool: KernelPool) -> Iterator[SandboxKernel]:
    with pool.kernel() as kernel:
        yield kernel
