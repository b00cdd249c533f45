"""`calibrate`: the few figures of a GPU that decide a step, measured in minutes, as a card that `predict` takes."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

from edl_labs.arguments import checked_arguments
from edl_labs.clock import EventClock
from edl_labs.errors import EdlError
from edl_labs.predict.machine_card import MachineCard

_PRODUCT = 8192  # rows and columns: tens of tiles for each SM of any card of the table
_STREAM_BYTES = 256 * 2**20  # beyond every L2 of the table; NeuSight's kernel data are of this size
_SMALL = 2000  # launches in a row: enough that the queue is full and the slower of host and GPU shows
_ROUNDS = 7  # repetitions of each figure, of which the median counts


class Bench(Protocol):
    """What calibration measures on a GPU: a matrix product, a stream, a small kernel, and issuing a kernel."""

    name: str

    def product_s(self, dtype: str, size: int) -> float:
        """Seconds of a product of `size` squares in `dtype`; EdlError where the card has none."""

    def stream_s(self, nbytes: int) -> float:
        """Seconds of copying `nbytes` within the GPU's memory."""

    def small_s(self, count: int) -> tuple[float, float]:
        """(seconds of a small kernel on the GPU, seconds of the host for one operation)."""


@checked_arguments()
def calibrate(bench: Bench | None = None, *, progress: Callable[[int, int, str], None] | None = None) -> MachineCard:
    """A card of this machine's GPU with measured figures; EdlError where there is none.

    Products by dtype, the stream, and the cost of a launch on both sides; all else stays the datasheet's.
    """
    found = bench or _cuda_bench()
    card = MachineCard.of(found.name)
    dtypes = [dtype for dtype in ("fp16", "bf16", "tf32", "fp32") if dtype in {one for _, one, _ in card.peaks}]
    tell = progress or (lambda done, total, text: None)
    rates = []
    for number, dtype in enumerate(dtypes):
        tell(number, len(dtypes) + 2, f"products in {dtype}")
        seconds = statistics.median(found.product_s(dtype, _PRODUCT) for _ in range(_ROUNDS))
        rates.append((dtype, 2.0 * _PRODUCT**3 / _sane(seconds, f"a product in {dtype}")))
    tell(len(dtypes), len(dtypes) + 2, "stream")
    stream = statistics.median(found.stream_s(_STREAM_BYTES) for _ in range(_ROUNDS))
    tell(len(dtypes) + 1, len(dtypes) + 2, "launches")
    small = [found.small_s(_SMALL) for _ in range(_ROUNDS)]
    return replace(
        card,
        product_flop_per_s=tuple(rates),
        stream_measured_byte_per_s=2.0 * _STREAM_BYTES / _sane(stream, "a stream"),
        kernel_floor_s=statistics.median(gpu for gpu, _ in small),
        host_op_s=statistics.median(host for _, host in small),
    )


def _sane(seconds: float, what: str) -> float:
    if not 1e-7 < seconds < 60:
        raise EdlError(
            f"{what} took {seconds:.3g} s, which is impossible",
            why="either the clock did not wait for the GPU, or another program was using the GPU",
            next="stop other programs that use the GPU, and calibrate again",
        )
    return seconds


def _cuda_bench() -> Bench:
    import torch

    if not torch.cuda.is_available():
        raise EdlError(
            "there is no CUDA GPU here to calibrate",
            why="the figures of a card are measured on the GPU itself",
            next="run `edl-labs calibrate --out card.json` on the machine with the GPU, and pass this file to "
            "predict_step",
        )
    return CudaBench(torch)


class CudaBench:
    """A real GPU behind `Bench`, timed with its own events by `edl_labs.clock`."""

    def __init__(self, torch: Any) -> None:
        self._torch, self._clock = torch, EventClock.of("cuda")
        self.name = torch.cuda.get_device_name(0)

    def product_s(self, dtype: str, size: int) -> float:
        """Seconds of a product, TF32 switched as `dtype` says."""
        torch = self._torch
        kind = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(dtype, torch.float32)
        a, b = (torch.randn(size, size, device="cuda", dtype=kind) for _ in range(2))
        before = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
        try:
            return self._seconds(lambda: a @ b, 4)
        finally:
            torch.backends.cuda.matmul.allow_tf32 = before

    def stream_s(self, nbytes: int) -> float:
        """Seconds of a copy within memory, which reads and writes `nbytes`."""
        torch = self._torch
        source, target = (torch.empty(nbytes // 4, device="cuda") for _ in range(2))
        return self._seconds(lambda: target.copy_(source), 8)

    def small_s(self, count: int) -> tuple[float, float]:
        """A kernel on one element: on the GPU alone, and issued `count` times by the host."""
        x = self._torch.zeros(1, device="cuda")
        host = self._seconds(lambda: x.add_(1), count)
        graph = self._torch.cuda.CUDAGraph()
        with self._torch.cuda.graph(graph):
            for _ in range(100):
                x.add_(1)
        return self._seconds(graph.replay, 10) / 100, host

    def _seconds(self, run: Callable[[], Any], times: int) -> float:
        run()
        start_s = self._clock.now_s()
        for _ in range(times):
            run()
        return (self._clock.now_s() - start_s) / times
