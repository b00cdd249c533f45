"""A CUDA device with the interface of VirtualGPU, so that programs written for the model run on a real GPU."""

from __future__ import annotations

from typing import Any

from edl_labs.clock import AcceleratorClock
from edl_labs.errors import UsageError


class RealGPU:
    """Runs, on this machine's CUDA device, programs that are written for a VirtualGPU.

    A kernel of a stated duration is one that counts clock cycles; how many make a second is measured at the start.
    Buffers are byte tensors, streams and events torch's own, and `clock` is the host's, which can wait for the device.
    """

    def __init__(self, device: str = "cuda") -> None:
        self.clock = AcceleratorClock(device)
        if not str(device).startswith("cuda"):
            raise UsageError(
                f"{device} is not a CUDA device",
                why="kernels of a stated duration count CUDA clock cycles",
                next="use a VirtualGPU, which models one",
            )
        import torch

        self._torch = torch
        self._device = torch.device(self.clock.device)
        self._cycles_per_s = 1e9
        self._cycles_per_s = self._measured_cycles_per_s()

    def empty(self, nbytes: int, *, name: str = "") -> Any:
        """Memory on the device."""
        return self._torch.empty(nbytes, dtype=self._torch.uint8, device=self._device)

    def host_empty(self, nbytes: int, *, pin_memory: bool = False, name: str = "") -> Any:
        """Memory of the host, pinned or pageable, with its pages touched: what is not there yet is slow to copy."""
        buffer = self._torch.empty(nbytes, dtype=self._torch.uint8, pin_memory=pin_memory)
        return buffer.fill_(1)

    def launch(
        self, name: str, *, duration_s: float, reads: Any = (), writes: Any = (), stream: Any = None, **_: Any
    ) -> None:
        """Issue a kernel that keeps the device busy for `duration_s`."""
        with self._torch.cuda.stream(stream):
            self._torch.cuda._sleep(round(duration_s * self._cycles_per_s))

    def copy(self, dst: Any, src: Any, *, non_blocking: bool = False, stream: Any = None) -> None:
        """Copy `src` to `dst`."""
        with self._torch.cuda.stream(stream):
            dst.copy_(src, non_blocking=non_blocking)

    def item(self, source: Any, *, stream: Any = None) -> int:
        """Read one number; the host waits."""
        with self._torch.cuda.stream(stream):
            return int(source[0].item())

    def host_work(self, duration_s: float, *, reads: Any = (), writes: Any = ()) -> None:
        """Keep the host busy."""
        end_s = self.clock.now_s() + duration_s
        while self.clock.now_s() < end_s:
            pass

    def Stream(self) -> Any:  # noqa: N802
        """A new stream."""
        return self._torch.cuda.Stream(self._device)

    def Event(self, *, enable_timing: bool = False) -> Any:  # noqa: N802
        """A new event."""
        return self._torch.cuda.Event(enable_timing=enable_timing)

    def stream(self, stream: Any) -> Any:
        """A context in which `stream` is the current one."""
        return self._torch.cuda.stream(stream)

    def current_stream(self) -> Any:
        """The stream that work goes to unless another one is named."""
        return self._torch.cuda.current_stream(self._device)

    def synchronize(self) -> None:
        """Keep the host until the device has drained."""
        self.clock.synchronize()

    def now_s(self) -> float:
        """The host's time."""
        return self.clock.now_s()

    def _measured_cycles_per_s(self) -> float:
        self.launch("warm up", duration_s=0.05)
        start, end = self.Event(enable_timing=True), self.Event(enable_timing=True)
        start.record()
        self.launch("calibrate", duration_s=0.05)
        end.record()
        self.synchronize()
        return float(self._cycles_per_s * 0.05 / (start.elapsed_time(end) / 1e3))
