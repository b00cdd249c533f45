"""The operations of a rank's recorded program: which fields each has, and what it reads and writes.

A part of a tensor is [tensor, first element, end]. Nothing in a program is trusted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from edl_labs.virtual.cluster.collective_costs import ALGORITHMS
from edl_labs.virtual.cluster.machine import MAX_RANKS
from edl_labs.virtual.errors import VirtualClusterError, shown
from edl_labs.virtual.gpu.entry_fields import INDEX, SECONDS, Check, number, region_form, text, whole
from edl_labs.virtual.program import Entry, ProgramForm
from edl_labs.virtual.quantities import MAX_BYTES, MAX_FLOPS

ITEM_BYTES = {
    "fp64": 8, "fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "int8": 1, "int32": 4, "int64": 8, "uint8": 1,
}  # fmt: skip
FILLS = ("own", "zeros", "empty")  # a rank's own data, zeros, or whatever was there
PLACES = ("device", "host")
REDUCES = ("sum", "avg", "max", "min", "product")
# How an operation runs: on a compute stream, on a copy engine, as one half of a message, or as a part of a collective.
LOCAL, MESSAGE, COLLECTIVE, OTHER = "local", "message", "collective", ""


def _one_of(*names: str) -> Check:
    return lambda value: type(value) is str and value in names


def _parts(value: object) -> bool:
    return type(value) is list and len(value) <= MAX_RANKS and all(map(region_form, value))


def _ranks(value: object) -> bool:
    return type(value) is list and 0 < len(value) <= MAX_RANKS and all(map(whole(MAX_RANKS), value))


@dataclass(frozen=True)
class ClusterOperation:
    """One kind of operation: its fields with a check each, how it runs, and whether its name takes a number."""

    required: Mapping[str, Check]
    optional: Mapping[str, Check] = field(default_factory=dict)
    runs: str = OTHER


_STREAM = {"stream": INDEX}
_READS = {"reads": _parts}
_WRITES = {"writes": _parts}
_LABEL = {"name": text}
_WORK = {"work": INDEX}
_ASYNC = {"async": lambda value: value is True}  # its work is known by how many came before
_SPANS = {"group": INDEX, **_STREAM, "algorithm": _one_of(*ALGORITHMS)}
_KERNEL = {"duration_s": SECONDS, "flops": number(MAX_FLOPS), "moved_bytes": whole(MAX_BYTES), "dtype": text}


def _collective(**more: Check) -> ClusterOperation:
    return ClusterOperation({**_SPANS, **_READS, **_WRITES, **more}, {**_ASYNC, **_LABEL}, COLLECTIVE)


def _message(**sides: Check) -> ClusterOperation:
    return ClusterOperation({"peer": whole(MAX_RANKS), **_STREAM, **sides}, {**_ASYNC, **_LABEL}, MESSAGE)


OPERATIONS: dict[str, ClusterOperation] = {
    "tensor": ClusterOperation(
        {"tensor": INDEX, "numel": whole(MAX_BYTES, 1), "dtype": _one_of(*ITEM_BYTES), **_LABEL},
        {"fill": _one_of(*FILLS), "where": _one_of(*PLACES)},
    ),
    "free": ClusterOperation({"tensor": INDEX}, _STREAM),
    "stream": ClusterOperation(_STREAM),
    "event": ClusterOperation({"event": INDEX}),
    "record": ClusterOperation({"event": INDEX, **_STREAM}),
    "wait_event": ClusterOperation({"event": INDEX, **_STREAM}),
    "wait_work": ClusterOperation({**_WORK, **_STREAM}),
    "synchronize": ClusterOperation({}),
    "sync_stream": ClusterOperation(_STREAM),
    "host_work": ClusterOperation({"duration_s": SECONDS}),
    "launch": ClusterOperation({**_LABEL, **_STREAM}, {**_KERNEL, **_READS, **_WRITES}, LOCAL),
    "add": ClusterOperation({**_STREAM, "duration_s": SECONDS, **_READS, **_WRITES}, _LABEL, LOCAL),
    "copy": ClusterOperation({**_STREAM, "duration_s": SECONDS, **_READS, **_WRITES}, _LABEL, LOCAL),
    "scale": ClusterOperation(
        {**_STREAM, "duration_s": SECONDS, **_READS, **_WRITES, "factor": lambda value: _finite(value)}, _LABEL, LOCAL
    ),
    "new_group": ClusterOperation({"group": INDEX, "ranks": _ranks}),
    "all_reduce": _collective(reduce=_one_of(*REDUCES)),
    "reduce_scatter": _collective(reduce=_one_of(*REDUCES)),
    "all_gather": _collective(),
    "broadcast": _collective(root=whole(MAX_RANKS)),
    "reduce": _collective(reduce=_one_of(*REDUCES), root=whole(MAX_RANKS)),
    "all_to_all": _collective(),
    "barrier": _collective(),
    "send": _message(**_READS),
    "recv": _message(**_WRITES),
}

FORM = ProgramForm("VirtualCluster", "cluster.record(program)", OPERATIONS)


def checked(index: int, entry: Any) -> Entry:
    """An entry that has the form of its operation; ReplayError for anything else."""
    name = FORM.name_of(index, entry)
    kind = OPERATIONS[name]
    for key, value in entry.items():
        if type(key) is str and key == "op":
            continue
        check = (kind.required.get(key) or kind.optional.get(key)) if type(key) is str else None
        if check is None:
            raise FORM.malformed(index, f"is a {name} with a field {shown(key)}, which it does not have")
        if not check(value):
            raise FORM.malformed(index, f"is a {name} whose {key} cannot be {shown(value)}")
    missing = [key for key in kind.required if key not in entry]
    if missing:
        raise FORM.malformed(index, f"is a {name} without its {missing[0]}")
    return cast(Entry, entry)


def _finite(value: Any) -> bool:
    return type(value) in (int, float) and -1e12 <= value <= 1e12


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
    """How many elements these parts have together."""
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
        raise _unfit(kind, f"has parts of {' and '.join(sorted(dtypes))}", "all parts of a collective have one dtype")
    sizes_in, sizes_out = elements(read), elements(written)
    if kind in ("all_reduce", "broadcast", "reduce") and (len(read) != 1 or read != written):
        raise _unfit(kind, "reads and writes different parts", "it works in place, on one part of one tensor")
    if kind == "barrier" and (read or written):
        raise _unfit(kind, "has tensors", "a barrier moves no data")
    if kind == "all_gather":
        _require_shares(kind, "output", written, sizes_in, place, count, inputs=len(read))
    elif kind == "reduce_scatter":
        _require_shares(kind, "input", read, sizes_out, place, count, inputs=len(written))
    elif kind == "all_to_all":
        for side, parts in (("input", read), ("output", written)):
            if len(parts) != count and (len(parts) != 1 or elements(parts) % count):
                why = f"a group of {count} needs {count} parts, or one whose elements divide by {count}"
                raise _unfit(kind, f"has an {side} of {len(parts)} parts, {elements(parts)} elements", why)
    if "root" in entry and entry["root"] >= count:
        raise _unfit(kind, f"has root {entry['root']} in a group of {count}", "the root is a place in the group")


def _require_shares(
    kind: str, side: str, parts: list[list[int]], share: int, place: int, count: int, *, inputs: int
) -> None:
    own = shares(parts, count)
    if inputs != 1 or len(own) != count or own[place] != share or (len(parts) == 1 and share * count != own[0] * count):
        raise _unfit(
            kind,
            f"has an {side} of {elements(parts)} elements for {share} elements a rank",
            f"with {count} ranks the {side} holds {count} times the elements of one (here {share * count}), or a list "
            f"of {count} parts whose own place is as long",
        )


def shares(parts: list[list[int]], count: int) -> list[int]:
    """How many elements each member has in these parts: one part is cut into equal ones."""
    if len(parts) == 1 and count > 1:
        return [elements(parts) // count] * count if elements(parts) % count == 0 else []
    return [stop - start for _, start, stop in parts]


def _unfit(kind: str, found: str, why: str) -> VirtualClusterError:
    return VirtualClusterError(f"{kind} {found}", why=why, next="count elements, and give each rank its share")
