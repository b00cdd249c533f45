"""A GPU that is not there: torch says that it is, tensors say that they lie on it, and the processor does their work.

It answers what a real device would to a call that is wrong: operands on two devices, numpy of a device's tensor, an
unknown argument of `torch.cuda`, a time between events that were never recorded. What it cannot show is anything of
CUDA's own: times, kernels, asynchrony.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any
from unittest.mock import create_autospec, patch

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter, tree_map

NAME = "NVIDIA A100-SXM4-80GB"
PROPERTIES = SimpleNamespace(
    name=NAME,
    major=8,
    minor=0,
    total_memory=85_000_000_000,
    multi_processor_count=108,
    L2_cache_size=1 << 20,  # of an A100: 40 MiB, too much to go over on a processor
    uuid="00000000-0000-0000-0000-000000000000",
)
_CPU, _CUDA = torch.device("cpu"), torch.device("cuda", 0)
_MARK, _PINNED = "_on_fake_cuda", "_pinned_for_fake_cuda"
# What takes one tensor of each device, as torch documents it.
_ACROSS = {torch.ops.aten.copy_.default, torch.ops.aten._copy_from.default}
_real_device, _real_numpy, _real_to = torch.Tensor.device.__get__, torch.Tensor.numpy, torch.Tensor.to
_real_data = torch.Tensor.data


class FakeDevice(TorchDispatchMode):
    """Every operator: run on the processor, and its results lie where its operands do, or where it was told to."""

    def __init__(self) -> None:
        super().__init__()
        self.operators = 0
        """How many operators ran on the device."""
        self.capturing: FakeGraph | None = None

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = [one for one in tree_iter((args, kwargs)) if isinstance(one, torch.Tensor)]
        # torch's own casts name the place that it believes in, the processor; a caller's `to` never comes this far.
        asked = None if func is torch.ops.aten._to_copy.default else (kwargs or {}).get("device")
        if self.capturing and func is torch.ops.aten._local_scalar_dense.default:
            raise RuntimeError("CUDA error: operation not permitted when stream is capturing")
        pinned = bool((kwargs or {}).get("pin_memory"))
        if asked is None:
            _one_device(func, given)
        on_device = asked.type == "cuda" if asked is not None else any(map(is_on_device, given))
        kwargs = {name: value for name, value in (kwargs or {}).items() if name != "pin_memory"}
        args, kwargs = tree_map(lambda one: _CPU if _is_cuda(one) else one, (args, kwargs))
        out = func(*args, **kwargs)
        if func in _ACROSS:
            return out
        for one in tree_iter(out):
            if isinstance(one, torch.Tensor) and not any(one is other for other in given):
                setattr(one, _MARK, on_device)
                setattr(one, _PINNED, pinned)
        if on_device:
            self.operators += 1
            if self.capturing is not None:
                self.capturing.calls.append((func, args, kwargs, out))
        return out


def is_on_device(tensor: Any) -> bool:
    """Whether a tensor says that it lies on the fake device."""
    return bool(getattr(tensor, _MARK, False))


def _is_cuda(value: object) -> bool:
    return isinstance(value, torch.device) and value.type == "cuda"


def _one_device(func: Any, tensors: list[torch.Tensor]) -> None:
    """What torch refuses: operands on two devices, where the stray one is no number."""
    places = {is_on_device(one) for one in tensors if one.dim() or is_on_device(one)}
    if len(places) > 1 and func not in _ACROSS:
        raise RuntimeError(
            f"Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu! ({func})"
        )


class FakeGraph:
    """A CUDA graph: the operators of its capture, run again into the same results."""

    def __init__(self, keep_graph: bool = False) -> None:
        self.calls: list[tuple[Any, Any, Any, Any]] = []

    def replay(self) -> None:
        """Every operator once more, on what now lies in its operands."""
        for func, args, kwargs, kept in self.calls:
            again = func(*args, **kwargs)
            for old, new in zip(tree_iter(kept), tree_iter(again), strict=True):
                if isinstance(old, torch.Tensor) and old is not new:
                    old.copy_(new)


class FakeEvent:
    """An event of a device whose work is always done: it must be recorded before it is compared."""

    def __init__(self, device: object = None, *, enable_timing: bool = False, blocking: bool = False) -> None:
        self.timed, self.at_s = enable_timing, -1.0

    def record(self, stream: object = None) -> None:
        """Now."""
        self.at_s = time.perf_counter()

    def wait(self, stream: object = None) -> None:
        """Nothing is left to wait for."""

    def query(self) -> bool:
        """Whether all before it is done."""
        return True

    def synchronize(self) -> None:
        """Nothing is left to wait for."""

    def elapsed_time(self, end: FakeEvent) -> float:
        """Milliseconds from this one to `end`."""
        if not (self.timed and end.timed):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if min(self.at_s, end.at_s) < 0:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return 1e3 * (end.at_s - self.at_s)


class FakeStream:
    """A stream whose work is done as it is issued."""

    def __init__(self, device: object = None, priority: int = 0) -> None:
        self.device, self.priority, self.cuda_stream = _CUDA, priority, id(self)

    def wait_stream(self, stream: FakeStream) -> None:
        """Nothing is left to wait for."""

    def wait_event(self, event: FakeEvent) -> None:
        """Nothing is left to wait for."""

    def record_event(self, event: FakeEvent | None = None) -> FakeEvent:
        """An event that has happened."""
        event = event or FakeEvent()
        event.record()
        return event

    def synchronize(self) -> None:
        """Nothing is left to wait for."""

    def query(self) -> bool:
        """Whether all of it is done."""
        return True

    def is_capturing(self) -> bool:
        """Whether a graph captures this stream; optimizers ask."""
        return False


def _spec(function: Callable[..., Any], answer: Any) -> Any:
    """A stand-in that takes what `function` takes and nothing else, and answers `answer`."""
    return create_autospec(function, side_effect=answer if callable(answer) else lambda *_, **__: answer)


def _numpy(tensor: torch.Tensor, *, force: bool = False) -> Any:
    if is_on_device(tensor) and not force:
        raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() first.")
    return _real_numpy(tensor, force=force)


def _to(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    """`Tensor.to`: a copy where the place changes, the same tensor where nothing does."""
    other = next((one for one in (*args, kwargs.get("other")) if isinstance(one, torch.Tensor)), None)
    if other is not None:
        return _to(tensor, other.device, other.dtype)
    copied = kwargs.pop("copy", False)
    device, dtype, _, order = torch._C._nn._parse_to(*args, **kwargs)
    wanted = is_on_device(tensor) if device is None else device.type == "cuda"
    moved = wanted != is_on_device(tensor)
    out = _real_to(tensor, dtype=dtype or tensor.dtype, copy=copied, **({"memory_format": order} if order else {}))
    if moved:
        out = out.clone() if out is tensor else out
        setattr(out, _MARK, wanted)
    return out


def _data(tensor: torch.Tensor) -> torch.Tensor:
    out = _real_data.__get__(tensor)
    setattr(out, _MARK, is_on_device(tensor))
    return out


def _put_data(tensor: torch.Tensor, value: torch.Tensor) -> None:
    """A module moves its parameters so."""
    _real_data.__set__(tensor, value)
    setattr(tensor, _MARK, is_on_device(value))


def _pin(tensor: torch.Tensor, device: object = None) -> torch.Tensor:
    if is_on_device(tensor):
        raise RuntimeError("cannot pin 'torch.cuda.FloatTensor' only dense CPU tensors can be pinned")
    copied = tensor.clone()
    setattr(copied, _PINNED, True)
    return copied


def _record_stream(tensor: torch.Tensor, stream: object) -> None:
    if not (is_on_device(tensor) and isinstance(stream, FakeStream)):
        raise TypeError("record_stream takes a stream of the device on which the tensor lies")


def _autocast(real: Callable[..., None]) -> Callable[..., None]:
    """Autocast of the fake device is the processor's: its operators run there."""

    def made(self: Any, device_type: str, *args: Any, **kwargs: Any) -> None:
        real(self, "cpu" if device_type == "cuda" else device_type, *args, **kwargs)

    return made


def _graph(device: FakeDevice) -> Callable[..., Any]:
    @contextmanager
    def capture(graph: FakeGraph, pool: object = None, stream: object = None, **_: Any) -> Iterator[None]:
        device.capturing = graph
        try:
            yield
        finally:
            device.capturing = None

    return capture


@contextmanager
def fake_cuda() -> Iterator[FakeDevice]:
    """Within it, this process has one CUDA device, as far as torch's Python says."""
    stream, device = FakeStream(), FakeDevice()
    answers: dict[str, Any] = {
        "is_available": True,
        "is_initialized": True,
        "device_count": 1,
        "current_device": 0,
        "get_device_name": NAME,
        "get_device_properties": PROPERTIES,
        "get_device_capability": (8, 0),
        "synchronize": None,
        "current_stream": stream,
        "stream": lambda _: nullcontext(),
        "empty_cache": None,
        "memory_allocated": 0,
        "memory_reserved": 0,
        "is_current_stream_capturing": False,
        "is_bf16_supported": True,
        "get_rng_state": lambda *_: torch.get_rng_state(),
        "set_rng_state": None,
        "get_rng_state_all": lambda: [torch.get_rng_state()],
        "set_rng_state_all": None,
    }
    there = {
        "current_accelerator": _CUDA,
        "is_available": True,
        "synchronize": None,
        "current_device_index": 0,
        "device_count": 1,
        "current_stream": stream,
    }
    with ExitStack() as stack:
        for home, functions in ((torch.cuda, answers), (torch.accelerator, there)):
            for name, answer in functions.items():
                stack.enter_context(patch.object(home, name, _spec(getattr(home, name), answer)))
        tensor = torch.Tensor
        for home, name, value in (
            (torch.cuda, "_lazy_init", lambda: None),
            (torch.cuda, "Stream", FakeStream),
            (torch.cuda, "Event", FakeEvent),
            (torch.cuda, "CUDAGraph", FakeGraph),
            (torch.cuda, "graph", _graph(device)),
            (torch, "Event", FakeEvent),
            (torch.autocast, "__init__", _autocast(torch.autocast.__init__)),
            (tensor, "numpy", _numpy),
            (tensor, "to", _to),
            (tensor, "cpu", lambda one, memory_format=torch.preserve_format: _to(one, "cpu")),
            (tensor, "cuda", lambda one, device=None, non_blocking=False: _to(one, "cuda", non_blocking=non_blocking)),
            (tensor, "pin_memory", _pin),
            (tensor, "record_stream", _record_stream),
            (tensor, "is_pinned", lambda one, device=None: bool(getattr(one, _PINNED, False))),
        ):
            stack.enter_context(patch.object(home, name, value))
        for name, read in (
            ("device", property(lambda one: _CUDA if is_on_device(one) else _real_device(one))),
            ("is_cuda", property(is_on_device)),
            ("is_cpu", property(lambda one: not is_on_device(one))),
            ("data", property(_data, _put_data)),
        ):
            stack.enter_context(patch.object(tensor, name, read, create=True))
        yield stack.enter_context(device)
