"""What can be seen of one call: through torch's dispatcher, and in the program that a VirtualGPU recorded."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from contextlib import ExitStack
from types import FrameType
from typing import Any

from edl_labs.bench.detectors.wrapped_methods import all_wrapped

_READS = {"item": ".item()", "tolist": ".tolist()", "cpu": ".cpu()", "numpy": ".numpy()", "__float__": "float(tensor)"}
_READS |= {"__int__": "int(tensor)", "__bool__": "if tensor: ...", "__index__": "int(tensor)"}
_VIEWS = {"detach", "_unsafe_view", "alias"}  # beside those that torch itself calls views
_WATCHED = (
    *(("torch.autograd", "", name) for name in ("backward", "grad")),
    *((f"torch.{module}", "", "synchronize") for module in ("cuda", "accelerator", "cpu", "mps", "xpu")),
    *(("torch.cuda", kind, "synchronize") for kind in ("Stream", "Event")),
    *(("torch.cuda", "Stream", name) for name in ("wait_stream", "wait_event")),
)
_WAITS = {"synchronize": "synchronize()", "sync_stream": "stream.synchronize()", "sync_event": "event.synchronize()"}
_WORK = ("launch", "copy")


class TorchWatch:
    """Watches single calls; its facts (`reads`, `waits`, `computed`, `changed`, ...) are of the latest one."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._tracked: list[Any] = []
        self._reset()

    def _reset(self) -> None:
        self.reads: list[str] = []
        self.waits: list[str] = []
        self.computed = 0
        self.changed = self.backward = self.piled_up = False
        self.graph = self.gives_graph = self.gives_result = False
        self.streams: set[Any] = set()
        self.joined = False

    def watch(self, call: Callable[[], Any]) -> Any:
        """The result of `call()`, with everything it does noted."""
        self._reset()
        function_mode, dispatch_mode = _modes(self._torch, self)
        with ExitStack() as stack:
            stack.enter_context(all_wrapped((path, _noting(path[-1], self)) for path in _WATCHED))
            stack.enter_context(function_mode)
            stack.enter_context(dispatch_mode)
            result = call()
        self.gives_result = result is not None
        self.gives_graph = any(getattr(one, "requires_grad", False) is True for one in _tensors(self._torch, result))
        return result

    def survivors(self) -> list[Any]:
        """Tensors made in watched calls that are still alive."""
        self._tracked = [ref for ref in self._tracked if ref() is not None]
        return [tensor for tensor in (ref() for ref in self._tracked) if tensor is not None]

    def pending(self) -> str:
        """Why work of the latest call may still run on an accelerator, or ''."""
        torch = self._torch
        if not (torch.accelerator.is_available() and (not torch.cuda.is_available() or torch.cuda.is_initialized())):
            return ""
        idle = torch.accelerator.current_stream().query()
        return (
            ""
            if idle
            else "the accelerator was still working when the call returned, and this clock does not wait for it"
        )

    def see_function(self, name: str, args: tuple[Any, ...]) -> None:
        of_tensor = name in _READS and bool(args) and isinstance(args[0], self._torch.Tensor)
        # On the processor an array shares the tensor's memory, and nothing is read back.
        if of_tensor and _asked_by_caller() and (name != "numpy" or args[0].device.type != "cpu"):
            self.reads.append(_READS[name])
        if name == "to" and args and _goes_to_host(self._torch, args):
            self.reads.append('.to("cpu")')

    def see_backward(self, losses: Any) -> None:
        if not self.backward:
            self.backward = True
            self.piled_up = any(map(_has_gradients, losses if isinstance(losses, (list, tuple)) else [losses]))

    def see_operator(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> None:
        name = func.overloadpacket.__name__
        if func.namespace != "aten":
            return
        if self._torch.cuda.is_available() and self._torch.cuda.is_initialized():
            self.streams.add(self._torch.cuda.current_stream())
        if not (func.is_view or name in _VIEWS):
            self.computed += 1
        self.changed = self.changed or (name.endswith("_") and not name.endswith("__")) or "out" in kwargs
        if name.endswith("_") or "out" in kwargs:
            return  # what is changed in place was there before
        for tensor in out if isinstance(out, (list, tuple)) else (out,):
            if isinstance(tensor, self._torch.Tensor):
                self._tracked.append(weakref.ref(tensor))


def is_compiled(items: list[Any]) -> bool:
    """Whether a compiled function is among `items`: watching it would run other code than will be timed."""
    return any(
        hasattr(item, "_torchdynamo_orig_callable") or type(item).__name__ in ("OptimizedModule", "_TorchDynamoContext")
        for item in items
        if not isinstance(item, type)
    )


def reserved_bytes(torch: Any) -> int:
    """The device memory that torch's allocator has reserved."""
    return int(torch.cuda.memory_reserved()) if torch is not None and torch.cuda.is_initialized() else 0


def _modes(torch: Any, eye: TorchWatch) -> tuple[Any, Any]:
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    class Functions(TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            eye.see_function(getattr(func, "__name__", ""), args)
            out = func(*args, **(kwargs or {}))
            eye.graph = eye.graph or (isinstance(out, torch.Tensor) and out.grad_fn is not None)
            return out

    class Operators(TorchDispatchMode):
        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            # Else torch loads its whole compiler, for seconds, to leave this class alone; compiled code is not watched.
            return False

        def __torch_dispatch__(
            self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            out = func(*args, **(kwargs or {}))
            eye.see_operator(func, args, kwargs or {}, out)
            return out

    return Functions(), Operators()


def _noting(name: str, eye: TorchWatch) -> Callable[..., Any]:
    def through(method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if name == "synchronize":
            eye.waits.append("it calls synchronize()")
        elif name == "backward":
            eye.see_backward(args[0] if args else kwargs.get("tensors", ()))
        elif name == "grad":
            eye.backward = True
        else:
            eye.joined = True
        return method(*args, **kwargs)

    return through


def _tensors(torch: Any, result: Any) -> list[Any]:
    """The tensors of a result, in lists, tuples, dicts and what a model gives."""
    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, (list, tuple)):
        return [tensor for item in result for tensor in _tensors(torch, item)]
    parts = result if isinstance(result, dict) else getattr(result, "__dict__", {})
    return [item for item in parts.values() if isinstance(item, torch.Tensor)]


def _asked_by_caller() -> bool:
    """Whether the call is the caller's own: torch's optimizers and modules read values back by themselves."""
    frame: FrameType | None = sys._getframe(3)
    file = "" if frame is None else frame.f_code.co_filename.replace("\\", "/")
    return "/torch/" not in file and file != __file__.replace("\\", "/")


def _goes_to_host(torch: Any, args: tuple[Any, ...]) -> bool:
    tensor, *rest = args
    return isinstance(tensor, torch.Tensor) and tensor.device.type != "cpu" and any(str(arg) == "cpu" for arg in rest)


def _has_gradients(loss: Any) -> bool:
    """Whether a leaf of the graph of `loss` holds a gradient that is not zero before the backward pass."""
    waiting: list[Any] = [getattr(loss, "grad_fn", None)]
    seen: set[Any] = set()
    while waiting and len(seen) < 100_000:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        leaf = getattr(node, "variable", None)
        if leaf is not None and leaf.grad is not None and bool((leaf.grad != 0).any()):
            return True
        waiting += [parent for parent, _ in node.next_functions]
    return False


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
            f"kernels ran on stream {min(others)}, and the current stream does not wait for them"
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
        return (
            f"each call launches a kernel that had not been loaded before ({min(fresh)})" if fresh and earlier else ""
        )

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
