"""Playing: the program runs on other inputs, and its operators, bytes and live memory are counted here."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from edl_labs.graph.tensor_programs.argument_checks import check_arguments
from edl_labs.graph.tensor_programs.operator_table import (
    FILLING,
    HOST_READ,
    UNFILLED,
    base_name,
    is_mutable,
    may_be_large,
    operator,
)
from edl_labs.graph.tensor_programs.played_program import Kernel, Played, Section
from edl_labs.graph.tensor_programs.program_text import (
    MOST_DEPTH,
    ProgramError,
    ProgramText,
    named_type,
    read_argument,
    tensors_of,
)

MOST_TENSOR_BYTES = 64 * 2**20  # a hundred times what an exercise's largest tensor has
MOST_LIVE_BYTES = 256 * 2**20  # a quarter of what the judge's process has
MOST_FLOPS = 5e10  # seconds of one core
MOST_MOVED_BYTES = 2e10  # likewise


def play(text: str, inputs: Mapping[str, Any]) -> Played:
    """Run a program of `record` on tensors of the recorded names, dtypes and shapes; they may be written into.

    ProgramError where the text is no program, names unknown operators or tensors, or asks for more memory or
    computing than MOST_TENSOR_BYTES, MOST_LIVE_BYTES and MOST_FLOPS.
    """
    import torch

    program = ProgramText.from_text(text)
    player = _Player(program, inputs)
    with torch.no_grad():
        for at, step in enumerate(program.steps):
            player.run(at, step)
    outputs = {name: player.tensor(number) for name, number in program.outputs.items()}
    return Played(
        *(outputs, player.sections, player.peak, player.has_changed_reads, player.made_since_input()),
        trace=player.trace,
        inputs_at={name: number for number, (name, *_) in enumerate(program.inputs)},
        outputs_at={name: player.memory_of(tensor) for name, tensor in outputs.items()},
        bytes_of=player.bytes_of,
    )


class _Player:
    """The tensors by number, who holds which memory, and the counts."""

    def __init__(self, program: ProgramText, inputs: Mapping[str, Any]) -> None:
        self.sections = [Section()]
        self.peak = 0
        self.has_changed_reads = False
        self.trace: list[Kernel] = []
        self.bytes_of: dict[int, int] = {}
        self._tensors: dict[int, Any] = {}
        self._owner: dict[int, int] = {}  # storage → its first tensor's number
        self._members: dict[int, list[int]] = {}
        self._sizes: dict[int, int] = {}
        self._ended: set[int] = set()
        self._live = self._flops = self._moved = self._made = 0
        self._made_before: dict[str, int] = {}  # the first use of an input
        self._last = _last_uses(program)
        self._due: dict[int, list[int]] = {}
        for number, place in self._last.items():
            self._due.setdefault(place, []).append(number)
        for number, (name, dtype, shape) in enumerate(program.inputs):
            self._tensors[number] = _matching(name, dtype, shape, inputs.get(name))
            storage = self._tensors[number].untyped_storage()
            self._owner[storage._cdata], self.bytes_of[number] = number, storage.nbytes()
        for number, dtype, shape, values in program.constants:
            self._tensors[number] = _constant(dtype, shape, values)
        self._from_inputs = set(self._owner)  # storages whose values follow from those of inputs
        self._named = {one.untyped_storage()._cdata: name for name, one in inputs.items()}

    def tensor(self, number: int) -> Any:
        """The tensor of a number; ProgramError where none was made."""
        if number not in self._tensors:
            raise ProgramError(
                "The program uses a tensor that no operator created.",
                why=f"there is no tensor with the number {number} at this point",
                next="run the cell again, and then the check",
            )
        return self._tensors[number]

    def memory_of(self, tensor: Any) -> int:
        """The number of the first tensor in this one's memory; below 0 for a constant's."""
        return self._owner.get(tensor.untyped_storage()._cdata, _OF_CONSTANTS)

    def made_since_input(self) -> dict[str, int]:
        """Elements that kernels made from the first use of an input on."""
        return {name: self._made - before for name, before in self._made_before.items()}

    def run(self, at: int, step: list[Any]) -> None:
        """One step of the program."""
        if step[0] == "section":
            self.sections.append(Section(step[1]))
        elif step[0] == "end":
            self._ended.add(step[1])
            self._let_go(step[1], at)
        else:
            self._operate(*step)
            for number in self._due.get(at, ()):
                self._let_go(self._owner_of(number), at)

    def _operate(self, name: str, plain: list[Any], named: dict[str, Any], numbers: list[int], value: Any) -> None:
        op = operator(name)
        args = [read_argument(one, self.tensor) for one in plain]
        kwargs = {key: read_argument(one, self.tensor) for key, one in named.items()}
        if base_name(name) == HOST_READ:
            self._read_on_host(args, value)
            return
        given = tensors_of([args, kwargs])
        storages = [one.untyped_storage()._cdata for one in given]
        for name_of_input in (self._named[one] for one in storages if one in self._named):
            self.sections[-1].inputs.add(name_of_input)
            self._made_before.setdefault(name_of_input, self._made)
        if may_be_large(op, [one.numel() for one in given], MOST_TENSOR_BYTES):
            self._refuse_if_large(name, op, args, kwargs)
        try:
            check_arguments(base_name(name), args, kwargs)
            result = op(*args, **kwargs)
        except Exception as error:
            first = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise ProgramError(
                f"The operator {name} does not run on these inputs.",
                why=first[:200],
                next="shapes and types must depend only on the arguments",
            ) from None
        if base_name(name) in UNFILLED:
            result.fill_(math.nan if result.is_floating_point() else 0)
        made = tensors_of(result)
        if len(made) != len(numbers):
            raise ProgramError(
                f"The operator {name} returned {len(made)} tensors, but {len(numbers)} were recorded.",
                why="the number of its results depends on tensor values",
                next="make shapes depend only on the arguments",
            )
        reads = frozenset(map(self.memory_of, given))
        is_kernel = self._count(op, args, kwargs, given, result, made)
        for number, tensor in zip(numbers, made, strict=True):
            self._hold(number, tensor)
        if is_kernel:
            written = [*made, *_written(op, args, kwargs)]
            is_filling = base_name(name) in FILLING and not (base_name(name) == "fill" and len(given) > 1)
            filled = [one for one in written if is_filling and _is_whole(one)]
            writes, fills = (frozenset(map(self.memory_of, one)) for one in (written, filled))
            has_lists = any(isinstance(one, list) and tensors_of(one) for one in args)
            self.trace.append(Kernel(base_name(name), reads, writes, has_lists, _waits(op, args), fills))
        if not self._from_inputs.isdisjoint(storages):
            self.sections[-1].host_reads += _waits(op, args)
            self._from_inputs.update(one.untyped_storage()._cdata for one in made)
            self._from_inputs.update(storages if is_mutable(op) else ())

    def _read_on_host(self, args: list[Any], value: Any) -> None:
        tensor = args[0] if args else None
        if tensor is not None:
            self.trace.append(Kernel(HOST_READ, frozenset({self.memory_of(tensor)}), frozenset(), False, is_read=True))
        if tensor is None or tensor.untyped_storage()._cdata not in self._from_inputs:
            return
        self.sections[-1].host_reads += 1
        here = tensor.item() if tensor.numel() == 1 else None
        if here is not None:
            self.sections[-1].read_values.append(float(here))
        recorded = read_argument(value, self.tensor)
        if recorded is not None and here != recorded and not (here != here and recorded != recorded):
            self.has_changed_reads = True

    def _hold(self, number: int, tensor: Any) -> None:
        self._tensors[number] = tensor
        storage = tensor.untyped_storage()
        owner = self._owner.get(storage._cdata)
        if owner is None:
            self._owner[storage._cdata] = owner = number
            self._members[owner] = []
            self._sizes[owner] = self.bytes_of[owner] = storage.nbytes()
            self._live += storage.nbytes()
            self.peak = max(self.peak, self._live)
            if self._live > MOST_LIVE_BYTES:
                raise _too_large(f"{self._live / 2**20:.0f} MiB of tensors are live at the same time")
        if owner in self._members and number not in self._members[owner]:
            self._members[owner].append(number)

    def _owner_of(self, number: int) -> int:
        tensor = self._tensors.get(number)
        return number if tensor is None else self._owner.get(tensor.untyped_storage()._cdata, number)

    def _let_go(self, owner: int, at: int) -> None:
        """Free memory whose tensors have had their last use, and that the recording let go of."""
        members = self._members.get(owner)
        if members is None or owner not in self._ended or any(self._last.get(one, -1) > at for one in members):
            return
        storage = self._tensors[owner].untyped_storage()._cdata
        self._owner.pop(storage, None)
        self._from_inputs.discard(storage)
        for number in self._members.pop(owner):
            self._tensors.pop(number, None)
        self._live -= self._sizes.pop(owner)

    def _count(self, op: Any, args: Any, kwargs: Any, given: list[Any], result: Any, made: list[Any]) -> bool:
        """Whether the operator is a kernel; then it is counted."""
        known = {one.untyped_storage()._cdata for one in given}
        fresh = [one for one in made if one.untyped_storage()._cdata not in known]
        if not fresh and not is_mutable(op):
            return False  # a view
        section, name = self.sections[-1], base_name(op._schema.name.partition("::")[2])
        if name in UNFILLED:
            return False
        before = section.moved_bytes
        section.operators[name] += 1
        section.conversions += name == "_to_copy" or len({one.dtype for one in [*given, *made] if _has_digits(one)}) > 1
        section.moved_bytes += sum(map(_distinct_bytes, [*given, *made]))
        self._made += sum(one.numel() for one in made)
        section.shapes += [(name, tuple(one.shape)) for one in made]
        flops = _flops(op, args, kwargs, result)
        section.contraction_flops += flops
        self._flops += flops
        self._moved += section.moved_bytes - before
        if self._flops > MOST_FLOPS or self._moved > MOST_MOVED_BYTES:
            raise _too_large(f"{self._flops:.0e} FLOPs and {self._moved:.0e} bytes moved")
        return True

    def _refuse_if_large(self, name: str, op: Any, args: Any, kwargs: Any) -> None:
        """Ask for the results' sizes on tensors without values, before any memory is taken."""
        for tensor in tensors_of(_shapes_of(op, args, kwargs)):
            size = tensor.numel() * tensor.element_size()
            if size > MOST_TENSOR_BYTES:
                raise _too_large(f"{name} creates a tensor of {size / 2**20:.0f} MiB")


def _too_large(what: str) -> ProgramError:
    return ProgramError(
        "The program is too large to be replayed.",
        why=what,
        next="compute in parts; no exercise needs that much memory",
    )


def _last_uses(program: ProgramText) -> dict[int, int]:
    """The place of the last step that reads each tensor; outputs stay."""
    last: dict[int, int] = {}
    for at, step in enumerate(program.steps):
        if step[0] not in ("end", "section"):
            last |= dict.fromkeys([*_numbers(step[1]), *_numbers(step[2]), *step[3]], at)
    return last | dict.fromkeys(program.outputs.values(), len(program.steps))


def _numbers(plain: Any, depth: int = MOST_DEPTH) -> Iterator[int]:
    if isinstance(plain, Mapping):
        if isinstance(plain.get("tensor"), int):
            yield plain["tensor"]
        plain = list(plain.values())
    if isinstance(plain, list) and depth:
        for one in plain:
            yield from _numbers(one, depth - 1)


def _matching(name: str, dtype: object, shape: object, tensor: Any) -> Any:
    if tensor is None or str(tensor.dtype) != f"torch.{dtype}" or list(tensor.shape) != shape:
        raise ProgramError(
            f"The program's input {name[:40]!r} does not match the input of this case.",
            why=f"it was recorded with the type {str(dtype)[:20]} and the shape {str(shape)[:60]}",
            next="do not change the inputs of the check",
        )
    return tensor


def _constant(dtype: object, shape: Any, values: Any) -> Any:
    import torch

    try:
        read = [read_argument(value, _no_tensor) for value in values]
        return torch.tensor(read, dtype=named_type("dtype", dtype)).reshape(shape)
    except (RuntimeError, TypeError, ValueError, OverflowError):
        raise ProgramError(
            "A constant of the program cannot be read.",
            why="its values do not match its type and shape",
            next="run the cell again, and then the check",
        ) from None


def _no_tensor(number: int) -> Any:
    raise TypeError(f"a constant names tensor {number}")


def _shapes_of(op: Any, args: Any, kwargs: Any) -> Any:
    import torch
    from torch.utils._pytree import tree_map_only

    def without_values(tensor: Any) -> Any:
        return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")

    try:
        return op(*tree_map_only(torch.Tensor, without_values, args), **_on_meta(op, kwargs, without_values))
    except Exception:  # what depends on values has no more elements than its inputs, or fails when it runs
        return []


def _on_meta(op: Any, kwargs: Any, without_values: Any) -> dict[str, Any]:
    import torch
    from torch.utils._pytree import tree_map_only

    found = tree_map_only(torch.Tensor, without_values, kwargs)
    makes_by_size = any(argument.name == "device" for argument in op._schema.arguments)
    return {**found, "device": torch.device("meta")} if makes_by_size else found


def _distinct_bytes(tensor: Any) -> int:
    """Of a tensor, without the elements that an expanded one repeats."""
    count = math.prod(size for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride)
    return int(count * tensor.element_size())


def _is_whole(tensor: Any) -> bool:
    """Whether a tensor has all of its memory."""
    return bool(_distinct_bytes(tensor) == tensor.untyped_storage().nbytes())


def _has_digits(tensor: Any) -> bool:
    """Whether it holds floats, and more than one: a lone number takes on the dtype of what it meets."""
    return bool(tensor.is_floating_point()) and tensor.numel() > 1


def _written(op: Any, args: list[Any], kwargs: dict[str, Any]) -> list[Any]:
    """The tensors of the arguments that an operator writes into."""
    named = {one.name: one for one in op._schema.arguments}
    pairs = [*zip(op._schema.arguments, args, strict=False), *((named[key], value) for key, value in kwargs.items())]
    return tensors_of([value for one, value in pairs if one.alias_info is not None and one.alias_info.is_write])


def _waits(op: Any, args: list[Any]) -> bool:
    """Whether the size of its result follows from values, so that a host has to know them before it goes on."""
    import torch

    name = base_name(op._schema.name.partition("::")[2])
    masks = args[1] if name == "index" and len(args) > 1 else []
    return name in ("nonzero", "masked_select") or any(one is not None and one.dtype == torch.bool for one in masks)


def _flops(op: Any, args: Any, kwargs: Any, result: Any) -> int:
    from torch.utils.flop_counter import flop_registry

    count = flop_registry.get(op.overloadpacket)
    if count is None:
        own = _PRODUCTS.get(base_name(op._schema.name.partition("::")[2]))
        return 0 if own is None else int(2 * own(*tensors_of(args)))
    return int(count(*args, **kwargs, out_val=result))


_PRODUCTS: dict[str, Callable[..., int]] = {
    "mv": lambda a, b: a.numel(),
    "addmv": lambda start, a, b: a.numel(),
    "dot": lambda a, b: a.numel(),
    "vdot": lambda a, b: a.numel(),
    "addr": lambda start, a, b: a.numel() * b.numel(),
    "addbmm": lambda start, a, b: a.numel() * b.shape[-1],
    "_addmm_activation": lambda start, a, b: a.numel() * b.shape[-1],
}
"""Multiplications of products that torch's own counter of FLOPs does not know, by the tensors of their arguments."""
_OF_CONSTANTS = -1  # no operation has this number
