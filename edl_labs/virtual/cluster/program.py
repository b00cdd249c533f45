"""The operations of a rank's recorded program: which fields each has, and what it reads and writes.

A part of a tensor is [tensor, first element, end]. Nothing in a program is trusted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from edl_labs.virtual.cluster.collective_costs import ALGORITHMS
from edl_labs.virtual.cluster.machine import MAX_RANKS
from edl_labs.virtual.errors import VirtualClusterError
from edl_labs.virtual.gpu.program import region_form
from edl_labs.virtual.program import (
    FOLLOWS,
    INDEX,
    SECONDS,
    Check,
    Entry,
    Field,
    OperationKind,
    Program,
    from_case,
    number,
    one_of,
    text,
    whole,
)
from edl_labs.virtual.quantities import MAX_BYTES, MAX_FLOPS

ITEM_BYTES = {
    "fp64": 8, "fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "int8": 1, "int32": 4, "int64": 8, "uint8": 1,
}  # fmt: skip
FILLS = ("own", "zeros", "empty")  # a rank's own data, zeros, or whatever was there
PLACES = ("device", "host")
REDUCES = ("sum", "avg", "max", "min", "product")
# How an operation runs: on a compute stream, on a copy engine, as one half of a message, or as a part of a collective.
LOCAL, MESSAGE, COLLECTIVE, OTHER = "local", "message", "collective", ""


def _parts(value: object) -> bool:
    return type(value) is list and len(value) <= MAX_RANKS and all(map(region_form, value))


def _ranks(value: object) -> bool:
    return type(value) is list and 0 < len(value) <= MAX_RANKS and all(map(whole(MAX_RANKS), value))


def _finite(value: Any) -> bool:
    return type(value) in (int, float) and -1e12 <= value <= 1e12


@dataclass(frozen=True)
class ClusterOperationKind(OperationKind):
    """One kind of operation of a rank; `runs` says how. All ranks' programs are played together, as one graph."""

    runs: str = OTHER


_STREAM = {"stream": INDEX}
_READS = from_case({"reads": _parts}, regions=True)
_WRITES = from_case({"writes": _parts}, regions=True)
_LASTS = from_case({"duration_s": SECONDS})
_LABEL = {"name": text}
_FORM = from_case({"numel": whole(MAX_BYTES, 1), "dtype": one_of(*ITEM_BYTES)})
_WORK = {"work": INDEX}
_ASYNC = {"async": lambda value: value is True}  # its work is known by how many came before
_SPANS = {**_STREAM, **from_case({"group": INDEX, "algorithm": one_of(*ALGORITHMS)})}
_KERNEL = _LASTS | from_case({"flops": number(MAX_FLOPS), "moved_bytes": whole(MAX_BYTES), "dtype": text})


def _collective(**more: Check) -> ClusterOperationKind:
    return ClusterOperationKind(
        {**_SPANS, **_READS, **_WRITES, **from_case(more)}, optional={**_ASYNC, **_LABEL}, runs=COLLECTIVE
    )


def _message(**sides: Check) -> ClusterOperationKind:
    return ClusterOperationKind(
        {**from_case({"peer": whole(MAX_RANKS)}), **_STREAM, **sides}, optional={**_ASYNC, **_LABEL}, runs=MESSAGE
    )


OPERATIONS: dict[str, ClusterOperationKind] = {
    "tensor": ClusterOperationKind(
        {"tensor": Field(INDEX, FOLLOWS), **_FORM, **_LABEL},
        optional=from_case({"fill": one_of(*FILLS), "where": one_of(*PLACES)}),
        makes="tensor",
    ),
    "free": ClusterOperationKind({"tensor": INDEX}, optional=_STREAM),
    "stream": ClusterOperationKind(_STREAM),
    "event": ClusterOperationKind({"event": INDEX}),
    "record": ClusterOperationKind({"event": INDEX, **_STREAM}),
    "wait_event": ClusterOperationKind({"event": INDEX, **_STREAM}),
    "wait_work": ClusterOperationKind({**_WORK, **_STREAM}),
    "synchronize": ClusterOperationKind({}),
    "sync_stream": ClusterOperationKind(_STREAM),
    "host_work": ClusterOperationKind(_LASTS),
    "launch": ClusterOperationKind({**_LABEL, **_STREAM}, optional={**_KERNEL, **_READS, **_WRITES}, runs=LOCAL),
    "add": ClusterOperationKind({**_STREAM, **_LASTS, **_READS, **_WRITES}, optional=_LABEL, runs=LOCAL),
    "copy": ClusterOperationKind({**_STREAM, **_LASTS, **_READS, **_WRITES}, optional=_LABEL, runs=LOCAL),
    "scale": ClusterOperationKind(
        {**_STREAM, **_LASTS, **_READS, **_WRITES, **from_case({"factor": _finite})}, optional=_LABEL, runs=LOCAL
    ),
    "new_group": ClusterOperationKind({"group": Field(INDEX, FOLLOWS), **from_case({"ranks": _ranks})}),
    "all_reduce": _collective(reduce=one_of(*REDUCES)),
    "reduce_scatter": _collective(reduce=one_of(*REDUCES)),
    "all_gather": _collective(),
    "broadcast": _collective(root=whole(MAX_RANKS)),
    "reduce": _collective(reduce=one_of(*REDUCES), root=whole(MAX_RANKS)),
    "all_to_all": _collective(),
    "barrier": _collective(),
    "send": _message(**_READS),
    "recv": _message(**_WRITES),
}

PROGRAM = Program("VirtualCluster", "cluster.record(program)", OPERATIONS)


@dataclass(frozen=True)
class TensorForm:
    """What a program says of a tensor: its elements, their dtype, its name, what it holds at first, and where it is."""

    numel: int
    dtype: str
    name: str
    fill: str = "own"
    where: str = "device"

    @property
    def item_bytes(self) -> int:
        """Bytes of one element."""
        return ITEM_BYTES[self.dtype]

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.numel * self.item_bytes


def elements(parts: list[list[int]]) -> int:
    """The total number of elements of these parts."""
    return sum(stop - start for _, start, stop in parts)


def text_of(entry: Entry, number: int) -> str:
    """A call as people read it: 'all_reduce 7 (bucket 2)', 'send 0 to rank 1'."""
    name = "isend" if entry["op"] == "send" and "async" in entry else entry["op"]
    name = "irecv" if entry["op"] == "recv" and "async" in entry else name
    peer = {"send": " to rank", "recv": " from rank"}.get(entry["op"])
    where = f"{peer} {entry['peer']}" if peer else ""
    group = f" of group {entry['group']}" if entry["op"] != "new_group" and entry.get("group") else ""
    label = f" ({entry['name']})" if entry.get("name") else ""
    return f"{name} {number}{where}{label}{group}"


def check_collective(entry: Entry, place: int, count: int, dtypes: set[str]) -> None:
    """VirtualClusterError unless the parts of a collective fit together on the rank at `place` among `count`."""
    kind, read, written = entry["op"], entry["reads"], entry["writes"]
    if len(dtypes) > 1:
        raise _unfit(
            kind,
            f"has parts of dtype {' and '.join(sorted(dtypes))}",
            "all parts of a collective must have the same dtype",
        )
    sizes_in, sizes_out = elements(read), elements(written)
    if kind in ("all_reduce", "broadcast", "reduce") and (len(read) != 1 or read != written):
        raise _unfit(
            kind,
            "reads and writes different parts",
            "it works in place, so it reads and writes the same part of one tensor",
        )
    if kind == "barrier" and (read or written):
        raise _unfit(kind, "has tensors", "a barrier moves no data")
    if kind == "all_gather":
        _require_shares(kind, "output", written, sizes_in, place, count, inputs=len(read))
    elif kind == "reduce_scatter":
        _require_shares(kind, "input", read, sizes_out, place, count, inputs=len(written))
    elif kind == "all_to_all":
        for side, parts in (("input", read), ("output", written)):
            if len(parts) != count and (len(parts) != 1 or elements(parts) % count):
                why = (
                    f"a group of {count} needs {count} parts, or one part whose number of elements is divisible by "
                    f"{count}"
                )
                raise _unfit(kind, f"has an {side} of {len(parts)} parts with {elements(parts)} elements in total", why)
    if "root" in entry and entry["root"] >= count:
        raise _unfit(
            kind,
            f"has root {entry['root']} in a group of {count}",
            "the root is a position in the group, counted from 0",
        )


def _require_shares(
    kind: str, side: str, parts: list[list[int]], share: int, place: int, count: int, *, inputs: int
) -> None:
    own = shares(parts, count)
    if inputs != 1 or len(own) != count or own[place] != share or (len(parts) == 1 and share * count != own[0] * count):
        raise _unfit(
            kind,
            f"has an {side} of {elements(parts)} elements, but each rank's part has {share} elements",
            f"with {count} ranks, the {side} must have {count} times as many elements as one part (here "
            f"{share * count}), or "
            f"be a list of {count} parts, in which this rank's own part has {share} elements",
        )


def shares(parts: list[list[int]], count: int) -> list[int]:
    """How many elements each member has in these parts: one part is cut into equal ones."""
    if len(parts) == 1 and count > 1:
        return [elements(parts) // count] * count if elements(parts) % count == 0 else []
    return [stop - start for _, start, stop in parts]


def _unfit(kind: str, found: str, why: str) -> VirtualClusterError:
    return VirtualClusterError(
        f"{kind} {found}", why=why, next="count the elements, and give each rank its share of them"
    )
