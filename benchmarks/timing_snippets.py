"""Functions to be timed, some with one mistake each and some without mistakes, on which the detector is tested.

Each maker returns a dict with `fn` and the other arguments of `measure`. No accelerator is needed: code for a device
runs on a VirtualGPU.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import clean_functions
import everyday_resources
import everyday_values
import numpy as np
import subtle_mistakes
import torch
from snippet_register import CLEAN, MISTAKES, clean, mistaken

from edl_labs.bench.timing.processor_state import State
from edl_labs.clock import HostClock
from edl_labs.virtual import VirtualGPU

__all__ = ["CLEAN", "MISTAKES", "clean_functions", "everyday_resources", "everyday_values", "subtle_mistakes"]


def gpu() -> VirtualGPU:
    device = VirtualGPU("A100-80GB")
    device.launch("warm", duration_s=1e-5)
    device.synchronize()
    return device


class UndrainedClock:
    """A clock of a device that forgets to wait for it."""

    name = "undrained"
    resolution_s, read_cost_s = 1e-9, 6e-8

    def __init__(self, device: VirtualGPU) -> None:
        self._device = device

    def now_s(self) -> float:
        return self._device.now_s()

    def synchronize(self) -> None:
        return None


class ScriptedWatch:
    def __init__(self, *states: State) -> None:
        self._states = deque(states)

    def read(self) -> State:
        self._states.rotate(-1)
        return self._states[-1]


def busy(turns: int = 400_000) -> int:
    total = 0
    for turn in range(turns):
        total += turn
    return total


# Mistakes


@mistaken("no_sync")
def clock_that_does_not_wait() -> dict[str, Any]:
    device = gpu()
    return {"fn": lambda: device.launch("k", duration_s=5e-5), "clock": UndrainedClock(device)}


@mistaken("no_sync")
def host_clock_beside_a_device() -> dict[str, Any]:
    device = gpu()
    return {"fn": lambda: device.launch("k", duration_s=5e-5), "clock": HostClock()}


@mistaken("sync_each_call")
def synchronize_in_the_call() -> dict[str, Any]:
    device = gpu()

    def fn() -> None:
        device.launch("k", duration_s=2e-5)
        device.synchronize()

    return {"fn": fn, "clock": device.clock}


@mistaken("sync_each_call")
def event_synchronize_in_the_call() -> dict[str, Any]:
    device = gpu()

    def fn() -> None:
        device.launch("k", duration_s=2e-5)
        event = device.Event()
        event.record()
        event.synchronize()

    return {"fn": fn, "clock": device.clock}


@mistaken("sync_each_call")
def guarded_torch_synchronize() -> dict[str, Any]:
    x = torch.randn(64, 64)

    def fn() -> torch.Tensor:
        y = x @ x
        if torch.cuda.is_available():
            torch.cuda.synchronize()  # noqa: TID251 the mistake itself
        return y

    return {"fn": fn}


@mistaken("item_inside")
def item_of_a_loss() -> dict[str, Any]:
    x = torch.randn(128, 128)
    return {"fn": lambda: (x @ x).sum().item()}


@mistaken("item_inside")
def float_of_a_tensor() -> dict[str, Any]:
    x = torch.randn(1000)
    return {"fn": lambda: float(x.mean())}


@mistaken("item_inside")
def branch_on_a_tensor() -> dict[str, Any]:
    x = torch.randn(1000)

    def fn() -> torch.Tensor:
        return x * 2 if (x.sum() > 0) else x * 3

    return {"fn": fn}


@mistaken("item_inside")
def to_the_cpu() -> dict[str, Any]:
    x = torch.randn(100, 100)
    return {"fn": lambda: torch.relu(x).cpu()}


@mistaken("item_inside")
def item_on_a_device() -> dict[str, Any]:
    device = gpu()
    out = device.empty(4)

    def fn() -> int:
        device.launch("sum", duration_s=2e-5, writes=out)
        return device.item(out)

    return {"fn": fn, "clock": device.clock}


@mistaken("item_inside")
def copy_back_on_a_device() -> dict[str, Any]:
    device = gpu()
    out, host = device.empty(1 << 16), device.host_empty(1 << 16)

    def fn() -> None:
        device.launch("k", duration_s=2e-5, writes=out)
        device.copy(host, out)

    return {"fn": fn, "clock": device.clock}


@mistaken("compile_inside")
def compile_in_the_call() -> dict[str, Any]:
    x = torch.randn(32, 32)

    def fn() -> torch.Tensor:
        return torch.compile(torch.sin, backend="eager")(x)

    return {"fn": fn}


@mistaken("compile_inside")
def new_shapes_each_call() -> dict[str, Any]:
    sizes = iter(range(3, 100_000))
    compiled = torch.compile(lambda x: x * 2 + len(x), backend="eager", dynamic=False)
    torch._dynamo.reset()

    def fn() -> Any:
        with torch._dynamo.config.patch(recompile_limit=10_000, accumulated_recompile_limit=10_000):
            return compiled(torch.ones(next(sizes)))

    return {"fn": fn, "budget_s": 1.0}


@mistaken("compile_inside")
def new_kernels_each_call() -> dict[str, Any]:
    device = gpu()
    numbers = iter(range(10_000_000))
    return {"fn": lambda: device.launch(f"k{next(numbers)}", duration_s=1e-5), "clock": device.clock}


@mistaken("graph_kept")
def losses_in_a_list() -> dict[str, Any]:
    model, x, losses = torch.nn.Linear(32, 32), torch.randn(8, 32), []
    return {"fn": lambda: losses.append(model(x).square().mean())}


@mistaken("graph_kept")
def running_loss_with_graph() -> dict[str, Any]:
    model, x = torch.nn.Linear(32, 32), torch.randn(8, 32)
    state = {"loss": torch.zeros(())}

    def fn() -> None:
        state["loss"] = state["loss"] + model(x).square().mean()

    return {"fn": fn}


@mistaken("gradients_accumulate")
def no_zero_grad() -> dict[str, Any]:
    model, x = torch.nn.Linear(32, 32), torch.randn(8, 32)
    return {"fn": lambda: model(x).square().mean().backward()}


@mistaken("gradients_accumulate")
def step_without_zero_grad() -> dict[str, Any]:
    model, x = torch.nn.Linear(32, 32), torch.randn(8, 32)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def fn() -> None:
        torch.autograd.backward(model(x).square().mean())
        optimizer.step()

    return {"fn": fn}


@mistaken("cache_resident")
def one_small_input() -> dict[str, Any]:
    x = np.random.default_rng(0).standard_normal(1 << 18)
    return {"fn": lambda a: a + 1.0, "inputs": (x,), "budget_s": 2.0}


@mistaken("cache_resident")
def small_working_set_on_a_device() -> dict[str, Any]:
    device = gpu()
    x, y = device.empty(8 << 20), device.empty(8 << 20)
    return {"fn": lambda: device.launch("relu", moved_bytes=16 << 20, reads=x, writes=y), "clock": device.clock}


@mistaken("constant_inputs")
def zeros() -> dict[str, Any]:
    return {"fn": lambda a, b: a @ b, "inputs": (torch.zeros(64, 64), torch.randn(64, 64))}


@mistaken("constant_inputs")
def ones_from_a_factory() -> dict[str, Any]:
    return {"fn": lambda a: torch.exp(a), "inputs": lambda: (torch.ones(64, 64),)}


@mistaken("constant_inputs")
def constant_array() -> dict[str, Any]:
    return {"fn": lambda a: np.sort(a), "inputs": (np.full(1000, 3.5),)}


@mistaken("result_unused")
def tensor_dropped() -> dict[str, Any]:
    x = torch.randn(64, 64)

    def fn() -> None:
        torch.mm(x, x)

    return {"fn": fn}


@mistaken("result_unused")
def array_dropped() -> dict[str, Any]:
    x = np.random.default_rng(0).standard_normal((64, 64))

    def fn() -> None:
        x @ x

    return {"fn": fn}


@mistaken("lazy_result")
def generator() -> dict[str, Any]:
    return {"fn": lambda: (i * i for i in range(1000))}


@mistaken("lazy_result")
def lazy_map() -> dict[str, Any]:
    return {"fn": lambda: map(str, range(1000))}


@mistaken("lazy_result")
def coroutine() -> dict[str, Any]:
    async def work() -> int:
        return sum(range(1000))

    return {"fn": lambda: work()}


@mistaken("lazy_result")
def function_not_called() -> dict[str, Any]:
    return {"fn": lambda: lambda: sum(range(1000))}


@mistaken("allocator_growing")
def outputs_in_a_list() -> dict[str, Any]:
    x, kept = torch.randn(100), []
    return {"fn": lambda: kept.append(x * 2)}


@mistaken("allocator_growing")
def cache_without_bound() -> dict[str, Any]:
    cache: dict[float, list[float]] = {}

    def fn() -> int:
        cache[len(cache) + 0.5] = [1.0]
        return len(cache)

    return {"fn": fn}


@mistaken("allocator_growing")
def arrays_kept() -> dict[str, Any]:
    kept = []

    def fn() -> int:
        kept.append(np.arange(100.0))
        return len(kept)

    return {"fn": fn}


@mistaken("allocator_growing")
def device_buffers_never_freed() -> dict[str, Any]:
    device = gpu()

    def fn() -> Any:
        buffer = device.empty(1024)
        device.launch("fill", duration_s=1e-5, writes=buffer)
        return buffer

    return {"fn": fn, "clock": device.clock}


@mistaken("other_stream")
def side_stream_not_joined() -> dict[str, Any]:
    device = gpu()
    side = device.Stream()
    return {"fn": lambda: device.launch("k", duration_s=2e-5, stream=side), "clock": device.clock}


@mistaken("other_stream")
def thread_not_joined() -> dict[str, Any]:
    def fn() -> None:
        threading.Thread(target=busy, daemon=True).start()

    return {"fn": fn, "budget_s": 0.2}


@mistaken("other_stream")
def pool_not_waited_for() -> dict[str, Any]:
    pool = ThreadPoolExecutor(1)
    earlier: list[Any] = []

    def fn() -> None:
        # On a busy machine the pool would fall behind, and its queue would grow: a second mistake.
        while earlier:
            earlier.pop().result()
        earlier.append(pool.submit(busy))
        busy(20_000)

    return {"fn": fn, "budget_s": 0.2}


@mistaken("clock_low")
def slow_clock() -> dict[str, Any]:
    return {"fn": lambda: sum(range(100)), "watch": ScriptedWatch(State(1.0e9, 1.98e9))}


@mistaken("oversubscribed")
def too_many_threads() -> dict[str, Any]:
    before = torch.get_num_threads()
    torch.set_num_threads(64)
    x = torch.randn(16, 16)
    return {"fn": lambda: x + 1, "restore": lambda: torch.set_num_threads(before)}


@mistaken("faster_than_light")
def impossible_rate() -> dict[str, Any]:
    work, machine = {"flops": 1e12, "moved_bytes": 1e6}, {"peak_flop_per_s": 1e12, "bandwidth_byte_per_s": 1e10}
    return {"fn": lambda: sum(range(100)), "work": work, "machine": machine}


# Clean functions


def _plain(fn: Any, **options: Any) -> Any:
    return clean(lambda: {"fn": fn, **options})


_plain(lambda: None)
_plain(lambda: sum(range(100)))
_plain(lambda: sorted(range(500), key=lambda i: -i))
_plain(lambda: [i * i for i in range(200)])
_plain(lambda: time.sleep(0))
_plain(lambda: "".join(map(str, range(100))))
_plain(lambda: {i: str(i) for i in range(100)})
_plain(np.sort, inputs=lambda: (np.random.default_rng().standard_normal(1000),))
_plain(lambda a, b: a @ b, inputs=lambda: (torch.randn(64, 64), torch.randn(64, 64)))
_plain(torch.mm, inputs=(torch.randn(256, 256), torch.randn(256, 256)))
_plain(torch.add, inputs=(torch.randn(64), torch.randn(64)))
_plain(sum, inputs=([1, 2, 3],))


@clean
def elementwise_on_much_data() -> dict[str, Any]:
    return {"fn": torch.relu, "inputs": lambda: (torch.randn(1 << 20),), "budget_s": 2.0}


@clean
def forward() -> dict[str, Any]:
    model, x = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU()), torch.randn(8, 64)
    return {"fn": lambda: model(x)}


@clean
def inference() -> dict[str, Any]:
    model, x = torch.nn.Linear(64, 64), torch.randn(8, 64)

    def fn() -> torch.Tensor:
        with torch.no_grad():
            return model(x)

    return {"fn": fn}


def _trained(optimizer_of: Any) -> dict[str, Any]:
    model, x = torch.nn.Linear(32, 32), torch.randn(8, 32)
    optimizer = optimizer_of(model.parameters())

    def fn() -> torch.Tensor:
        optimizer.zero_grad(set_to_none=True)
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return {"fn": fn}


clean(lambda: _trained(lambda p: torch.optim.SGD(p, lr=1e-3)))
clean(lambda: _trained(lambda p: torch.optim.AdamW(p, lr=1e-3)))


@clean
def accumulation_inside_one_call() -> dict[str, Any]:
    model, parts = torch.nn.Linear(32, 32), torch.randn(4, 8, 32)

    def fn() -> None:
        model.zero_grad()
        for part in parts:
            model(part).square().mean().backward()

    return {"fn": fn}


@clean
def in_place() -> dict[str, Any]:
    x, y = torch.randn(1000), torch.randn(1000)

    def fn() -> None:
        x.mul_(0.999).add_(y)

    return {"fn": fn}


@clean
def into_a_buffer() -> dict[str, Any]:
    x, out = torch.randn(256, 256), torch.empty(256, 256)
    return {"fn": lambda: torch.mm(x, x, out=out)}


@clean
def numpy_into_a_buffer() -> dict[str, Any]:
    x, out = np.random.default_rng(0).standard_normal(1000), np.empty(1000)

    def fn() -> None:
        np.multiply(x, 2.0, out=out)

    return {"fn": fn}


@clean
def compiled_before() -> dict[str, Any]:
    x = torch.randn(64, 64)
    compiled = torch.compile(lambda a: torch.relu(a) + 1, backend="eager")
    return {"fn": lambda: compiled(x)}


@clean
def bounded_history() -> dict[str, Any]:
    x = torch.randn(100)
    history: deque[torch.Tensor] = deque(maxlen=2)
    return {"fn": lambda: history.append(x + 1)}


@clean
def joined_thread() -> dict[str, Any]:
    def fn() -> None:
        thread = threading.Thread(target=sum, args=(range(1000),))
        thread.start()
        thread.join()

    return {"fn": fn}


@clean
def pool_waited_for() -> dict[str, Any]:
    pool = ThreadPoolExecutor(2)
    return {"fn": lambda: list(pool.map(abs, range(10)))}


@clean
def cyclic_garbage() -> dict[str, Any]:
    def fn() -> None:
        a: list[Any] = []
        a.append(a)

    return {"fn": fn}


@clean
def embedding_of_integers() -> dict[str, Any]:
    table, rows = torch.nn.Embedding(1000, 16), torch.arange(64)
    return {"fn": lambda i: table(i), "inputs": (rows,)}


@clean
def kernel_on_a_device() -> dict[str, Any]:
    device = gpu()
    return {"fn": lambda: device.launch("k", duration_s=2e-5), "clock": device.clock}


@clean
def kernel_on_a_device_found_by_itself() -> dict[str, Any]:
    device = gpu()
    return {"fn": lambda: device.launch("k", duration_s=2e-5)}


@clean
def much_data_on_a_device() -> dict[str, Any]:
    device = gpu()
    x, y = device.empty(256 << 20), device.empty(256 << 20)
    return {"fn": lambda: device.launch("relu", moved_bytes=512 << 20, reads=x, writes=y), "clock": device.clock}


@clean
def joined_side_stream() -> dict[str, Any]:
    device = gpu()
    side = device.Stream()

    def fn() -> None:
        side.wait_stream(device.current_stream())
        device.launch("k", duration_s=2e-5, stream=side)
        device.current_stream().wait_stream(side)

    return {"fn": fn, "clock": device.clock}


@clean
def compute_bound_on_a_device() -> dict[str, Any]:
    device = gpu()
    x = device.empty(1 << 20)
    return {"fn": lambda: device.launch("gemm", flops=1e9, moved_bytes=1 << 20, reads=x), "clock": device.clock}


@clean
def pinned_upload_on_a_device() -> dict[str, Any]:
    device = gpu()
    host, x = device.host_empty(1 << 20, pin_memory=True), device.empty(1 << 20)
    return {"fn": lambda: device.copy(x, host, non_blocking=True), "clock": device.clock}


@clean
def buffer_freed_on_a_device() -> dict[str, Any]:
    device = gpu()

    def fn() -> None:
        buffer = device.empty(1024)
        device.launch("fill", duration_s=1e-5, writes=buffer)
        device.free(buffer)

    return {"fn": fn, "clock": device.clock}


@clean
def possible_rate() -> dict[str, Any]:
    work, machine = {"flops": 1e3, "moved_bytes": 1e3}, {"peak_flop_per_s": 1e12, "bandwidth_byte_per_s": 1e11}
    return {"fn": lambda: sum(range(100)), "work": work, "machine": machine}
