"""What a model runs, operator by operator, without running it: shapes and dtypes on fake tensors of any device.

A fake tensor knows its shape, dtype and device and holds no data, so that CUDA's dispatch, autocast included, can be
followed on a machine that has no GPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only
from torch.utils.flop_counter import flop_registry

from edl_labs.errors import UsageError

DEVICE_TYPES = ("cpu", "cuda")
_CASTS = ("aten::_to_copy", "aten::copy_", "aten::to")
# From narrow to wide, as type promotion goes; fp16 with bf16 makes fp32.
_WIDTHS = ("bf16", "fp16", "fp32", "fp64")
_NO_WORK = ("aten::detach", "aten::alias", "aten::empty", "aten::empty_like", "aten::_unsafe_view", "aten::lift_fresh")


@dataclass(frozen=True)
class Kernel:
    """One operator of torch's lowest level: the dtypes that it was given, its work and the bytes it has to move."""

    name: str
    dtypes: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    out_shapes: tuple[tuple[int, ...], ...]
    flop: int
    moved_bytes: int
    is_cast: bool = False

    out_dtype: str | None = None
    promotes: bool = False

    @property
    def ran_in(self) -> str | None:
        """The dtype that it computes in: of its first floating-point input, or a wider one that it works in.

        Pointwise kernels work in the widest of their inputs, and softmax widens fp16 by itself.
        """
        if not self.dtypes or self.out_dtype is None:
            return self.dtypes[0] if self.dtypes else None
        seen = [*(self.dtypes if self.promotes else self.dtypes[:1]), self.out_dtype]
        return max(seen, key=_WIDTHS.index) if set(seen) <= set(_WIDTHS) else seen[0]


@dataclass
class Call:
    """One call of a torch function by the model, with the kernels that it came to."""

    operator: str
    module: str
    given: tuple[str, ...]
    out: tuple[str, ...] = ()
    kernels: list[Kernel] = field(default_factory=list)

    @property
    def main(self) -> Kernel | None:
        """The kernel with the most work, casts apart."""
        real = [kernel for kernel in self.kernels if not kernel.is_cast and kernel.ran_in]
        return max(real, key=lambda kernel: (kernel.flop, kernel.moved_bytes), default=None)

    @property
    def ran_in(self) -> str | None:
        """The dtype that the main kernel computes in."""
        return self.main.ran_in if self.main else None


def trace(model: Any, inputs: Any, *, device_type: str = "cuda", autocast: Any = None) -> list[Call]:
    """Every call that `model(*inputs)` makes on `device_type`, under autocast to the dtype `autocast` if given.

    Nothing is computed, allocated or changed. `inputs` is one tensor or a tuple. UsageError where the model looks at
    values (`.item()`, `if x > 0`), which fake tensors do not have.
    """
    _check(model, device_type)
    inputs = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
    calls: list[Call] = []
    path: list[str] = []
    try:
        with FakeTensorMode(allow_non_fake_inputs=True) as mode, _paths(model, path):
            # The copy on the device is made before anyone watches: its casts and copies are not the model's.
            weights = _on_device(dict(model.named_parameters()) | dict(model.named_buffers()), mode, device_type)
            given = _on_device(tuple(inputs), mode, device_type)
            with _without_cudnn(), _autocast(device_type, autocast), _Functions(calls, path), _Kernels(calls, path):
                torch.func.functional_call(model, weights, given)
    except UsageError:
        raise
    except Exception as error:
        raise UsageError(
            f"{type(model).__name__} cannot be traced for {device_type}",
            why=f"{type(error).__name__}: {str(error).splitlines()[0][:160] if str(error) else 'no message'}",
            next="give inputs that fit, and a model that does not look at values (.item(), if x > 0)",
        ) from error
    return calls


def dtype_text(dtype: torch.dtype) -> str:
    """A dtype in the table's short words: 'fp16', 'bf16', 'fp32', or torch's name."""
    short = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64"}
    name = str(dtype).removeprefix("torch.")
    return short.get(name, name)


class _Functions(TorchFunctionMode):
    """Opens a `Call` for each torch function that the model calls; what happens inside lands in it."""

    def __init__(self, calls: list[Call], path: list[str]) -> None:
        super().__init__()
        self._calls, self._path = calls, path

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        call = Call(_spelled(func), _where(self._path), _floating((args, kwargs)))
        self._calls.append(call)
        result = func(*args, **(kwargs or {}))
        call.out = _floating(result)
        if call.operator == "scaled_dot_product_attention":
            call.kernels = [_fused_attention(call, args, kwargs, result)]
        if not call.kernels or not call.out:
            self._calls.remove(call)
        return result


class _Kernels(TorchDispatchMode):
    """Adds each low-level operator to the call that is open."""

    def __init__(self, calls: list[Call], path: list[str]) -> None:
        super().__init__()
        self._calls, self._path = calls, path

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        name = func._schema.name
        if not func.is_view and name not in _NO_WORK and not name.startswith("prim::") and _tensors(result):
            if not self._calls or self._calls[-1].out:
                self._calls.append(Call(_spelled(func), _where(self._path), _floating((args, kwargs))))
            self._calls[-1].kernels.append(_kernel(func, name, args, kwargs, result))
        return result


def _fused_attention(call: Call, args: Any, kwargs: Any, result: Any) -> Kernel:
    """Attention as one kernel in the dtype that comes out.

    The GPU chooses the kernel; without one torch falls back to plain products in fp32, which no GPU would run.
    """
    given, made = _tensors((args, kwargs)), _tensors(result)
    elements = sum(tensor.numel() for tensor in (*given[:3], *made[:1]))
    return Kernel(
        name="scaled_dot_product_attention",
        dtypes=call.out[:1],
        shapes=tuple(tuple(tensor.shape) for tensor in given),
        out_shapes=tuple(tuple(tensor.shape) for tensor in made),
        flop=sum(kernel.flop for kernel in call.kernels),
        moved_bytes=elements * made[0].element_size(),
        out_dtype=call.out[0],
    )


def _kernel(func: Any, name: str, args: Any, kwargs: Any, result: Any) -> Kernel:
    given, made = _tensors((args, kwargs)), _tensors(result)
    count = flop_registry.get(func._overloadpacket)
    return Kernel(
        name=name.removeprefix("aten::"),
        dtypes=_floating((args, kwargs)),
        shapes=tuple(tuple(tensor.shape) for tensor in given),
        out_shapes=tuple(tuple(tensor.shape) for tensor in made),
        flop=int(count(*args, **kwargs, out_val=result)) if count else 0,
        moved_bytes=sum(tensor.numel() * tensor.element_size() for tensor in (*given, *made)),
        is_cast=name in _CASTS,
        out_dtype=next(iter(_floating(made[:1])), None),
        promotes=torch.Tag.pointwise in func.tags,
    )


@contextmanager
def _autocast(device_type: str, dtype: Any) -> Iterator[None]:
    """Autocast as its context manager does it, but without asking whether there is a GPU."""
    if dtype is None:
        yield
        return
    before = torch.is_autocast_enabled(device_type), torch.get_autocast_dtype(device_type)
    torch.set_autocast_enabled(device_type, True)
    torch.set_autocast_dtype(device_type, dtype)
    torch.autocast_increment_nesting()
    try:
        yield
    finally:
        if torch.autocast_decrement_nesting() == 0:
            torch.clear_autocast_cache()
        torch.set_autocast_enabled(device_type, before[0])
        torch.set_autocast_dtype(device_type, before[1])


@contextmanager
def _without_cudnn() -> Iterator[None]:
    """cuDNN's recurrent layers want their weights in one piece of real memory; torch's own take them as they are."""
    before = torch.backends.cudnn.enabled
    torch.backends.cudnn.enabled = False
    try:
        yield
    finally:
        torch.backends.cudnn.enabled = before


@contextmanager
def _paths(model: Any, path: list[str]) -> Iterator[None]:
    """Keeps `path` at the names of the modules that are running."""
    handles = []
    for name, module in model.named_modules():
        handles.append(module.register_forward_pre_hook(lambda *_, name=name: path.append(name)))
        handles.append(module.register_forward_hook(lambda *_: path.pop() and None, always_call=True))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _on_device(tree: Any, mode: FakeTensorMode, device_type: str) -> Any:
    def fake(tensor: torch.Tensor) -> torch.Tensor:
        made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=device_type)
        return made.requires_grad_(tensor.requires_grad)

    return tree_map_only(torch.Tensor, fake, tree)


def _check(model: Any, device_type: str) -> None:
    if device_type not in DEVICE_TYPES:
        raise UsageError(
            f"no autocast for {str(device_type)[:30]!r} here",
            why="it is followed on cpu and cuda",
            next="name one of them",
        )
    if not isinstance(model, torch.nn.Module):
        raise UsageError(
            f"a {type(model).__name__} is no torch.nn.Module",
            why="its weights have to be known, to be put on the device",
            next="wrap the function in a module",
        )


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def _floating(tree: Any) -> tuple[str, ...]:
    return tuple(dtype_text(tensor.dtype) for tensor in _tensors(tree) if tensor.is_floating_point())


def _spelled(func: Any) -> str:
    name = getattr(func, "__name__", str(func)).split(".")[0].strip("_")
    return {"rsub": "sub", "radd": "add", "iadd": "add", "rmul": "mul", "truediv": "div"}.get(name, name)


def _where(path: list[str]) -> str:
    return path[-1] if path else ""
