"""Memory that the system holds for a kernel stays below the kernel's limit, whatever object it lies in."""

from __future__ import annotations

import pytest

from edl_labs.course.sandbox import Level, Limits, level_problem
from edl_labs.course.sandbox.hoards import HOARDS, kept_mib
from edl_labs.course.sandbox.kernel import KernelDied, KernelPool
from edl_labs.course.sandbox.limits import MIB
from tests.unit.course.sandbox.kernel.conftest import TIGHT

ENDED = {
    "unix sockets": "sockets",
    "sockets in messages": "sockets",
    "connections never accepted": "sockets",
    "TCP buffers": "sockets",
    "page tables": "memory",
    "locked ranges": "locks",
}
LINUX_BUFFER_BYTES = 212_992  # net.core.wmem_default


def seen(pool: KernelPool, code: str) -> str:
    """What the attempt says, or why its kernel was ended."""
    with pool.kernel() as kernel:
        try:
            text = "try:\n    exec(payload.decode(), globals())\nexcept OSError as error:\n    seen = str(error)\n"
            return kernel.ask(text + "answer(seen.encode())", code.encode(), timeout_s=60).decode()
        except KernelDied as died:
            return died.reason


@pytest.mark.parametrize("name", HOARDS)
def test_no_object_of_the_system_keeps_more_than_the_limit(pool, name):
    said = seen(pool, HOARDS[name])

    assert kept_mib(said) * MIB < TIGHT.memory_bytes
    assert ENDED.get(name, said) == said


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in HOARDS if name != "TCP buffers"])
def test_nor_where_no_network_namespace_counts_them(name):
    if problem := level_problem(Level.LANDLOCK):
        pytest.skip(f"no sandbox of level landlock here: {problem}")
    with KernelPool(level=Level.LANDLOCK, limits=TIGHT, preload=("edl_labs",)) as pool:
        said = seen(pool, HOARDS[name])

    assert kept_mib(said) * MIB < TIGHT.memory_bytes


def test_the_usual_number_of_sockets_holds_less_than_the_usual_memory():
    usual = Limits()

    assert usual.sockets * LINUX_BUFFER_BYTES < usual.memory_bytes // 4


def test_a_loader_with_workers_and_a_process_group_keep_working(torch_pool):
    code = """
import torch, torch.distributed as dist, torch.multiprocessing as mp
data = torch.utils.data.TensorDataset(torch.arange(64).float())
loader = torch.utils.data.DataLoader(data, batch_size=8, num_workers=4)
found = [float(one) for batch in loader for one in batch[0]]
import os, socket
with socket.create_server(('127.0.0.1', 0)) as free: port = free.getsockname()[1]
sums = []
def rank(number):
    dist.init_process_group('gloo', init_method=f'tcp://127.0.0.1:{port}', rank=number, world_size=3)
    total = torch.ones(100_000) * (number + 1)
    dist.all_reduce(total)
    return float(total.mean())
children = [number for number in (1, 2) if os.fork() == 0 and (rank(number), os._exit(0))]
answer(repr((len(found), rank(0))).encode())
"""
    with torch_pool.kernel() as kernel:
        assert b"(64, 6.0)" == kernel.ask(code, b"", timeout_s=120)
