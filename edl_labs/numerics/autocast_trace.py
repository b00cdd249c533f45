"""What a model runs, call by call, without running it: shapes and dtypes on fake tensors of any device.

A fake tensor knows its shape, dtype and device and holds no data, so that CUDA's dispatch, autocast included, can be
followed on a machine that has no GPU. Roofline's recorder sees the operators; here they are put together to the calls
of torch functions that a reader of the model knows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from edl_labs.errors import UsageError
from edl_labs.roofline.operators.counted_call import CountedCall, counted, short_dtype, tensor_specs
from edl_labs.roofline.operators.recorded_run import as_fake
from edl_labs.roofline.operators.recorder import RecordedCall, Recorder, TensorSpec, to_specs

DEVICE_TYPES = ("cpu", "cuda")
_CASTS = ("_to_copy", "copy_", "to")
# From narrow to wide, as type promotion goes; fp16 with bf16 makes fp32.
_WIDTHS = ("bf16", "fp16", "fp32", "fp64")


@dataclass(frozen=True)
class TracedKernel:
    """One operator of torch's lowest level: its work, and the shapes and dtypes that it was given and made."""

    counted: CountedCall
    given: tuple[TensorSpec, ...]
    made: tuple[TensorSpec, ...]
    promotes: bool = False

    @property
    def is_cast(self) -> bool:
        """Whether it only changes a dtype."""
        return self.counted.name in _CASTS

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The dtypes of its floating-point inputs."""
        return _floating(self.given)

    @property
    def flops(self) -> int:
        """FLOPs of contractions."""
        return self.counted.contraction_flops

    @property
    def ran_in(self) -> str | None:
        """The dtype that it computes in: of its first floating-point input, or a wider one that it works in.

        Pointwise kernels work in the widest of their inputs, and softmax widens fp16 internally.
        """
        given, made = self.dtypes, _floating(self.made[:1])
        if not given or not made:
            return given[0] if given else None
        seen = [*(given if self.promotes else given[:1]), *made]
        return max(seen, key=_WIDTHS.index) if set(seen) <= set(_WIDTHS) else seen[0]


@dataclass
class TorchCall:
    """One call of a torch function by the model, with the kernels that it came to."""

    operator: str
    module: str
    given: tuple[str, ...]
    out: tuple[str, ...] = ()
    kernels: list[TracedKernel] = field(default_factory=list)

    @property
    def main(self) -> TracedKernel | None:
        """The kernel with the most work, casts apart."""
        real = [kernel for kernel in self.kernels if not kernel.is_cast and kernel.ran_in]
        return max(real, key=lambda kernel: (kernel.flops, kernel.counted.moved_bytes), default=None)

    @property
    def ran_in(self) -> str | None:
        """The dtype that the main kernel computes in."""
        return self.main.ran_in if self.main else None


def trace(model: Any, inputs: Any, *, device_type: str = "cuda", autocast: Any = None) -> list[TorchCall]:
    """Every call that `model(*inputs)` makes on `device_type`, under autocast to the dtype `autocast` if given.

    Nothing is computed, allocated or changed. `inputs` is one tensor or a tuple. UsageError where the model looks at
    values (`.item()`, `if x > 0`), which fake tensors do not have.
    """
    _check(model, device_type)
    inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    recorder = Recorder({module: name for name, module in model.named_modules()})
    functions = _Functions(recorder.calls)
    try:
        with (
            # The copy on the device is made before anyone watches: its casts and copies are not the model's.
            as_fake(model, inputs, device=device_type) as given,
            _without_cudnn(),
            _autocast(device_type, autocast),
            recorder,
            functions,
        ):
            model(*given)
    except UsageError:
        raise
    except Exception as error:
        raise UsageError(
            f"{type(model).__name__} cannot be traced for {device_type}",
            why=f"{type(error).__name__}: {str(error).splitlines()[0][:160] if str(error) else 'no message'}",
            next="pass suitable inputs, and a model without `.item()`, `if x > 0` or other reads of tensor values",
        ) from error
    return functions.all_calls()


class _Functions(TorchFunctionMode):
    """Puts together what is recorded within each torch function that the model calls; and what is between them."""

    def __init__(self, recorded: list[RecordedCall]) -> None:
        super().__init__()
        self._recorded = recorded
        self._seen = 0
        self._calls: list[TorchCall] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self._take_loose()
        result = func(*args, **(kwargs or {}))
        inside = self._take()
        given, made = _briefs_of(args, kwargs or {}), _briefs_of(result)
        if inside and _floating(made):
            name = _spelled(func)
            kernels = [_kernel(call) for call in inside]
            if name == "scaled_dot_product_attention":
                kernels = [_fused_attention(kernels, given, made)]
            self._calls.append(TorchCall(name, inside[0].module, _floating(given), _floating(made), kernels))
        return result

    def all_calls(self) -> list[TorchCall]:
        """The calls in order."""
        self._take_loose()
        return self._calls

    def _take(self) -> list[RecordedCall]:
        taken, self._seen = self._recorded[self._seen :], len(self._recorded)
        return taken

    def _take_loose(self) -> None:
        """Operators outside any torch function are a call without a result of its own."""
        loose = self._take()
        if loose:
            kernels = [_kernel(call) for call in loose]
            self._calls.append(TorchCall(_spelled(loose[0].func), loose[0].module, kernels[0].dtypes, kernels=kernels))


def _kernel(call: RecordedCall) -> TracedKernel:
    return TracedKernel(
        counted(call),
        given=(*tensor_specs(call.args), *tensor_specs(call.kwargs)),
        made=tuple(tensor_specs(call.out)),
        promotes=torch.Tag.pointwise in call.func.tags,
    )


def _fused_attention(
    kernels: list[TracedKernel], given: tuple[TensorSpec, ...], made: tuple[TensorSpec, ...]
) -> TracedKernel:
    """Attention as one kernel in the dtype that comes out.

    The GPU chooses the kernel; without one torch falls back to plain products in fp32, which no GPU would run.
    """
    dtype = made[0].dtype
    found = CountedCall(
        "scaled_dot_product_attention",
        short_dtype(dtype),
        contraction_flops=sum(kernel.flops for kernel in kernels),
        other_flops=sum(kernel.counted.other_flops or 0.0 for kernel in kernels),
        moved_bytes=sum(math.prod(spec.shape) for spec in (*given[:3], *made[:1])) * dtype.itemsize,
    )
    return TracedKernel(found, tuple(spec._replace(dtype=dtype) for spec in given), made)


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


def _check(model: Any, device_type: str) -> None:
    if device_type not in DEVICE_TYPES:
        raise UsageError(
            f"autocast cannot be traced on {str(device_type)[:30]!r}",
            why="it can be traced on cpu and cuda",
            next="use one of these",
        )
    if not isinstance(model, torch.nn.Module):
        raise UsageError(
            f"a {type(model).__name__} is not a torch.nn.Module",
            why="its weights must be known, so that they can be moved to the device",
            next="wrap the function in a module",
        )


def _briefs_of(*values: Any) -> tuple[TensorSpec, ...]:
    return tuple(spec for value in values for spec in tensor_specs(to_specs(value)))


def _floating(found: Iterable[TensorSpec]) -> tuple[str, ...]:
    """The dtypes of real and complex numbers among them: a transform gives complex ones."""
    numbers = (spec.dtype for spec in found if spec.dtype.is_floating_point or spec.dtype.is_complex)
    return tuple(map(short_dtype, numbers))


def _spelled(func: Any) -> str:
    name = getattr(func, "__name__", str(func)).split(".")[0].strip("_")
    return {"rsub": "sub", "radd": "add", "iadd": "add", "rmul": "mul", "truediv": "div"}.get(name, name)
