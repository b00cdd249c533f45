"""What is timed to find ceilings, and the highest rates of several such kernels, timed in turn.

Calls read, copy, or add two streams at one size, or multiply matrices. On the host, what a cache holds must be gone
over many times within one call, or the call itself would be measured: compiled loops do it, one thread for each core.
Where there are none, numpy walks an array whose rows share one piece of memory, which costs a call a row: enough for
the last cache, not for those before it. torch's kernels are candidates wherever a call is long enough. The fastest
candidate is the ceiling, whatever its origin. A disturbance hits one round of all kernels, not all rounds of one.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from edl_labs.clock import Clock
from edl_labs.errors import EdlError
from edl_labs.roofline.machine_ceilings import Ceiling
from edl_labs.roofline.microbenchmarks.compiled_streams import CompiledStreams

STREAMS = {"read": 1, "copy": 2, "triad": 3}
PASS_BYTES = 24_000_000  # about a millisecond of DRAM traffic, so that handing out work to threads is lost in it
LEAST_TORCH_BYTES = 256 << 10  # below it the call of torch itself is a good part of the time
_LEAST_TORCH_BESIDE_COMPILED_BYTES = 8 << 20  # above what most cores hold: only there does torch ever win
_ITEM = 4  # bytes of fp32
BLOCK_S = 3e-3  # a block's start and end cost microseconds: below a thousandth
BLOCKS = 3  # a disturbance seldom hits three in a row
# Six values hold the median that they come from with 97 %; sixty rounds are beyond any budget.
LEAST_ROUNDS, MOST_ROUNDS = 6, 60
_SPANNED = LEAST_ROUNDS
_LEAST_SETTLED_ROUNDS = 9  # half as many again: six that agree by chance are told
PRECISION = 0.005  # half of the 1 % within which a GPU's ceilings are to repeat
# Where ten rounds brought nothing higher, more of them do not, and a busy machine's 2 % is as good as it gets.
_STALE_ROUNDS, _STALE_PRECISION = 10, 0.02


@dataclass(frozen=True)
class TimedKernel:
    """A call that does `amount` (bytes or FLOPs), and a name that says how."""

    name: str
    amount: float
    run: Callable[[], Any]


def memory_kernels(
    pattern: str, working_set_bytes: int, *, device: str, workers: Workers | None, named: str = ""
) -> list[TimedKernel]:
    """Candidates that go over `working_set_bytes`, all streams together, in one access pattern.

    With the name of one of them, memory is taken for its kind alone.
    """
    if workers is None:
        return _torch_kernels(pattern, working_set_bytes, device=device)
    kernels: list[TimedKernel] = []
    compiled = workers.streams is not None
    if not named.startswith("torch"):
        kernels += (_compiled_kernels if compiled else _numpy_kernels)(pattern, working_set_bytes, workers)
    least_bytes = _LEAST_TORCH_BESIDE_COMPILED_BYTES if compiled else LEAST_TORCH_BYTES
    if working_set_bytes >= least_bytes and (named.startswith("torch") or not named):
        kernels += _torch_kernels(pattern, working_set_bytes, device=device)
    return kernels


class Workers:
    """One thread for each usable core, to go over memory of its own at the same time as all; `streams` are compiled."""

    def __init__(self, count: int, *, streams: CompiledStreams | None = None) -> None:
        self.count = count
        self.streams = streams
        self._pool = ThreadPoolExecutor(count)

    def run(self, jobs: list[Callable[[], Any]]) -> None:
        """Run the jobs side by side and return when all are done."""
        for done in [self._pool.submit(job) for job in jobs]:
            done.result()

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()


def _compiled_kernels(pattern: str, working_set_bytes: int, workers: Workers) -> list[TimedKernel]:
    streams, number = workers.streams, STREAMS[pattern]
    if streams is None:
        return []
    made = [streams.job(pattern, number, working_set_bytes // number // workers.count) for _ in range(workers.count)]
    jobs = [job for job, _ in made]
    name = {"read": "sum", "copy": "negation", "triad": "a + 2·b"}[pattern]
    amount = sum(moved for _, moved in made)
    return [TimedKernel(f"compiled {name}, {workers.count} threads", amount, lambda: workers.run(jobs))]


def _numpy_kernels(pattern: str, working_set_bytes: int, workers: Workers) -> list[TimedKernel]:
    import numpy as np

    values = max(256, working_set_bytes // STREAMS[pattern] // _ITEM // workers.count)
    rows = max(1, PASS_BYTES // (values * _ITEM * workers.count))

    def stream() -> Any:
        # Ones, written: pages that were only read may all be the same page of zeros.
        once = np.ones(values, dtype=np.float32)
        return np.lib.stride_tricks.as_strided(once, (rows, values), (0, _ITEM))

    def job() -> Callable[[], Any]:
        if pattern == "read":
            source = stream()
            return lambda: np.maximum.reduce(source, axis=None)
        if pattern == "copy":
            source, target = stream(), stream()
            return lambda: np.negative(source, out=target)
        left, right, target = stream(), stream(), stream()
        return lambda: np.add(left, right, out=target)

    jobs = [job() for _ in range(workers.count)]
    amount = workers.count * rows * values * _ITEM * STREAMS[pattern]
    name = {"read": "maximum", "copy": "negation", "triad": "sum of two"}[pattern]
    return [TimedKernel(f"numpy {name}, {workers.count} threads", amount, lambda: workers.run(jobs))]


def _torch_kernels(pattern: str, working_set_bytes: int, *, device: str) -> list[TimedKernel]:
    import torch

    values = max(256, working_set_bytes // STREAMS[pattern] // _ITEM)
    amount = values * _ITEM * STREAMS[pattern]
    first = torch.ones(values, device=device)
    if pattern == "read":
        return [
            TimedKernel("torch sum", amount, lambda: torch.sum(first)),
            TimedKernel("torch amax", amount, lambda: torch.amax(first)),
        ]
    target = torch.ones(values, device=device)
    if pattern == "copy":
        return [TimedKernel("torch copy_", amount, lambda: target.copy_(first))]
    second = torch.ones(values, device=device)
    return [TimedKernel("torch add, a + s·b", amount, lambda: torch.add(first, second, alpha=2.0, out=target))]


def product_kernel(dtype: str, shape: tuple[int, int, int], *, device: str) -> TimedKernel:
    """C = A·B of random values (m, n, k) in one dtype; raises RuntimeError where torch has no kernel for it here.

    Random, because zeros and constants draw less power: a GPU then keeps a clock that real data never sees.
    """
    m, n, k = shape
    left, right = _operand(dtype, (m, k), device=device), _operand(dtype, (n, k), device=device)
    name = f"{m} × {n} × {k}"
    return TimedKernel(name, 2.0 * m * n * k, _product(dtype, left, right, device=device))


def _operand(dtype: str, shape: tuple[int, int], *, device: str) -> Any:
    import torch

    if dtype == "int8":
        return torch.randint(-127, 128, shape, dtype=torch.int8, device=device)
    values = torch.randn(shape, device=device)
    kinds = {"fp64": torch.float64, "fp32": torch.float32, "tf32": torch.float32, "fp16": torch.float16}
    kinds |= {"bf16": torch.bfloat16, "fp8": torch.float8_e4m3fn}
    return values.to(kinds[dtype])


def _product(dtype: str, left: Any, right: Any, *, device: str) -> Callable[[], Any]:
    import torch

    across = right.t()
    if dtype == "int8":
        return lambda: torch._int_mm(left, across)
    if dtype == "fp8":
        one = torch.ones((), device=device)
        options: dict[str, Any] = {"scale_a": one, "scale_b": one, "out_dtype": torch.bfloat16, "use_fast_accum": True}
        return lambda: torch._scaled_mm(left, across, **options)
    out = torch.empty((left.shape[0], right.shape[0]), dtype=left.dtype, device=device)
    straight = across.contiguous()
    if dtype == "tf32":

        def in_tf32() -> None:
            with tf32(allowed=True):
                torch.mm(left, straight, out=out)

        return in_tf32
    if dtype == "fp32" and device != "cpu":

        def in_fp32() -> None:
            with tf32(allowed=False):
                torch.mm(left, straight, out=out)

        return in_fp32
    return lambda: torch.mm(left, straight, out=out)


@contextmanager
def tf32(*, allowed: bool) -> Iterator[None]:
    """Products of fp32 matrices run in TF32, or do not, whatever the user's setting; afterwards that is back."""
    import torch

    matmul = torch.backends.cuda.matmul
    before = matmul.allow_tf32
    matmul.allow_tf32 = allowed
    try:
        yield
    finally:
        matmul.allow_tf32 = before


def link_kernels(device: str, *, nbytes: int = 128 << 20) -> dict[str, TimedKernel]:
    """Copies between host and device, pinned and pageable, each way."""
    import torch

    there = torch.empty(nbytes, dtype=torch.uint8, device=device)
    kernels = {}
    for kind in ("pinned", "pageable"):
        here = torch.ones(nbytes, dtype=torch.uint8, pin_memory=kind == "pinned")

        def to_device(here: Any = here) -> None:
            there.copy_(here, non_blocking=True)

        def to_host(here: Any = here) -> None:
            here.copy_(there, non_blocking=True)

        kernels[f"host to device, {kind}"] = TimedKernel("128 MiB", nbytes, to_device)
        kernels[f"device to host, {kind}"] = TimedKernel("128 MiB", nbytes, to_host)
    return kernels


def best_of(kernels: Sequence[TimedKernel], clock: Clock, *, blocks: int = BLOCKS) -> tuple[TimedKernel, float]:
    """The candidate with the highest rate, and that rate, from a few short blocks of each."""
    if not kernels:
        raise EdlError("there is no kernel to time", why="torch refused every candidate", next="omit this dtype")
    return max(
        ((kernel, block_rate(kernel, clock, blocks=blocks)) for kernel in kernels), key=lambda candidate: candidate[1]
    )


def block_rate(kernel: TimedKernel, clock: Clock, *, calls: int | None = None, blocks: int = BLOCKS) -> float:
    """Amount per second in the fastest of a few blocks, each so long that its start does not matter."""
    count = calls_for(kernel, clock) if calls is None else calls
    return kernel.amount * count / min(_block_s(kernel, clock, count) for _ in range(blocks))


def calls_for(kernel: TimedKernel, clock: Clock) -> int:
    """How many calls make a block: one that was warm tells."""
    _block_s(kernel, clock, 1)
    once = max(_block_s(kernel, clock, 1), clock.resolution_s, 1e-9)
    return max(1, round(max(BLOCK_S, 100 * clock.resolution_s) / once))


def measure_all(
    kernels: Mapping[str, TimedKernel],
    clock: Clock,
    *,
    until_s: float,
    progress: Callable[[int, int, str], None] | None = None,
) -> dict[str, Ceiling]:
    """A ceiling for each kernel, from rounds until the clock shows `until_s` (at least 6) or all are settled.

    A kernel is settled, and not repeated, once it is known to 0.5 %, or to 2 % and no higher in ten rounds.
    Disturbances only ever slow a kernel down, so the best quarter of the rounds counts (at least three): its median is
    the ceiling, its interval the doubt. Rounds that are owed when the time is over are short ones.
    """
    calls = {name: calls_for(kernel, clock) for name, kernel in kernels.items()}
    rates: dict[str, list[float]] = {name: [] for name in kernels}
    for done in range(MOST_ROUNDS):
        unsettled = [name for name, found in rates.items() if not _settled(found)]
        for name in unsettled:
            blocks = BLOCKS if clock.now_s() < until_s else 1
            rates[name].append(block_rate(kernels[name], clock, calls=calls[name], blocks=blocks))
        if progress:
            progress(done + 1, MOST_ROUNDS, "ceilings")
        if not unsettled or (done + 1 >= LEAST_ROUNDS and clock.now_s() > until_s):
            break
    return {name: ceiling(found, note=kernels[name].name) for name, found in rates.items()}


def _settled(rates: Sequence[float]) -> bool:
    if len(rates) < _LEAST_SETTLED_ROUNDS:
        return False
    doubt = ceiling(rates).half_width
    if doubt < PRECISION:
        return True
    before = rates[:-_STALE_ROUNDS]
    return doubt < _STALE_PRECISION and bool(before) and max(before) >= max(rates[-_STALE_ROUNDS:])


def ceiling(rates: Sequence[float], *, note: str = "") -> Ceiling:
    """The median of the best quarter of `rates`; its interval spans the best third, six rounds at least.

    The span of six values holds the median that they come from with 97 % (two times 2⁻⁶ are left).
    """
    ordered = sorted(rates)
    middle = statistics.median(ordered[-max(3, len(ordered) // 4) :])
    low = ordered[-max(_SPANNED, len(ordered) // 3) :][0]
    return Ceiling(middle, low, ordered[-1], note)


def _block_s(kernel: TimedKernel, clock: Clock, calls: int) -> float:
    clock.synchronize()
    start = clock.now_s()
    for _ in range(calls):
        kernel.run()
    clock.synchronize()
    return max(clock.now_s() - start, clock.resolution_s)
