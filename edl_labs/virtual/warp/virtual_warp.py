"""VirtualWarp: launches kernels over a grid of blocks, and records what each of their threads does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from edl_labs.virtual.errors import VirtualWarpError, shown
from edl_labs.virtual.program import MAX_REPLAYED, Entry
from edl_labs.virtual.quantities import MAX_NAME
from edl_labs.virtual.warp.kernel_threads import Dim3, KernelArray, KernelThread, Step
from edl_labs.virtual.warp.program import (
    ITEMSIZES,
    MAX_BLOCK_THREADS,
    MAX_ELEMENTS,
    MAX_LAUNCHED,
    MAX_SHARED_BYTES,
    elements_of,
)
from edl_labs.virtual.warp.replay import WarpReplay, replay_warp

_MAX_OFFSET = 256  # cudaMalloc's addresses are multiples of it; beyond, an offset says nothing new


class LaunchRecord:
    """One launch while its threads run: their steps, with places in the text and elements that they touched."""

    def __init__(self, machine: VirtualWarp, kernel: Callable[..., Any], grid: Dim3, block: Dim3) -> None:
        self.grid, self.block = grid, block
        self.first_line = getattr(getattr(kernel, "__code__", None), "co_firstlineno", 1)
        self.lines: dict[tuple[int, ...], int] = {}
        self.root: Any = None
        self._machine = machine
        self._shared: list[tuple[tuple[int, ...], str]] = []
        self._paths: dict[tuple[Step, ...], int] = {}
        self._threads: list[int] = []
        self._places: list[int] = []

    @property
    def running(self) -> KernelThread | None:
        """The thread that runs now."""
        return self._machine.running

    def charge(self) -> None:
        """Count a step; VirtualWarpError where there are more than a replay allows."""
        self._machine.steps += 1
        if self._machine.steps > MAX_REPLAYED:
            raise VirtualWarpError(
                f"the kernels take more than {MAX_REPLAYED:,} steps",
                why="a loop may never end, or the grid may be larger than the data needs",
                next="check the bounds of the loops, the grid and the block",
            )

    def shared_array(self, thread: KernelThread, shape: Any, dtype: str) -> KernelArray:
        """The thread's next shared array, which all threads of its block have in common."""
        size = _shape(shape, f"{thread}'s shared array")
        number = thread.shared_count
        thread.shared_count += 1
        if number == len(self._shared):
            _require_dtype(dtype)
            self._shared.append((size, dtype))
            held = sum(elements_of(one) * ITEMSIZES[name] for one, name in self._shared)
            if held > MAX_SHARED_BYTES:
                why = f"a block has {MAX_SHARED_BYTES // 1024} KiB of shared memory unless the launch requests more"
                raise VirtualWarpError(
                    f"the block's shared arrays have {held:,} bytes", why=why, next="use smaller tiles"
                )
        if self._shared[number] != (size, dtype):
            before = self._shared[number]
            raise VirtualWarpError(
                f"{thread} declares a shared array of {size} {dtype}, but other threads declare {before[0]} "
                f"{before[1]}",
                why="shared arrays belong to the block, so all its threads must declare the same ones",
                next="call cuda.shared.array with constants, before any code that depends on the thread",
            )
        return KernelArray(f"shared{number}", size, dtype, number=-1 - number, of=self._machine)

    def run(self, kernel: Callable[..., Any], arguments: Sequence[Any], block: Dim3, thread: Dim3) -> None:
        """Run the kernel as one thread."""
        import sys

        one = KernelThread(self, block, thread)
        self._machine.running, self.root = one, sys._getframe()
        try:
            kernel(one, *arguments)
        finally:
            self._machine.running = self.root = None
        self._threads.append(self._paths.setdefault(tuple(one.steps), len(self._paths)))
        self._places += one.places

    def entry(self, name: str) -> Entry:
        """The launch as plain data: places in the text become numbers, in their order."""
        rank = {pc: number for number, pc in enumerate(sorted(self.lines))}
        paths = [[[step[0], rank[step[1]], *step[2:]] for step in path] for path in self._paths]
        return {
            "op": "launch",
            "kernel": name,
            "grid": [*self.grid],
            "block": [*self.block],
            "shared": [[[*shape], dtype] for shape, dtype in self._shared],
            "lines": [self.lines[pc] for pc in sorted(self.lines)],
            "paths": paths,
            "threads": self._threads,
            "places": self._places,
        }


class VirtualWarp:
    """A device that runs kernels thread by thread and records them; its replay says what their warps ask of memory.

    A kernel is a function whose first parameter is its thread, with the names of Numba's `cuda`.

    >>> def doubled(cuda, src, dst):
    ...     i = cuda.grid(1)
    ...     if i < len(src):
    ...         dst[i] = 2 * src[i]
    >>> gpu = VirtualWarp()
    >>> src, dst = gpu.array("src", 100), gpu.array("dst", 100)
    >>> gpu.launch(doubled, src, dst, grid=4, block=32)
    >>> print(gpu.replay())
    line 4: load of src, 4 requests, sectors per request 3.25, best 3.25
    line 4: store of dst, 4 requests, sectors per request 3.25, best 3.25
    """

    def __init__(self) -> None:
        self.running: KernelThread | None = None
        self.steps = 0
        self._program: list[Entry] = []
        self._arrays: dict[str, KernelArray] = {}
        self._given: dict[str, Any] = {}

    def array(self, name: str, values: Any, dtype: str = "float32", *, offset_bytes: int = 0) -> KernelArray:
        """An array in global memory: of a shape, or of numbers. It starts `offset_bytes` behind a multiple of 256.

        `dtype` is int8, float16, float32, int32, float64, or CUDA's vectors of float32: float2 and float4, one access
        each. Where no numbers are given, elements hold their own number.
        """
        if type(name) is not str or not 0 < len(name) <= MAX_NAME or name in self._arrays:
            why = "a name must be a short string that no other array has"
            raise VirtualWarpError(
                f"an array cannot be called {shown(name)}", why=why, next='use a new name, as in array("src", (64, 64))'
            )
        _require_dtype(dtype)
        is_shape = isinstance(values, int | tuple) and not isinstance(values, bool)
        shape = _shape(values if is_shape else getattr(values, "shape", None) or len(values), f"array {name}")
        itemsize = min(ITEMSIZES[dtype], 16)
        if type(offset_bytes) is not int or not 0 <= offset_bytes < _MAX_OFFSET or offset_bytes % itemsize:
            why = f"elements of {itemsize} bytes must start at a multiple of {itemsize} bytes"
            raise VirtualWarpError(
                f"{name} cannot start at {shown(offset_bytes)}", why=why, next="use offset_bytes=0, for example"
            )
        if not is_shape:
            self._given[name] = values
        self._program.append(
            {"op": "array", "name": name, "shape": [*shape], "dtype": dtype, "offset_bytes": offset_bytes}
        )
        self._arrays[name] = KernelArray(name, shape, dtype, number=len(self._arrays), of=self)
        return self._arrays[name]

    def launch(self, kernel: Callable[..., Any], *arguments: Any, grid: Any, block: Any) -> None:
        """Run a kernel in every thread of every block. `grid` counts blocks, `block` threads: numbers, or (x, y, z)."""
        if self.running is not None:
            why = "only the host can launch kernels"
            raise VirtualWarpError(
                "a kernel launches another kernel", why=why, next="launch the kernels one after the other"
            )
        if not callable(kernel):
            raise VirtualWarpError(
                f"a kernel must be a function, got {shown(kernel)}",
                why="each thread calls it with its own `cuda` and the arguments of the launch",
                next="pass the function without calling it: gpu.launch(kernel, src, dst, grid=4, block=128)",
            )
        blocks, threads = _dim3(grid, "grid"), _dim3(block, "block")
        if threads.x * threads.y * threads.z > MAX_BLOCK_THREADS:
            why = f"a block has at most {MAX_BLOCK_THREADS} threads"
            raise VirtualWarpError(
                f"a block cannot have {tuple(threads)} threads", why=why, next="use more blocks with fewer threads"
            )
        count = blocks.x * blocks.y * blocks.z * threads.x * threads.y * threads.z
        if count > MAX_LAUNCHED:
            why = f"every thread is recorded, so a launch is limited to {MAX_LAUNCHED:,} threads here"
            raise VirtualWarpError(
                f"a grid cannot have {count:,} threads", why=why, next="use only as many blocks as the data needs"
            )
        record = LaunchRecord(self, kernel, blocks, threads)
        for at in _every(blocks):
            for thread in _every(threads):
                record.run(kernel, arguments, at, thread)
        self._program.append(record.entry(str(getattr(kernel, "__name__", "kernel"))[:MAX_NAME]))

    @property
    def program(self) -> list[Entry]:
        """Everything recorded, as plain data: evidence to replay (a copy)."""
        return [{**entry} for entry in self._program]

    def replay(self, values: Mapping[str, Any] | None = None, *, arrival_seed: int | None = None) -> WarpReplay:
        """What the kernels did so far; `arrival_seed` draws the order in which blocks and warps come."""
        return replay_warp(self.program, {**self._given, **(values or {})}, arrival_seed=arrival_seed)


def _every(extent: Dim3) -> list[Dim3]:
    return [Dim3(x, y, z) for z in range(extent.z) for y in range(extent.y) for x in range(extent.x)]


def _dim3(given: Any, what: str) -> Dim3:
    sizes = tuple(given) if isinstance(given, tuple | list) else (given,)
    good = all(hasattr(type(one), "__index__") and not isinstance(one, bool) and one > 0 for one in sizes)
    if not 1 <= len(sizes) <= 3 or not good:
        why = "it must have one, two or three sizes (x, y, z) of 1 or more"
        raise VirtualWarpError(
            f"{what} is {shown(given)}", why=why, next=f"pass {what}=4 or {what}=(4, 2), for example"
        )
    return Dim3(*(int(one) for one in (*sizes, 1, 1)[:3]))


def _shape(given: Any, what: str) -> tuple[int, ...]:
    sizes = tuple(given) if isinstance(given, tuple | list) else (given,)
    good = all(hasattr(type(one), "__index__") and not isinstance(one, bool) and one > 0 for one in sizes)
    if not 1 <= len(sizes) <= 3 or not good or elements_of(tuple(int(one) for one in sizes)) > MAX_ELEMENTS:
        why = f"a shape must be one, two or three whole numbers, with at most {MAX_ELEMENTS:,} elements in total"
        raise VirtualWarpError(f"{what} has the shape {shown(given)}", why=why, next="use (32, 33), for example")
    return tuple(int(one) for one in sizes)


def _require_dtype(dtype: Any) -> None:
    if type(dtype) is not str or dtype not in ITEMSIZES:
        raise VirtualWarpError(
            f"there is no dtype {shown(dtype)}",
            why="a dtype must be given by its name",
            next=f"use one of {', '.join(ITEMSIZES)}",
        )


__all__ = ["LaunchRecord", "VirtualWarp"]
