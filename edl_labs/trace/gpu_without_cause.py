"""A traced VirtualGPU on which one cause does not exist: the same loop runs on it, and shows what mending it gains."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from edl_labs.errors import UsageError
from edl_labs.trace.causes import ABLATIONS, CHARGED, ENCLOSING, named_cause
from edl_labs.trace.classify import kind_of
from edl_labs.trace.traced_gpu import TracedGPU
from edl_labs.virtual import Region, Stream
from edl_labs.virtual.gpu.buffers import DEVICE, PINNED


class AblatedGPU(TracedGPU):
    """A TracedGPU without one cause of `ABLATIONS`: a loop that runs on it is otherwise unchanged."""

    def __init__(self, model: Any = "A100-80GB", *, without: str, **parameters: Any) -> None:
        if without not in ABLATIONS:
            raise UsageError(
                f"cannot run without {without!r}", why=f"causes are {', '.join(ABLATIONS)}", next="name one of them"
            )
        super().__init__(model, **parameters)
        self.without = without
        self._full_launch_ps = self._launch_ps
        self._side: Stream | None = None
        self._pinned: dict[int, Any] = {}

    @contextmanager
    def step(self) -> Iterator[int]:
        self._launch_ps = self._full_launch_ps
        with super().step() as number:
            yield number

    def launch(self, name: str, **work: Any) -> None:
        if self.without == "compute" and kind_of("kernel", name) == "kernel":
            kept = {key: work[key] for key in ("reads", "writes", "stream") if key in work}
            super().launch(name, duration_s=0.0, **kept)
        else:
            super().launch(name, **work)
        if self.without == "launch":
            self._launch_ps = 0

    def copy(self, dst: Region, src: Region, *, non_blocking: bool = False, stream: Stream | None = None) -> None:
        ends = {dst.buffer.where, src.buffer.where}
        if self.without != "copy" or ends == {DEVICE} or DEVICE not in ends:
            super().copy(dst, src, non_blocking=non_blocking, stream=stream)
            return
        if self._side is None:
            self._side = self.Stream()
        super().copy(self._locked(dst), self._locked(src), non_blocking=True, stream=self._side)

    def item(self, source: Region, *, stream: Stream | None = None) -> int:
        if self.without == "sync":
            return source.buffer.versions
        return super().item(source, stream=stream)

    def synchronize(self) -> None:
        in_allocation = self._inside("alloc")
        if (self.without == "sync" and not in_allocation) or (self.without == "alloc" and in_allocation):
            return
        super().synchronize()

    def host_work(self, duration_s: float, *, reads: Any = (), writes: Any = ()) -> None:
        at = next((cause for cause in reversed(ENCLOSING) if self._inside(cause)), "host")
        super().host_work(0.0 if at == self.without else duration_s, reads=reads, writes=writes)

    def _inside(self, cause: str) -> bool:
        """Whether a stretch is open that is charged to this cause, by its name or as a runtime call."""
        calls = (CHARGED.get(kind_of("cuda_runtime", name) or "") for name in self.open)
        return cause in calls or cause in map(named_cause, self.open)

    def _locked(self, region: Region) -> Region:
        """The same bytes in pinned memory, made at the first copy."""
        if region.buffer.where in (DEVICE, PINNED):
            return region
        index = region.buffer.index
        if index not in self._pinned:
            self._pinned[index] = self.host_empty(region.buffer.nbytes, pin_memory=True)
        part: Region = self._pinned[index][region.start : region.stop]
        return part
