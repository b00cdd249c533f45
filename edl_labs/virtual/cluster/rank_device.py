"""A rank's GPU as its program sees it: tensors without data, streams, kernels and copies, which are recorded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from edl_labs.virtual.cluster.machine import MAX_STREAMS, ClusterMachine
from edl_labs.virtual.cluster.program import ITEM_BYTES, PROGRAM, TensorForm
from edl_labs.virtual.errors import ReplayError, VirtualClusterError, shown
from edl_labs.virtual.program import Entry
from edl_labs.virtual.quantities import whole_number

_MOST_RECORDED = 200_000  # a rank's operations: more is a loop that does not end
_DTYPES = {"float32": "fp32", "float": "fp32", "float64": "fp64", "double": "fp64", "float16": "fp16", "half": "fp16"}
_DTYPES |= {"bfloat16": "bf16", "float8_e4m3fn": "fp8", "float8_e5m2": "fp8", "int": "int32", "long": "int64"}


class RankTensor:
    """Elements `start` to `stop` of a tensor of one rank; it holds no data. `x[2:5]` is a part of it."""

    __slots__ = ("form", "index", "rank", "start", "stop")

    def __init__(self, rank: RankDevice, index: int, form: TensorForm, start: int, stop: int) -> None:
        self.rank, self.index, self.form, self.start, self.stop = rank, index, form, start, stop

    @property
    def dtype(self) -> str:
        """The short name of the dtype: 'fp32'."""
        return self.form.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of these elements."""
        return self.numel() * self.form.item_bytes

    def numel(self) -> int:
        """How many elements these are."""
        return self.stop - self.start

    def __len__(self) -> int:
        return self.stop - self.start

    def __getitem__(self, part: slice) -> RankTensor:
        bounds = (part.start, part.stop) if isinstance(part, slice) and part.step in (None, 1) else (self, self)
        low = 0 if bounds[0] is None else whole_number(bounds[0])
        high = len(self) if bounds[1] is None else whole_number(bounds[1])
        if low is None or high is None or not 0 <= low < high <= len(self):
            raise VirtualClusterError(
                f"this index does not select a part of {self!r}",
                why=f"a part is x[start:stop] with 0 <= start < stop <= {len(self)}, counted in elements",
                next="round bounds to whole numbers, and check whether the last chunk is smaller or empty",
            )
        return RankTensor(self.rank, self.index, self.form, self.start + low, self.start + high)

    def chunk(self, chunks: int) -> list[RankTensor]:
        """`chunks` parts as torch.chunk cuts them: equal ones, the last smaller, fewer where there is too little."""
        count = whole_number(chunks)
        if count is None or count < 1:
            raise VirtualClusterError(
                f"cannot split {self!r} into {shown(chunks)} parts",
                why="the number of parts must be 1 or more",
                next="pass a whole number of parts, as in x.chunk(4)",
            )
        size = -(-len(self) // count)
        return [self[low : min(low + size, len(self))] for low in range(0, len(self), size)]

    def item(self) -> NoReturn:
        """Not here: tensors of a VirtualCluster hold no data."""
        raise VirtualClusterError(
            f"{self!r} has no data",
            why="programs are recorded one rank at a time, so only the origin of received data is known, not its value",
            next="branch only on ranks and sizes; after the replay, replay.contents(rank, name) shows the contents",
        )

    __bool__ = __float__ = __int__ = __iter__ = item

    def plain(self) -> list[int]:
        """The part as plain data."""
        return [self.index, self.start, self.stop]

    def __repr__(self) -> str:
        whole = self.start == 0 and self.stop == self.form.numel
        return self.form.name if whole else f"{self.form.name}[{self.start}:{self.stop}]"


class ClusterEvent:
    """A mark in a stream of a rank, for other streams to wait for."""

    def __init__(self, rank: RankDevice, number: int) -> None:
        self._rank, self.number = rank, number

    def record(self, stream: ClusterStream | None = None) -> None:
        """Mark the work that the stream (by default, the current one) has received so far."""
        self._rank.note({"op": "record", "event": self.number, "stream": self._rank.stream_number(stream)})

    def wait(self, stream: ClusterStream | None = None) -> None:
        """Make later work of the stream (by default, the current one) wait for the mark."""
        self._rank.note({"op": "wait_event", "event": self.number, "stream": self._rank.stream_number(stream)})


class ClusterStream:
    """A compute stream of a rank."""

    def __init__(self, rank: RankDevice, number: int) -> None:
        self._rank, self.number = rank, number

    def wait_event(self, event: ClusterEvent) -> None:
        """Make later work of this stream wait for the event."""
        event.wait(self)

    def wait_stream(self, other: ClusterStream) -> None:
        """Make later work of this stream wait for all work that the other stream has received so far."""
        event = self._rank.Event()
        event.record(other)
        event.wait(self)

    def synchronize(self) -> None:
        """Make the host wait until all work of the stream has finished."""
        self._rank.note({"op": "sync_stream", "stream": self.number})


class RankDevice:
    """A rank's GPU: tensors, streams, kernels, copies. Each call is recorded as plain data."""

    def __init__(self, number: int, machine: ClusterMachine) -> None:
        self.rank, self.machine, self.world_size = number, machine, machine.ranks
        self.program: list[Entry] = []
        self.current = 0
        self._used_bytes = 0
        self._counts = {"tensor": 0, "stream": 1, "event": 0, "work": 0}
        self._freed: set[int] = set()

    def tensor(self, numel: int, *, dtype: object = "fp32", name: str = "", where: str = "device") -> RankTensor:
        """`numel` elements with this rank's own data: its gradients, its shard, its batch."""
        return self._made(numel, dtype, name, "own", where)

    def zeros(self, numel: int, *, dtype: object = "fp32", name: str = "", where: str = "device") -> RankTensor:
        """`numel` zeros."""
        return self._made(numel, dtype, name, "zeros", where)

    def empty(self, numel: int, *, dtype: object = "fp32", name: str = "", where: str = "device") -> RankTensor:
        """`numel` elements that have not been written yet."""
        return self._made(numel, dtype, name, "empty", where)

    def free(self, tensor: RankTensor) -> None:
        """Free a tensor's memory, which the current stream may immediately use for something else."""
        whole = self.part(tensor, "the argument of free()")
        self.note({"op": "free", "tensor": whole[0], "stream": self.current})
        self._freed.add(whole[0])
        if tensor.form.where == "device":
            self._used_bytes -= tensor.form.nbytes

    def launch(
        self, name: str, *, duration_s: float | None = None, reads: Any = (), writes: Any = (), flops: float = 0.0,
        moved_bytes: int | None = None, dtype: str = "fp32", stream: ClusterStream | None = None,
    ) -> None:  # fmt: skip
        """Issue a kernel of `duration_s`, or of `flops` of a dtype and `moved_bytes` (what it touches unless given)."""
        read, written = self.parts(reads, "an input"), self.parts(writes, "an output")
        entry: Entry = {"op": "launch", "name": name, "stream": self.stream_number(stream)}
        if duration_s is None:
            touched = [*several(reads), *several(writes)]
            size = sum(part.nbytes for part in touched) if moved_bytes is None else moved_bytes
            entry |= {"flops": flops, "moved_bytes": size, "dtype": _dtype(dtype)}
        else:
            entry["duration_s"] = duration_s
        self.note(entry | ({"reads": read} if read else {}) | ({"writes": written} if written else {}))

    def add(self, into: RankTensor, other: RankTensor, *, duration_s: float = 0.0) -> None:
        """into += other, on the current stream; it takes no time unless a duration is passed."""
        self._local("add", [into, other], into, duration_s=duration_s)

    def copy(self, into: RankTensor, source: RankTensor, *, duration_s: float = 0.0) -> None:
        """into = source, on the current stream; between host and device it takes a copy engine and its time."""
        self._local("copy", [source], into, duration_s=duration_s)

    def scale(self, tensor: RankTensor, factor: float, *, duration_s: float = 0.0) -> None:
        """tensor *= factor, on the current stream; it takes no time unless a duration is passed."""
        self._local("scale", [tensor], tensor, duration_s=duration_s, factor=factor)

    def host_work(self, duration_s: float) -> None:
        """Keep the host busy, which delays what it issues next."""
        self.note({"op": "host_work", "duration_s": duration_s})

    def synchronize(self) -> None:
        """Make the host wait until all work of this rank has finished, including communication."""
        self.note({"op": "synchronize"})

    def Stream(self) -> ClusterStream:  # noqa: N802 - torch.cuda's name
        """A new compute stream."""
        if self._counts["stream"] >= MAX_STREAMS:
            raise VirtualClusterError(
                f"rank {self.rank} already has {MAX_STREAMS} streams",
                why="a device cannot have more",
                next="reuse the streams that you already have",
            )
        made = ClusterStream(self, self._number("stream"))
        self.note({"op": "stream", "stream": made.number})
        return made

    def Event(self) -> ClusterEvent:  # noqa: N802 - torch.cuda's name
        """A new event."""
        made = ClusterEvent(self, self._number("event"))
        self.note({"op": "event", "event": made.number})
        return made

    @contextmanager
    def stream(self, stream: ClusterStream) -> Iterator[None]:
        """Make `stream` the current stream inside the block."""
        before, self.current = self.current, self.stream_number(stream)
        try:
            yield
        finally:
            self.current = before

    def note(self, entry: Entry) -> None:
        """Record an operation; VirtualClusterError where one of its fields cannot be."""
        try:
            PROGRAM.checked(len(self.program), entry)
        except ReplayError as error:
            what = f"rank {self.rank} cannot {entry['op']}: {error.what.split(' of the program ')[-1]}"
            raise VirtualClusterError(
                what, why="the call has an invalid argument", next="correct this argument"
            ) from None
        if len(self.program) >= _MOST_RECORDED:
            raise VirtualClusterError(
                f"rank {self.rank} has issued more than {_MOST_RECORDED:,} operations",
                why="every operation is stored for the replay",
                next="fix the loop that issues them, or record fewer steps",
            )
        self.program.append(entry)

    def part(self, given: object, role: str) -> list[int]:
        """A tensor of this rank as plain data; VirtualClusterError for anything else."""
        if not isinstance(given, RankTensor) or given.rank is not self:
            owner = f" of rank {given.rank.rank}" if isinstance(given, RankTensor) else ""
            raise VirtualClusterError(
                f"{role} is a {type(given).__name__}{owner}, not a tensor of rank {self.rank}",
                why="a rank can use only its own memory",
                next="create a tensor on this rank with tensor(numel), zeros(numel) or empty(numel)",
            )
        if given.index in self._freed:
            raise VirtualClusterError(
                f"{given!r} has been freed", why="its memory has been released", next="free it only after its last use"
            )
        return given.plain()

    def parts(self, given: object, role: str) -> list[list[int]]:
        """One tensor or several as plain data."""
        return [self.part(one, role) for one in several(given)]

    def stream_number(self, stream: ClusterStream | None) -> int:
        """The number of a stream, of the current one for None."""
        if stream is None:
            return self.current
        if not isinstance(stream, ClusterStream) or stream._rank is not self:
            raise VirtualClusterError(
                f"{type(stream).__name__} is not a stream of rank {self.rank}",
                why="each rank has its own streams",
                next="create a stream on this rank with Stream()",
            )
        return stream.number

    def _number(self, kind: str) -> int:
        self._counts[kind] += 1
        return self._counts[kind] - 1

    def _made(self, numel: int, dtype: object, name: str, fill: str, where: str) -> RankTensor:
        number = self._counts["tensor"]
        entry = {"op": "tensor", "tensor": number, "numel": numel, "dtype": _dtype(dtype)}
        entry |= {"name": name if name != "" else f"tensor{number}", "fill": fill}
        self.note(entry | ({"where": where} if where != "device" else {}))
        self._counts["tensor"] += 1
        form = TensorForm(numel, str(entry["dtype"]), str(entry["name"]), fill, where)
        left = self.machine.gpu.memory_bytes - self._used_bytes
        if where == "device" and form.nbytes > left:
            raise VirtualClusterError(
                f"rank {self.rank} is out of memory: {form.nbytes:,} bytes requested, {left:,} left",
                why=f"{self.machine.gpu.name} has {self.machine.gpu.memory_bytes:,} bytes",
                next="free tensors that are no longer used, or distribute them over more ranks",
            )
        self._used_bytes += form.nbytes if where == "device" else 0
        return RankTensor(self, number, form, 0, numel)

    def _local(self, op: str, reads: list[RankTensor], into: RankTensor, **more: float) -> None:
        read, written = self.parts(reads, "an input"), self.parts(into, "the output")
        sizes = {len(one) for one in [*reads, into]}
        if len(sizes) > 1 or len({one.dtype for one in [*reads, into]}) > 1:
            raise VirtualClusterError(
                f"cannot {op} {reads[-1]!r} and {into!r}: they have {len(reads[-1])} elements of {reads[-1].dtype} "
                f"and {len(into)} elements of {into.dtype}",
                why="both sides must have the same size and dtype",
                next="slice both tensors to the same size",
            )
        self.note({"op": op, "stream": self.current, "reads": read, "writes": written, **more})


def several(given: object) -> list[Any]:
    """One thing, or a list or tuple of them, as a list."""
    return list(given) if isinstance(given, (list, tuple)) else [given]


def _dtype(dtype: object) -> str:
    plain = str(dtype).removeprefix("torch.").lower()
    short = _DTYPES.get(plain, plain)
    if short not in ITEM_BYTES:
        raise VirtualClusterError(
            f"there is no dtype {str(dtype)[:40]!r} here",
            why=f"the dtypes are {', '.join(ITEM_BYTES)}",
            next="use one of these",
        )
    return short
