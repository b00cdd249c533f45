"""Recording: each operator that runs is noted with the numbers of its tensors, backward passes included."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from edl_labs.graph.tensor_programs.operator_table import HOST_READ, operator
from edl_labs.graph.tensor_programs.program_text import (
    MOST_CONSTANTS,
    MOST_OPERATORS,
    ProgramError,
    ProgramText,
    plain_argument,
    tensors_of,
)

_Place = tuple[Any, ...]


def record(function: Callable[..., Mapping[str, Any]], inputs: Mapping[str, torch.Tensor]) -> str:
    """The program of `function(**inputs)`, which returns its outputs by name: JSON text for `play`.

    Control flow that depends on values is unrolled as it ran here. ProgramError where an operator has no place in a
    program, or where a tensor of more than a few elements comes from outside.
    """
    recorder = Recorder(inputs)
    with recorder.recording():
        outputs = function(**inputs)
    return recorder.text(outputs)


class Recorder(TorchDispatchMode):
    """Notes operators while `recording()` is entered; `inputs` are known by name.

    `most_constants` bounds the elements of tensors that come from elsewhere.
    """

    def __init__(self, inputs: Mapping[str, torch.Tensor], *, most_constants: int = MOST_CONSTANTS) -> None:
        super().__init__()
        self._most_constants = most_constants
        self._program = ProgramText()
        self._count = 0
        self._constants = 0
        self._numbers: dict[_Place, int] = {}
        self._of_storage: dict[int, list[_Place]] = {}
        self._kept: list[Any] = []  # constants stay, so that no other tensor gets their address
        for name, tensor in inputs.items():
            self._program.inputs.append([name, _dtype(tensor), list(tensor.shape)])
            self._new_number(tensor)

    @contextmanager
    def recording(self) -> Iterator[Recorder]:
        """Note what runs inside."""
        with _HostReads(self._note_host_read), self:
            yield self

    def section(self, name: str) -> None:
        """What runs from here on belongs to `name`: a step, say."""
        self._program.steps.append(["section", name])

    def text(self, outputs: Mapping[str, Any]) -> str:
        """The program that ran, with its outputs."""
        missing = [name for name, tensor in outputs.items() if not isinstance(tensor, torch.Tensor)]
        if missing:
            kind = type(outputs[missing[0]]).__name__
            raise ProgramError(
                f"{missing[0]} is a {kind}, not a tensor.",
                why="a program must return tensors",
                next="return the tensor itself, without .item() or float()",
            )
        self._program.outputs = {name: self._number(tensor.detach()) for name, tensor in outputs.items()}
        return self._program.to_text()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = _name(func)
        if name.startswith("profiler::"):
            return func(*args, **kwargs)  # optimizers name their steps for profilers
        if name == "_reshape_alias.default":
            func, args = torch.ops.aten.as_strided.default, (*args, args[0].storage_offset())
            name = "as_strided.default"  # the same, with its bounds checked
        if func in _COMPARISONS:
            return self._note_comparison(func, args, kwargs)
        operator(name)
        if len(self._program.steps) >= MOST_OPERATORS:
            raise ProgramError(
                f"The function ran more than {MOST_OPERATORS} operators.",
                why="a program of this size cannot be recorded",
                next="use operations on whole tensors, not on single elements",
            )
        plain = [plain_argument(one, self._number) for one in args]
        named = {key: plain_argument(one, self._number) for key, one in kwargs.items() if key not in _ELSEWHERE}
        result = func(*args, **kwargs)
        numbers = [self._number_of_result(one) for one in tensors_of(result)]
        value = result if func is torch.ops.aten._local_scalar_dense.default else None
        self._program.steps.append([name, plain, named, numbers, plain_argument(value, self._number)])
        return result

    def _note_comparison(self, func: Any, args: Any, kwargs: Any) -> bool:
        """What gives a bool is noted as what it does: elements are compared, and the host reads whether all fit."""
        result = bool(func(*args, **kwargs))
        if args[0].shape == args[1].shape or func is not torch.ops.aten.equal.default:
            with self:
                torch.ops.aten._local_scalar_dense(_COMPARISONS[func](*args, **kwargs).all())
        return result

    def _note_host_read(self, tensor: torch.Tensor) -> None:
        number = self._number(tensor.detach())
        self._program.steps.append([f"{HOST_READ}.default", [{"tensor": number}], {}, [], None])

    def _number_of_result(self, tensor: torch.Tensor) -> int:
        known = self._numbers.get(_place(tensor))
        return self._new_number(tensor) if known is None else known

    def _number(self, tensor: torch.Tensor) -> int:
        """The number of a tensor: that of the one with the same memory and form."""
        place = _place(tensor)
        if place in self._numbers:
            return self._numbers[place]
        others = self._of_storage.get(tensor.untyped_storage()._cdata, [])
        base = next((one for one in others if one[1] == tensor.dtype), None)
        number = self._new_number(tensor)
        if base is None:
            self._add_constant(number, tensor)
        else:
            view = [{"tensor": self._numbers[base]}, list(tensor.shape), list(tensor.stride()), tensor.storage_offset()]
            self._program.steps.append(["as_strided.default", view, {}, [number], None])
        return number

    def _add_constant(self, number: int, tensor: torch.Tensor) -> None:
        self._constants += tensor.numel()
        if self._constants > self._most_constants:
            raise ProgramError(
                f"A tensor of the shape {tuple(tensor.shape)} comes from outside the function.",
                why="a program may use only its inputs, and constants with a few elements",
                next="create it inside the function, from the arguments",
            )
        self._kept.append(tensor)
        values = [plain_argument(value, self._number) for value in tensor.detach().reshape(-1).tolist()]
        self._program.constants.append([number, _dtype(tensor), list(tensor.shape), values])

    def _new_number(self, tensor: torch.Tensor) -> int:
        number, place = self._count, _place(tensor)
        self._count += 1
        storage = tensor.untyped_storage()
        if storage._cdata not in self._of_storage:
            self._of_storage[storage._cdata] = []
            weakref.finalize(storage, self._end, storage._cdata, number).atexit = False
        self._of_storage[storage._cdata].append(place)
        self._numbers[place] = number
        return number

    def _end(self, storage: int, number: int) -> None:
        for place in self._of_storage.pop(storage, []):
            self._numbers.pop(place, None)
        self._program.steps.append(["end", number])


class _HostReads(TorchFunctionMode):
    """Notes the ways to a tensor's values that are no operators."""

    _WAYS = frozenset(
        {
            *(torch.Tensor.tolist, torch.Tensor.numpy, torch.Tensor.__array__, torch.Tensor.__repr__),
            torch.Tensor.__dlpack__,
        }
    )

    def __init__(self, note: Callable[[torch.Tensor], None]) -> None:
        super().__init__()
        self._note = note

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in self._WAYS:
            self._note(args[0])
        return func(*args, **(kwargs or {}))


def _is_close(
    one: torch.Tensor, other: torch.Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> torch.Tensor:
    """As torch.isclose; its defaults are torch's, which are not among the arguments."""
    is_same = one == other
    if one.is_floating_point():
        is_same = torch.logical_or(is_same, (one - other).abs() <= atol + rtol * other.abs())
    return torch.logical_or(is_same, torch.logical_and(one != one, other != other)) if equal_nan else is_same


_COMPARISONS: dict[Any, Callable[..., torch.Tensor]] = {
    torch.ops.aten.equal.default: torch.eq,
    torch.ops.aten.allclose.default: _is_close,
}
"""Operators that return a bool, and the value with which they compare elements."""

_ELSEWHERE = frozenset({"device", "layout", "pin_memory", "non_blocking"})
"""Arguments that say where a tensor is stored, not what it contains."""


def _name(func: Any) -> str:
    space, _, name = func._schema.name.partition("::")
    if space != "aten":
        return str(func._schema.name)
    return f"{name}.{func._schema.overload_name or 'default'}"


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _place(tensor: torch.Tensor) -> _Place:
    return (
        tensor.untyped_storage()._cdata,
        tensor.dtype,
        tensor.storage_offset(),
        tuple(tensor.shape),
        tuple(tensor.stride()),
    )
