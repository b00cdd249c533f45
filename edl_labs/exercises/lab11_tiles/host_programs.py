"""Host code as evidence: which kernels a function launches on tensors that have a shape and no values.

The function runs in the student's process. Its tensors are on torch's meta device, so it cannot compute the answer.
What crosses is plain data: the tensors that it allocated, its launches, and which tensor it returned.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from edl_labs.errors import EdlError
from edl_labs.virtual.tiles import recorded_launches

_ALLOCATIONS = frozenset({"empty", "empty_like", "new_empty", "empty_strided", "zeros", "zeros_like", "new_zeros"})
_VIEWS = frozenset({"view", "_unsafe_view", "t", "transpose", "permute", "unsqueeze", "squeeze", "detach", "alias"})
_MOST_LAUNCHES = 100  # a lab's host code launches one to three kernels


class HostError(EdlError):
    """Host code does something else than to allocate tensors and to launch kernels."""


class HostProgram:
    """What a host function did: tensors in the order of their allocation, and launches."""

    def __init__(self, tensors: Mapping[str, Any]) -> None:
        self._names: dict[int, str] = {}
        self._kept: list[Any] = []  # an address is a name only while its tensor lives
        self.allocated: list[dict[str, Any]] = []
        self.launches: list[dict[str, Any]] = []
        self.texts: dict[str, str] = {}
        for name, tensor in tensors.items():
            self.keep(name, tensor)

    def keep(self, name: str, tensor: Any) -> None:
        """Know the storage of a tensor by a name."""
        self._kept.append(tensor)
        self._names[tensor.untyped_storage()._cdata] = name

    def allocate(self, tensor: Any, *, zeros: bool) -> None:
        """Note a tensor that the host made."""
        name = f"buffer {len(self.allocated)}"
        dtype = str(tensor.dtype).removeprefix("torch.")
        elements = _stored_elements(tensor)
        self.allocated.append({"name": name, "elements": elements, "dtype": dtype, "zeros": zeros})
        self.keep(name, tensor)

    def launch(self, kernel: Any, grid: Any, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> None:
        """Note a launch; `grid` is a number, a tuple, or a function of the named arguments."""
        if len(self.launches) >= _MOST_LAUNCHES:
            raise HostError(
                f"Your host function launches more than {_MOST_LAUNCHES} kernels.",
                why="each launch takes microseconds on a GPU",
                next="let the grid of one launch cover the work",
            )
        grid = grid(dict(named)) if callable(grid) else grid
        counts = [int(count) for count in (grid if isinstance(grid, tuple | list) else (grid,))]
        self.texts |= kernel.texts()
        entry = {"kernel": str(kernel.__name__), "grid": counts, "arguments": [self._plain(one) for one in arguments]}
        self.launches.append({**entry, "named": {name: self._plain(one) for name, one in named.items()}})

    def name_of(self, tensor: Any, *, what: str) -> str:
        """The name of a tensor that the program knows."""
        name = self._names.get(tensor.untyped_storage()._cdata) if hasattr(tensor, "untyped_storage") else None
        if name is None:
            raise HostError(
                f"{what} is a {type(tensor).__name__}, not one of the tensors of this call.",
                why="the function may pass and return only tensors that it received or allocated",
                next="allocate the output with torch.empty or torch.empty_like",
            )
        return name

    def _plain(self, value: Any) -> Any:
        """An argument as plain data."""
        if value is None or isinstance(value, bool | int | float):
            return value
        name = self.name_of(value, what="An argument of a launch")
        if value.storage_offset():
            raise HostError(
                f"An argument of a launch is a slice that begins inside {name}.",
                why="the kernel is checked with whole tensors",
                next="pass the tensor itself, and the offset as an integer",
            )
        return {"tensor": name}


def host_evidence(function: Callable[..., Any], tensors: Mapping[str, Any], more: tuple[Any, ...]) -> dict[str, Any]:
    """What `function(*tensors, *more)` did, as text, with the texts of the kernels that it launched."""
    program = HostProgram(tensors)
    with recorded_launches(program.launch), _meta_only(program):
        returned = function(*tensors.values(), *more)
    plain: dict[str, Any] = {"allocated": program.allocated, "launches": program.launches}
    plain["returned"] = program.name_of(returned, what="What the function returned")
    texts = list(program.texts.values())
    return {"source": texts, "ran": texts, "program": json.dumps(plain)}


def meta_tensor(shape: tuple[int, ...], dtype: str, strides: tuple[int, ...] | None = None) -> Any:
    """A tensor with shape, strides and dtype, and without values."""
    import torch

    kind = getattr(torch, dtype)
    if strides is None:
        return torch.empty(shape, dtype=kind, device="meta")
    return torch.empty_strided(shape, strides, dtype=kind, device="meta")


def _stored_elements(tensor: Any) -> int:
    return int(tensor.untyped_storage().nbytes() // tensor.element_size())


def _meta_only(program: HostProgram) -> Any:
    """A torch mode in which host code allocates on the meta device, and does nothing else with tensors."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class MetaOnly(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name = func.__name__.partition(".")[0]
            if name in _VIEWS:
                return func(*args, **(kwargs or {}))
            if name not in _ALLOCATIONS:
                raise _computes(name)
            made = func(*args, **{**(kwargs or {}), "device": "meta", "pin_memory": False})
            program.allocate(made, zeros="zeros" in name)
            return made

    return MetaOnly()


def _computes(name: str) -> HostError:
    name = "item" if name == "_local_scalar_dense" else name
    return HostError(
        f"Your host function calls torch's `{name}` on a tensor.",
        why="in the check, tensors have a shape but no values, so the host may only allocate and launch",
        next="allocate with torch.empty, torch.empty_like or torch.zeros, and compute in the kernel",
    )
