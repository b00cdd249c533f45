"""Evaluates a kernel of a parsed source on tensors: no code of its author runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from edl_labs.virtual.tiles.engine import Engine
from edl_labs.virtual.tiles.kernel_parameters import bind
from edl_labs.virtual.tiles.kernel_source import KernelFunction, KernelModule
from edl_labs.virtual.tiles.language import KernelTracer
from edl_labs.virtual.tiles.launch_record import LaunchRecord
from edl_labs.virtual.tiles.program import Symbol, TileProgram, operations_of
from edl_labs.virtual.tiles.tile_errors import TileError, refuse
from edl_labs.virtual.tiles.tile_memory import Storage
from edl_labs.virtual.tiles.tile_types import (
    BF16,
    E4M3,
    E5M2,
    FP16,
    FP32,
    FP64,
    FROM_ARRAY,
    FROM_TORCH,
    INT1,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    Scalar,
    TileType,
)
from edl_labs.virtual.tiles.tile_values import Budget, Tile

_CHUNK_BYTES = 1 << 27  # of values that programs running together may have: some caches, little memory
_MOST_PROGRAM_BYTES = 1 << 30  # a judge's process has 1 GiB
_MOST_PROGRAMS = 1 << 20  # of a grid: the labs have some 10,000
_SIGNATURES = {
    "i1": INT1, "i8": INT8, "i16": INT16, "i32": INT32, "i64": INT64, "u8": UINT8, "fp16": FP16, "bf16": BF16,
    "fp32": FP32, "fp64": FP64, "fp8e4nv": E4M3, "fp8e5": E5M2,
}  # fmt: skip
Array = Any


class TensorArgument:
    """A tensor of a launch: its storage as a flat array, where it begins there, and its element type."""

    def __init__(self, flat: Array, start: int, scalar: Scalar, key: Any) -> None:
        self.flat, self.start, self.scalar, self.key = flat, start, scalar, key


def evaluate(
    module: KernelModule,
    kernel_name: str,
    grid: Sequence[int] | int,
    arguments: Mapping[str, Any],
    *,
    records: bool = True,
    budget: Budget | None = None,
) -> LaunchRecord:
    """Run a kernel on arrays, which it changes, and record what it did.

    TileError, before anything is changed, for a kernel that Triton refuses or an access outside of a tensor.

    >>> import numpy as np
    >>> from edl_labs.virtual.tiles import parse_kernels
    >>> source = "@jit\\ndef double(x_ptr, y_ptr):\\n    i = tl.program_id(0)\\n"
    >>> module = parse_kernels(source + "    tl.store(y_ptr + i, 2 * tl.load(x_ptr + i))")
    >>> x, y = np.arange(3.0, dtype=np.float32), np.zeros(3, np.float32)
    >>> print(evaluate(module, "double", (3,), {"x_ptr": x, "y_ptr": y}), y.tolist())
    double: 3 programs, 3 FLOP, x_ptr 12 B, y_ptr 12 B [0.0, 2.0, 4.0]
    """
    function, shape = module.kernel(kernel_name), _grid(grid)
    arguments = bind(function, [], dict(arguments), KernelTracer(module).value)
    tensors = {name: found for name, value in arguments.items() if (found := as_tensor(value)) is not None}
    program = _traced(module, function, arguments, tensors)
    budget = budget or Budget()
    storages, where = _storages(program, tensors, records=records)
    before = [one.flat.copy() if one.is_written else None for one in storages]
    try:
        engine = _run(program, storages, where, tensors, arguments, shape, budget, serial=program.serial)
        races = tuple(race for one in storages for race in one.races()) if records else ()
        if races and not program.serial:
            _restore(storages, before)
            plain, where = _storages(program, tensors, records=False)
            _run(program, plain, where, tensors, arguments, shape, budget, serial=True)
    except TileError:
        _restore(storages, before)
        raise
    traffic = tuple(one.traffic() for one in storages) if records else ()
    return LaunchRecord(
        kernel_name, shape, traffic, races, engine.dot_flops, engine.other_flops, program.peak_live_bytes(),
        program.tf32_lines, _dtype(program, tensors), int(engine.dots.sum()), int(engine.dots.max(initial=0)),
    )  # fmt: skip


def _dtype(program: TileProgram, tensors: Mapping[str, TensorArgument]) -> str:
    """That of the blocks that are multiplied; without a product, of the tensors. Where they differ, fp32."""
    factors = {op.options["source"] for op in operations_of(program.body) if op.name == "dot"}
    names = {
        "float16": "fp16",
        "bfloat16": "bf16",
        "float8e4nv": "fp8",
        "float8e5": "fp8",
        "int8": "int8",
        "uint8": "int8",
    }
    scalars = factors or {one.scalar for one in tensors.values() if one.scalar.is_float}
    kinds = {names.get(one.name, "fp32") for one in scalars}
    return kinds.pop() if len(kinds) == 1 else "fp32"


def _grid(grid: Any) -> tuple[int, int, int]:
    parts = list(grid) if isinstance(grid, tuple | list) else [grid]
    if not 1 <= len(parts) <= 3 or not all(isinstance(one, int | np.integer) and one >= 0 for one in parts):
        raise refuse(
            "A grid must consist of one to three whole numbers of 0 or more.",
            next="launch as in kernel[(cdiv(n, BLOCK),)](...)",
        )
    full = tuple(int(one) for one in [*parts, 1, 1][:3])
    if full[0] * full[1] * full[2] > _MOST_PROGRAMS:
        raise refuse(f"The grid has more than {_MOST_PROGRAMS:,} programs.", next="try a smaller input", kind="budget")
    return full  # type: ignore[return-value]


def as_tensor(value: Any) -> TensorArgument | None:
    """A NumPy array or a torch tensor on the CPU as an argument; None for anything else."""
    if isinstance(value, np.ndarray):
        return _array_argument(value)
    if hasattr(value, "untyped_storage"):
        return _torch_argument(value)
    return None


def _array_argument(value: Array) -> TensorArgument:
    root = value
    while isinstance(root.base, np.ndarray):
        root = root.base
    scalar = FROM_ARRAY.get(str(value.dtype))
    if scalar is None or root.dtype != value.dtype or not (root.flags.c_contiguous or root.flags.f_contiguous):
        raise refuse(
            f"This array of {value.dtype} cannot be passed to a kernel.", next="pass float32, float16 or integers"
        )
    flat = root.reshape(-1) if root.flags.c_contiguous else root.T.reshape(-1)
    start = (value.ctypes.data - root.ctypes.data) // value.itemsize
    return TensorArgument(flat, start, scalar, root.ctypes.data)


def _torch_argument(value: Any) -> TensorArgument:
    import torch

    name = str(value.dtype).removeprefix("torch.")
    scalar = FROM_TORCH.get(name) or FROM_ARRAY.get(name)
    if value.device.type != "cpu" or scalar is None:
        raise refuse(
            f"This tensor of {name} on {value.device} cannot be passed to a kernel.",
            next='move it to the CPU, or launch with on="cuda"',
        )
    stored = {"uint16": torch.int16, "uint8": torch.uint8}.get(scalar.stored, value.dtype)
    whole = torch.empty(0, dtype=stored).set_(value.untyped_storage())
    flat = whole.numpy().view(scalar.stored)
    return TensorArgument(flat, value.storage_offset(), scalar, value.untyped_storage().data_ptr())


def _traced(
    module: KernelModule, function: KernelFunction, arguments: dict[str, Any], tensors: Mapping[str, TensorArgument]
) -> TileProgram:
    tracer, scope = KernelTracer(module), dict(arguments)
    for name, value in scope.items():
        if name in tensors:
            scope[name] = tracer.parameter(TileType(tensors[name].scalar, (), pointer=True), name)
        elif isinstance(value, np.integer | np.floating | np.bool_):
            scope[name] = value.item()
        if name not in tensors and name not in function.constants and isinstance(scope[name], bool | int | float):
            scope[name] = tracer.parameter(TileType(argument_type(scope[name])))
        elif not isinstance(scope[name], bool | int | float | str | tuple | Scalar | Symbol | None):
            raise refuse(f"`{name}` is a {type(value).__name__}.", next="pass tensors and numbers")
    try:
        return tracer.trace(function, scope)
    except RecursionError:
        raise refuse(
            "The kernel is nested too deeply.", next="split it into parts, and give each part a name"
        ) from None


def compiled_for(module: KernelModule, kernel_name: str, parameters: Mapping[str, Any]) -> TileProgram:
    """The program of a kernel for types as Triton names them ("*fp32", "i32") and constants; TileError if refused.

    >>> from edl_labs.virtual.tiles import parse_kernels
    >>> compiled_for(parse_kernels("@jit\\ndef f(x): tl.store(x, 1)"), "f", {"x": "*fp32"}).written
    frozenset({'x'})
    """
    tracer, scope = KernelTracer(module), dict(parameters)
    for name, kind in parameters.items():
        if isinstance(kind, str):
            scalar = _SIGNATURES[kind.removeprefix("*")]
            pointer = kind.startswith("*")
            scope[name] = tracer.parameter(TileType(scalar, (), pointer=pointer), name if pointer else "")
    function = module.kernel(kernel_name)
    return tracer.trace(function, bind(function, [], scope, tracer.value))


def argument_type(value: bool | int | float) -> Scalar:
    """The type of a number that a launch passes."""
    if isinstance(value, bool):
        return INT1
    if isinstance(value, float):
        return FP32
    if INT32.limits[0] <= value <= INT32.limits[1]:
        return INT32
    if not INT64.limits[0] <= value <= INT64.limits[1]:
        raise refuse("An argument needs more than 64 bits.", next="pass smaller numbers")
    return INT64


def _storages(
    program: TileProgram, tensors: Mapping[str, TensorArgument], *, records: bool
) -> tuple[list[Storage], dict[str, int]]:
    storages: list[Storage] = []
    keys: dict[Any, int] = {}
    where = {}
    for name, one in tensors.items():
        key = (one.key, one.scalar) if one.flat.size else name
        if key not in keys:
            keys[key] = len(storages)
            storages.append(Storage(name, one.flat, one.scalar, is_written=False, records=records))
        where[name] = keys[key]
        storages[keys[key]].is_written |= name in program.written
    return storages, where


def _restore(storages: list[Storage], before: list[Any]) -> None:
    for storage, old in zip(storages, before, strict=True):
        if old is not None:
            storage.flat[...] = old


def _run(
    program: TileProgram,
    storages: list[Storage],
    where: Mapping[str, int],
    tensors: Mapping[str, TensorArgument],
    arguments: Mapping[str, Any],
    grid: tuple[int, int, int],
    budget: Budget,
    *,
    serial: bool,
) -> Engine:
    """All programs: as many at once as memory allows, or one after the other."""
    each = program.total_bytes()
    if each > _MOST_PROGRAM_BYTES:
        raise refuse("The values of one program need more than 1 GiB.", next="use smaller tiles", kind="budget")
    together = 1 if serial else max(1, _CHUNK_BYTES // max(1, each))
    engine = Engine(program, storages, grid, budget)
    env = {}
    for name, number in program.parameters.items():
        if name in tensors:
            env[number] = Tile(np.array([tensors[name].start]), None, np.array([where[name]]))
        else:
            with np.errstate(over="ignore"):  # 1e300 is infinite in fp32
                env[number] = Tile(np.array([arguments[name]]).astype(program.types[number].scalar.array))
    count = grid[0] * grid[1] * grid[2]
    for first in range(0, count, together):
        engine.run(program.body, dict(env), np.arange(first, min(first + together, count)))
    return engine
