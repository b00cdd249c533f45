"""Watches a torch run: every operation below autograd, with shapes, memory, module and direction, at little cost.

Tensors may be real, fake (FakeTensorMode) or on meta: none of the facts needs a value. While the model runs only plain
facts are noted; what they amount to is worked out afterwards. An operation of the
backward pass belongs to the module that was running when its autograd node was made, which the node's sequence number
tells.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any, NamedTuple

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode

from edl_labs.roofline.operators.contractions import RAW, is_sparse, sparse_flops, stored_bytes

_NO_WORK = {
    *("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "resize_", "set_", "detach_"),
    *("_unsafe_view", "_reshape_alias", "lift_fresh", "alias", "is_same_size", "_local_scalar_dense", "equal"),
    *("_fused_sdp_choice", "_nested_tensor_size", "_nested_tensor_strides", "_nested_tensor_storage_offsets"),
    *("record_stream", "_has_compatible_shallow_copy_type", "_version", "is_pinned", "squeeze_", "unsqueeze_", "t_"),
    "is_coalesced",
}
_NORMS = {
    *("native_layer_norm", "native_group_norm", "native_batch_norm", "_native_batch_norm_legit"),
    "_native_batch_norm_legit_no_training",
    *("_batch_norm_with_update", "native_group_norm_backward"),
}


class TensorSpec(NamedTuple):
    """The recorded facts of a tensor, never its values."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    stride: tuple[int, ...]
    place: int
    is_cuda: bool


class RecordedCall(NamedTuple):
    """One operation that ran: arguments and results with a `TensorSpec` for each tensor, module and direction."""

    func: Any
    args: Any
    kwargs: Any
    out: Any
    module: str
    is_backward: bool
    raw_flops: tuple[int | None, float | None] | None
    tf32: bool


class Recorder(TorchDispatchMode):
    """Notes each operation as a `RecordedCall`; `modules` maps each module of the model to its name."""

    supports_higher_order_operators = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # torch would wrap each call in a guard against compiling; compiled models are unwrapped before they get here.
        return False

    def __init__(self, modules: dict[torch.nn.Module, str]) -> None:
        super().__init__()
        self.calls: list[RecordedCall] = []
        self.is_backward = False
        self._names = modules
        self._depth = 0
        self._handles: list[Any] = []
        self._kinds: dict[Any, str] = {}
        self._stack: list[str] = [""]
        self._since = [torch.autograd._get_sequence_nr()]
        self._owners = [""]

    def __enter__(self) -> Recorder:
        # A composite operator enters the recorder once more while it is taken apart; modules are watched once.
        if self._depth == 0:
            hooks = torch.nn.modules.module
            self._handles = [
                hooks.register_module_forward_pre_hook(self._enter_module),
                hooks.register_module_forward_hook(self._leave_module, always_call=True),
            ]
        self._depth += 1
        super().__enter__()
        return self

    def __exit__(self, *args: Any) -> None:
        super().__exit__(*args)
        self._depth -= 1
        if self._depth == 0:
            for handle in self._handles:
                handle.remove()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        kind = self._kinds.get(func)
        if kind is None:
            kind = self._kinds[func] = _kind(func)
        if kind == "skip":
            return func(*args, **kwargs)
        if kind == "composite":
            with self:
                found = func.decompose(*args, **kwargs)
            if found is not NotImplemented:
                return found
        out = func(*args, **kwargs)
        if kind == "norm":
            out = _in_true_dtypes(func, args, out)
        raw: tuple[int | None, float | None] | None = None
        if kind == "raw":
            raw = RAW[getattr(func, "_overloadpacket", func)](args, kwargs, out)
        elif any(map(is_sparse, args)):
            raw = sparse_flops(func, args)
        self.calls.append(
            RecordedCall(
                func,
                tuple([spec(arg) if isinstance(arg, torch.Tensor) else to_specs(arg) for arg in args]),
                to_specs(kwargs) if kwargs else {},
                to_specs(out),
                self._module(),
                self.is_backward,
                raw,
                _is_tf32(func),
            )
        )
        return out

    def _module(self) -> str:
        if not self.is_backward or len(self._stack) > 1:
            return self._stack[-1]
        node = torch._C._current_autograd_node()
        if node is None:
            return ""
        return self._owners[max(0, bisect_right(self._since, node._sequence_nr()) - 1)]

    def _enter_module(self, module: torch.nn.Module, _: Any) -> None:
        # A module that the model does not register is work of the one that runs it.
        self._stack.append(self._names.get(module, self._stack[-1]))
        self._changed()

    def _leave_module(self, module: torch.nn.Module, _: Any, __: Any) -> None:
        if len(self._stack) > 1:
            self._stack.pop()
        self._changed()

    def _changed(self) -> None:
        self._since.append(torch.autograd._get_sequence_nr())
        self._owners.append(self._stack[-1])


def to_specs(value: Any) -> Any:
    """`value` with a TensorSpec in the place of each tensor, in tuples, lists and dicts."""
    if isinstance(value, torch.Tensor):
        return spec(value)
    if isinstance(value, (tuple, list)):
        return tuple([to_specs(item) for item in value])
    if isinstance(value, dict):
        return {name: to_specs(item) for name, item in value.items()}
    return value


def spec(tensor: torch.Tensor) -> TensorSpec:
    """The facts of one tensor."""
    if is_sparse(tensor):
        # As many elements as its values and their places take: what is moved counts.
        return TensorSpec(
            (stored_bytes(tensor) // tensor.element_size(),), tensor.dtype, (1,), id(tensor), tensor.is_cuda
        )
    try:
        # A fake tensor has a storage of its own, and no address.
        address = 0 if isinstance(tensor, FakeTensor) else tensor.data_ptr()
        place = address or hash((tensor.untyped_storage()._cdata, tensor.storage_offset()))
        return TensorSpec(tensor.shape, tensor.dtype, tensor.stride(), place, tensor.is_cuda)
    except (RuntimeError, NotImplementedError):
        # Nested and opaque tensors have no shape or no storage of their own.
        return TensorSpec((tensor.numel(),), tensor.dtype, (1,), id(tensor), tensor.is_cuda)


def _kind(func: Any) -> str:
    if getattr(func, "_overloadpacket", func) in RAW:
        return "raw"
    if not isinstance(func, torch._ops.OpOverload):
        return "count"
    space, _, name = func._schema.name.partition("::")
    if func.is_view or space == "prim" or name in _NO_WORK or name.startswith("sym_"):
        return "skip"
    key = torch._C.DispatchKey.CompositeImplicitAutograd
    if func.has_kernel_for_dispatch_key(key):
        return "composite"
    return "norm" if name in _NORMS else "count"


def _in_true_dtypes(func: Any, args: Any, out: Any) -> Any:
    """A fake norm's results in the dtypes of the real kernels, where torch's fakes differ: under autocast.

    The CPU keeps statistics in fp32 beside parameters wider than the input; a gradient has its input's dtype.
    """
    given = args[0]
    if not isinstance(given, FakeTensor):
        return out
    if "backward" in func._schema.name:
        return (None if out[0] is None else out[0].to(args[1].dtype), *out[1:])
    mixed = any(arg.dtype != given.dtype for arg in args[1:] if isinstance(arg, torch.Tensor))
    if given.device.type != "cpu" or not mixed:
        return out
    return (out[0], *(statistic.float() for statistic in out[1:]))


def _is_tf32(func: Any) -> bool:
    name = str(getattr(func, "_overloadpacket", func))
    if "mm" not in name and "conv" not in name:
        return False
    backends = torch.backends
    return bool(backends.cudnn.allow_tf32 if "conv" in name else backends.cuda.matmul.allow_tf32)
