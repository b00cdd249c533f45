"""What a rank does alone: on which engine each of its kernels and copies runs, and how long it takes there."""

from __future__ import annotations

from typing import Any

from edl_labs.virtual.cluster.machine import ATTOSECONDS, ClusterMachine
from edl_labs.virtual.cluster.meetings import COMPUTE, TO_DEVICE, TO_HOST, Plan, RankSide
from edl_labs.virtual.errors import VirtualClusterError
from edl_labs.virtual.gpu.machine import kernel_cost
from edl_labs.virtual.gpu.work_items import KernelWork
from edl_labs.virtual.program import Entry
from edl_labs.virtual.quantities import PER_SECOND


class LocalWork:
    """Plans of local operations on the GPUs of a machine; equal amounts of work are priced once."""

    def __init__(self, machine: ClusterMachine) -> None:
        self._gpu = machine.gpu
        self._costs: dict[Any, int] = {}

    def plan(self, side: RankSide, entry: Entry) -> Plan:
        """The plan of an operation; VirtualClusterError where its parts do not fit together."""
        engine = _engine(side, entry, entry.get("reads", ()), entry.get("writes", ()))
        return Plan(entry, side.lane(entry), engine, self._cost(side, entry, engine))

    def _cost(self, side: RankSide, entry: Entry, engine: int) -> int:
        gpu = self._gpu
        if "duration_s" in entry and (engine == COMPUTE or entry["duration_s"]):
            return round(entry["duration_s"] * ATTOSECONDS)
        if engine != COMPUTE:
            part = entry["writes"][0]
            nbytes = (part[2] - part[1]) * side.tensors[part[0]].item_bytes
            return round((gpu.copy_latency_s + nbytes / gpu.link_byte_per_s) * ATTOSECONDS)
        key = entry.get("flops", 0.0), entry.get("moved_bytes", 0), entry.get("dtype", "fp32")
        if key not in self._costs:
            self._costs[key] = self._priced(entry["name"], *key)
        return self._costs[key]

    def _priced(self, name: str, flops: float, moved_bytes: int, dtype: str) -> int:
        """Arithmetic and traffic overlap; there is no cache, since tensors of training are larger than it."""
        work = kernel_cost(
            self._gpu, {"name": name}, duration_s=None, flops=flops, moved_bytes=moved_bytes, dtype=dtype, touched=()
        )
        assert isinstance(work, KernelWork)
        arithmetic = work.arithmetic_ps * (ATTOSECONDS // PER_SECOND)
        memory = round(moved_bytes / self._gpu.memory_bandwidth_byte_per_s * ATTOSECONDS)
        return max(arithmetic, memory, round(self._gpu.kernel_floor_s * ATTOSECONDS))


def _engine(side: RankSide, entry: Entry, read: Any, written: Any) -> int:
    """Check the parts of a local operation, and say on which engine it runs."""
    parts, op = (*read, *written), entry["op"]
    for part in parts:
        side.require_live(part)
    if op == "launch":
        if any(side.tensors[part[0]].where == "host" for part in parts):
            why = "kernels cannot access host memory"
            raise VirtualClusterError(
                f"the kernel {entry['name']} reads or writes host memory",
                why=why,
                next="copy the data to the device first",
            )
        return COMPUTE
    wanted = 2 if op == "add" else 1
    forms = {(side.tensors[part[0]].dtype, part[2] - part[1]) for part in parts}
    in_place = op == "copy" or (bool(read) and bool(written) and read[0] == written[0])
    if (len(read), len(written), len(forms)) != (wanted, 1, 1) or not in_place:
        why = "all inputs and outputs must have the same size and dtype"
        raise VirtualClusterError(
            f"the inputs and outputs of {op} do not match", why=why, next="record the program again"
        )
    places = side.tensors[read[-1][0]].where, side.tensors[written[0][0]].where
    if op != "copy" and "host" in places:
        why = "only a copy can access host memory"
        raise VirtualClusterError(
            f"{op} reads or writes host memory", why=why, next="copy the data to the device first"
        )
    return {("host", "device"): TO_DEVICE, ("device", "host"): TO_HOST}.get(places, COMPUTE)
