"""What can be seen of a call that drives a VirtualGPU: the operations that it issued, from the recorded program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_WAITS = {"synchronize": "synchronize()", "sync_stream": "stream.synchronize()", "sync_event": "event.synchronize()"}
_WORK = ("launch", "copy")


class VirtualWatch:
    """Watches single calls on one VirtualGPU: the `operations` of the latest one, and those that `drain` it."""

    def __init__(self, gpu: Any) -> None:
        self._gpu = gpu
        self._names: list[set[str]] = []
        self._balance: list[int] = []
        self.operations: list[dict[str, Any]] = []
        self.drain: list[dict[str, Any]] = []
        self.stream = 0

    def watch(self, call: Callable[[], Any], *, drain: Callable[[], object]) -> Any:
        """The result of `call()`, its operations noted, and those of waiting for it on the clock in use."""
        self.stream = self._gpu.current_stream().index
        begin = len(self._gpu.program)
        result = call()
        middle = len(self._gpu.program)
        drain()
        program = self._gpu.program
        self.operations, self.drain = program[begin:middle], program[middle:]
        self._names.append({op["name"] for op in self.operations if op["op"] == "launch"})
        made = sum(1 if op["op"] == "alloc" else -1 if op["op"] == "free" else 0 for op in self.operations)
        self._balance.append(made)
        return result

    @property
    def waits(self) -> str:
        """How the call waits for the device, or ''."""
        return next((f"it calls {_WAITS[op['op']]}" for op in self.operations if op["op"] in _WAITS), "")

    @property
    def reads(self) -> str:
        """How the call reads a value back, or ''."""
        for op in self.operations:
            if op["op"] == "item":
                return "item()"
            if op["op"] == "copy" and self._blocks(op):
                return "a copy to pageable host memory"
        return ""

    @property
    def undrained(self) -> str:
        """Why work was left on the device when the clock was read, or ''."""
        everything = [op["op"] for op in (*self.operations, *self.drain)]
        work = [i for i, op in enumerate(everything) if op in _WORK]
        if not work:
            return ""
        waited = any(op in ("synchronize", "item") for op in everything[work[-1] + 1 :])
        partly = any(op in ("sync_stream", "sync_event") for op in everything[work[-1] + 1 :])
        return "" if waited or partly else "nothing waited for the last kernel or copy"

    @property
    def apart(self) -> str:
        """Why work runs where the caller's stream does not wait for it, or ''."""
        others = {op["stream"] for op in self.operations if op["op"] in _WORK} - {self.stream}
        joined = any(op["op"] == "wait" and op["stream"] == self.stream for op in self.operations)
        waited = bool(self.waits)
        return (
            f"kernels ran on stream {min(others)}, and the current stream does not wait"
            if others - {self.stream} and not (joined or waited)
            else ""
        )

    @property
    def loads(self) -> str:
        """Kernels that this call launched for the first time although it is not the first call, or ''."""
        if len(self._names) < 3 or not all(self._names[-2:]):
            return ""
        fresh = self._names[-1] - set().union(*self._names[:-1])
        earlier = self._names[-2] - set().union(*self._names[:-2])
        return f"each call launches a kernel that was never loaded before ({min(fresh)})" if fresh and earlier else ""

    @property
    def growth(self) -> int:
        """Buffers that each call of the last two made and did not free."""
        return min(self._balance[-2:]) if len(self._balance) >= 3 else 0

    @property
    def moved_bytes(self) -> int:
        """Bytes that the kernels of the call move, where their price depends on what is in the cache."""
        return sum(int(op.get("moved_bytes") or 0) for op in self.operations if op["op"] == "launch")

    def _blocks(self, op: dict[str, Any]) -> bool:
        places = {entry["buffer"]: entry.get("where") for entry in self._gpu.program if entry["op"] == "alloc"}
        place = places.get(op["dst"][0] if isinstance(op["dst"], (list, tuple)) else op["dst"])
        return place == "pageable" or (place == "pinned" and not op.get("non_blocking", False))
