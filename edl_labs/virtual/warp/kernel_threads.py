"""What a kernel sees: its thread (`cuda`), arrays in memory, and registers that hold what it loaded.

Threads run one after the other, each from its first line to its last, and nothing is computed: a load gives a
`Register`, which stands for a value that the replay will know. So barriers are plain calls, what a thread does is on
record exactly, and no order of threads can hide a race. What a kernel may not do is to branch on what it loaded.
"""

from __future__ import annotations

import dis
import operator
import sys
from bisect import bisect_right
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol

from edl_labs.units import counted
from edl_labs.virtual.errors import VirtualWarpError, shown
from edl_labs.virtual.warp.memory_requests import LANES

if TYPE_CHECKING:
    from types import CodeType, FrameType


Step = tuple[Any, ...]
_FULL = 0xFFFFFFFF  # the mask of all 32 lanes


class Dim3(NamedTuple):
    """Three numbers, as CUDA counts threads and blocks: x is the fastest."""

    x: int
    y: int
    z: int


class KernelRecording(Protocol):
    """What a thread needs of the launch that it belongs to."""

    grid: Dim3
    block: Dim3
    first_line: int
    lines: dict[tuple[int, ...], int]
    root: Any

    @property
    def running(self) -> KernelThread | None:
        """The thread that runs now."""

    def charge(self) -> None:
        """Count a step."""

    def shared_array(self, thread: KernelThread, shape: Any, dtype: str) -> KernelArray:
        """The thread's next shared array."""


class Register:
    """A value that a thread holds: what it loaded, or worked out from that with + - * /; known to the replay alone."""

    __slots__ = ("_thread", "number")

    def __init__(self, thread: KernelThread, number: int) -> None:
        self._thread = thread
        self.number = number

    def __add__(self, other: Any) -> Register:
        return self._thread.computed("+", self, other)

    def __radd__(self, other: Any) -> Register:
        return self._thread.computed("+", other, self)

    def __sub__(self, other: Any) -> Register:
        return self._thread.computed("-", self, other)

    def __rsub__(self, other: Any) -> Register:
        return self._thread.computed("-", other, self)

    def __mul__(self, other: Any) -> Register:
        return self._thread.computed("*", self, other)

    def __rmul__(self, other: Any) -> Register:
        return self._thread.computed("*", other, self)

    def __truediv__(self, other: Any) -> Register:
        return self._thread.computed("/", self, other)

    def __rtruediv__(self, other: Any) -> Register:
        return self._thread.computed("/", other, self)

    def __neg__(self) -> Register:
        return self._thread.computed("*", -1.0, self)

    def _unknown(self, *_: Any) -> NoReturn:
        raise VirtualWarpError(
            "a kernel needs the value of an element that it loaded",
            why="threads are recorded one after the other, so the contents of memory are not known yet",
            next="with loaded values, only compute (+ - * /) and store; branch and index only by thread numbers",
        )

    __bool__ = __float__ = __int__ = __index__ = __abs__ = __round__ = _unknown
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = _unknown
    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<register {self.number} of {self._thread}>"


class KernelArray:
    """An array in global or shared memory, row after row. Kernels read and write elements: `a[i]`, `a[y, x]`."""

    def __init__(self, name: str, shape: tuple[int, ...], dtype: str, *, number: int, of: Any) -> None:
        self.name, self.shape, self.dtype = name, shape, dtype
        self.number = number  # from 0 in global memory; -1, -2, ... the block's shared arrays
        self._of = of

    @property
    def size(self) -> int:
        """Its elements."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> Register:
        thread = self._thread("read")
        return thread.touched("load", self, self.place(index, thread, "reads"))

    def __setitem__(self, index: Any, value: Any) -> None:
        thread = self._thread("written")
        thread.stored(self, self.place(index, thread, "writes"), thread.source(value))

    def __iter__(self) -> NoReturn:
        raise VirtualWarpError(
            f"a kernel iterates over all of {self.name}",
            why="a thread accesses one element at a time",
            next="write a loop in which each thread indexes its own elements",
        )

    def place(self, index: Any, thread: KernelThread, does: str) -> int:
        """The number of an element, counted row after row; VirtualWarpError beyond the array."""
        asked = index if isinstance(index, tuple) else (index,)
        if len(asked) != len(self.shape):
            raise VirtualWarpError(
                f"{thread} {does} {self.name} with {counted(len(asked), 'index')}",
                why=f"its shape is {self.shape}, and a thread accesses a single element",
                next=f"pass {counted(len(self.shape), 'whole number')}",
            )
        flat = 0
        for one, extent in zip(asked, self.shape, strict=True):
            flat = flat * extent + self._inside(one, extent, asked, thread, does)
        return flat

    def _inside(self, one: Any, extent: int, asked: tuple[Any, ...], thread: KernelThread, does: str) -> int:
        if isinstance(one, bool) or not hasattr(type(one), "__index__"):
            raise VirtualWarpError(
                f"{thread} {does} {self.name} at {shown(one)}",
                why="an index must be a whole number",
                next="use // if the index is a quotient",
            )
        number = operator.index(one)
        if not 0 <= number < extent:
            why = f"its shape is {self.shape}; a GPU would not stop this access, and it would reach other memory"
            then = "does the grid match the data, and if the grid is larger, does an `if` guard this access?"
            turned = asked[::-1]
            if len(set(asked)) > 1 and all(0 <= at < size for at, size in zip(turned, self.shape, strict=True)):
                why = f"{why}; {self.name}[{', '.join(map(str, turned))}] does exist"
                then = "are x and y swapped, in the grid or in the index? If not, guard this access with an `if` that "
                then += "tests these two indices"
            raise VirtualWarpError(
                f"{thread} {does} {self.name}[{', '.join(map(str, asked))}], which does not exist", why=why, next=then
            )
        return number

    def _thread(self, what: str) -> KernelThread:
        thread = self._of.running
        if thread is None:
            raise VirtualWarpError(
                f"{self.name} is {what} outside a kernel",
                why="an array on the device has no values until a launch is replayed",
                next="launch a kernel first; replay().contents(name) and replay().values(name) then show the result",
            )
        assert isinstance(thread, KernelThread)
        return thread

    def __repr__(self) -> str:
        return f"<{self.name}: {self.dtype} of shape {self.shape}>"


class _Shared:
    def __init__(self, thread: KernelThread) -> None:
        self._thread = thread

    def array(self, shape: int | tuple[int, ...], dtype: str = "float32") -> KernelArray:
        """An array that the threads of a block share, alike in all of them; it holds nothing yet."""
        return self._thread.record.shared_array(self._thread, shape, dtype)


class _Atomic:
    def __init__(self, thread: KernelThread) -> None:
        self._thread = thread

    def add(self, array: KernelArray, index: Any, value: Any) -> Register:
        """Add to an element as one step that no other thread can split; gives what was there before."""
        place = array.place(index, self._thread, "adds to")
        return self._thread.touched("atomic_add", array, place, self._thread.source(value))


class KernelThread:
    """One thread of a launch, with the names of Numba's `cuda`: a kernel gets it as its first argument."""

    warpsize = LANES

    def __init__(self, record: KernelRecording, block: Dim3, thread: Dim3) -> None:
        self.record = record
        self.blockIdx, self.threadIdx = block, thread
        self.blockDim, self.gridDim = record.block, record.grid
        dim = record.block
        self.laneid = (thread.x + dim.x * (thread.y + dim.y * thread.z)) % LANES
        self.shared, self.atomic = _Shared(self), _Atomic(self)
        self.steps: list[Step] = []
        self.places: list[int] = []
        self.shared_count = 0
        self._values = 0

    def grid(self, ndim: int) -> Any:
        """The thread's number in the whole grid: one number, or a tuple of 2 or 3, x first."""
        whole = tuple(b * d + t for b, d, t in zip(self.blockIdx, self.blockDim, self.threadIdx, strict=True))
        return whole[0] if ndim == 1 else whole[:ndim]

    def gridsize(self, ndim: int) -> Any:
        """The threads of the whole grid in each direction."""
        whole = tuple(b * d for b, d in zip(self.gridDim, self.blockDim, strict=True))
        return whole[0] if ndim == 1 else whole[:ndim]

    def syncthreads(self) -> None:
        """Wait until every thread of the block is here; what they wrote before is then there for all of them."""
        self._did(("syncthreads", self._pc()))

    def syncwarp(self, mask: int = _FULL) -> None:
        """Wait until every lane of the warp is here; what they wrote before is then there for all of them."""
        self._whole(mask)
        self._did(("syncwarp", self._pc()))

    def shfl_sync(self, mask: int, value: Any, src_lane: int) -> Register:
        """What lane `src_lane` of the warp gives here."""
        return self._shuffled("shfl", mask, value, src_lane)

    def shfl_down_sync(self, mask: int, value: Any, delta: int) -> Register:
        """What the lane `delta` above gives here; the last ones get their own value back."""
        return self._shuffled("shfl_down", mask, value, delta)

    def shfl_xor_sync(self, mask: int, value: Any, lane_mask: int) -> Register:
        """What the lane whose number differs in these bits gives here."""
        return self._shuffled("shfl_xor", mask, value, lane_mask)

    def computed(self, op: str, first: Any, second: Any) -> Register:
        """An arithmetic operation of two values."""
        return self._valued((op, self._pc(), self.source(first), self.source(second)))

    def touched(self, op: str, array: KernelArray, place: int, *source: Any) -> Register:
        """An access to one element that gives its value."""
        self.places.append(place)
        return self._valued((op, self._pc(), array.number, *source))

    def stored(self, array: KernelArray, place: int, source: int | float) -> None:
        """An access that writes one element."""
        self.places.append(place)
        self._did(("store", self._pc(), array.number, source))

    def source(self, value: Any) -> int | float:
        """Where a value comes from: a register's number, or a constant as a float."""
        if isinstance(value, Register):
            if value._thread is not self:
                raise VirtualWarpError(
                    f"{self} uses a value that {value._thread} loaded",
                    why="a register belongs to a single thread",
                    next="pass the value on through shared memory and a barrier, or within the warp with a shuffle",
                )
            return value.number
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        if type(value).__module__ == "numpy" and getattr(value, "ndim", 1) == 0:
            return float(value)
        raise VirtualWarpError(
            f"{self} stores or computes with {shown(value)}",
            why="a thread can use only numbers and values that it has loaded",
            next="load the element first",
        )

    def _shuffled(self, op: str, mask: int, value: Any, lane: int) -> Register:
        self._whole(mask)
        if isinstance(lane, bool) or not isinstance(lane, int) or not 0 <= lane < LANES:
            why = f"a warp has lanes 0 to {LANES - 1}"
            raise VirtualWarpError(
                f"{self} shuffles with lane {shown(lane)}", why=why, next=f"pass a whole number from 0 to {LANES - 1}"
            )
        return self._valued((op, self._pc(), lane, self.source(value)))

    def _whole(self, mask: int) -> None:
        if mask not in (_FULL, -1):
            why = "all lanes of a mask must take part, and only whole warps are modelled"
            raise VirtualWarpError(
                f"{self} synchronises only a part of its warp", why=why, next="pass 0xFFFFFFFF as the mask"
            )

    def _valued(self, step: Step) -> Register:
        self._did(step)
        self._values += 1
        return Register(self, self._values - 1)

    def _did(self, step: Step) -> None:
        if self.record.running is not self:
            raise VirtualWarpError(
                f"{self} is used after it has ended",
                why="at that point another thread is running, or none",
                next="do not use a thread after its kernel has returned",
            )
        self.steps.append(step)
        self.record.charge()

    def _pc(self) -> tuple[int, ...]:
        """Where in the kernel's text this is: the instruction of each function from the kernel inwards."""
        frame: FrameType | None = sys._getframe(2)
        found: list[int] = []
        line, root = 0, self.record.root
        while frame is not None and frame is not root:
            if frame.f_globals.get("__name__") != __name__:
                found.append(_instruction(frame.f_code, frame.f_lasti))
                line = frame.f_lineno
            frame = frame.f_back
        pc = tuple(reversed(found))
        self.record.lines.setdefault(pc, line - self.record.first_line + 1)
        return pc

    def __str__(self) -> str:
        return f"thread {_named(self.threadIdx, self.blockDim)} of block {_named(self.blockIdx, self.gridDim)}"


@lru_cache(maxsize=4096)
def _instruction(code: CodeType, offset: int) -> int:
    """Where the instruction begins that `offset` is in: Python counts into its caches once it knows the types."""
    starts = [one.offset for one in dis.get_instructions(code)]
    return starts[bisect_right(starts, offset) - 1]


def _named(at: Dim3, of: Dim3) -> str:
    used = 3 if of.z > 1 else 2 if of.y > 1 else 1
    return str(at.x) if used == 1 else f"({', '.join(map(str, at[:used]))})"
