"""One rank, with the names of torch.distributed; its calls are recorded, and no data is sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from edl_labs.virtual.cluster.collective_costs import AUTO
from edl_labs.virtual.cluster.machine import ClusterMachine
from edl_labs.virtual.cluster.program import REDUCES, check_collective
from edl_labs.virtual.cluster.rank_device import RankDevice, RankTensor, several
from edl_labs.virtual.errors import VirtualClusterError, shown
from edl_labs.virtual.program import Entry
from edl_labs.virtual.quantities import whole_number


class Work:
    """What an asynchronous call returns: `wait()` makes the current stream wait for it, not the host."""

    def __init__(self, rank: Rank, number: int) -> None:
        self._rank, self._number = rank, number

    def wait(self) -> None:
        """Make later work of the current stream wait for this work."""
        self._rank.note({"op": "wait_work", "work": self._number, "stream": self._rank.current})


class ClusterGroup:
    """Ranks that call collectives together; every rank creates every group, in the same order."""

    def __init__(self, number: int, ranks: tuple[int, ...]) -> None:
        self.number, self.ranks = number, ranks

    def size(self) -> int:
        """How many ranks it has."""
        return len(self.ranks)


class Rank(RankDevice):
    """A rank of a cluster: what `torch.distributed` and `torch.cuda` are to one process, and nothing is sent.

    Collectives run outside the compute streams, in the order of their calls in each group, once the current stream has
    done what it was given before. A call without `async_op=True` makes the current stream wait; none keeps the host,
    but `barrier` and `new_group`. Sizes are counted in elements.
    """

    def __init__(self, number: int, machine: ClusterMachine) -> None:
        super().__init__(number, machine)
        self._groups = [ClusterGroup(0, tuple(range(machine.ranks)))]

    @property
    def WORLD(self) -> ClusterGroup:  # noqa: N802 - torch.distributed's group.WORLD
        """The group of all ranks."""
        return self._groups[0]

    def get_rank(self, group: ClusterGroup | None = None) -> int:
        """This rank's number, or its position in a group (-1 if it is not a member)."""
        ranks = self._group(group).ranks
        return ranks.index(self.rank) if self.rank in ranks else -1

    def get_world_size(self, group: ClusterGroup | None = None) -> int:
        """The number of ranks, in total or in a group."""
        return self._group(group).size()

    def new_group(self, ranks: Sequence[int]) -> ClusterGroup:
        """A group of these ranks; every rank of the cluster creates every group, in the same order, member or not."""
        given = list(ranks)
        made = [rank for rank in map(whole_number, given) if rank is not None and 0 <= rank < self.world_size]
        good = len(made) == len(given)
        if not made or not good or len(set(made)) != len(made):
            raise VirtualClusterError(
                f"no group can have the ranks {str(given)[:60]}",
                why=f"a group consists of ranks from 0 to {self.world_size - 1}, each listed once",
                next="pass a list of ranks, such as new_group(list(range(4)))",
            )
        group = ClusterGroup(len(self._groups), tuple(made))
        self.note({"op": "new_group", "group": group.number, "ranks": made})
        self._groups.append(group)
        return group

    def send(self, tensor: RankTensor, dst: int, *, name: str = "") -> None:
        """Send to rank `dst`; the current stream waits until it has been received."""
        self._message("send", tensor, dst, name=name)

    def recv(self, tensor: RankTensor, src: int, *, name: str = "") -> None:
        """Receive from rank `src` into `tensor`; the current stream waits for it."""
        self._message("recv", tensor, src, name=name)

    def isend(self, tensor: RankTensor, dst: int, *, name: str = "") -> Work:
        """Send to rank `dst` outside the streams; `tensor` must stay as it is until the work is over."""
        return self._message("send", tensor, dst, name=name, async_op=True)  # type: ignore[return-value]

    def irecv(self, tensor: RankTensor, src: int, *, name: str = "") -> Work:
        """Receive from rank `src` outside the streams; `tensor` must not be touched until the work is over."""
        return self._message("recv", tensor, src, name=name, async_op=True)  # type: ignore[return-value]

    def all_reduce(self, tensor: RankTensor, op: str = "sum", **call: Any) -> Work | None:
        """Reduce `tensor` over the group, in place on every rank. `op`: sum, avg, max, min or product.

        All collectives take `group`, `async_op`, `algorithm` ("auto": the cheapest) and a `name` for people.
        """
        return self._collective("all_reduce", [tensor], [tensor], reduce=_reduce(op), **call)

    def reduce(self, tensor: RankTensor, dst: int, op: str = "sum", **call: Any) -> Work | None:
        """Reduce `tensor` over the group; the result is in the tensor of rank `dst`."""
        return self._collective("reduce", [tensor], [tensor], reduce=_reduce(op), root=dst, **call)

    def broadcast(self, tensor: RankTensor, src: int, **call: Any) -> Work | None:
        """Give every rank of the group the `tensor` of rank `src`."""
        return self._collective("broadcast", [tensor], [tensor], root=src, **call)

    def all_gather(self, output: Any, tensor: RankTensor, **call: Any) -> Work | None:
        """Put every rank's `tensor` into `output`: a list of one part per rank, or a tensor with all parts in order."""
        return self._collective("all_gather", [tensor], output, **call)

    def reduce_scatter(self, output: RankTensor, inputs: Any, op: str = "sum", **call: Any) -> Work | None:
        """Reduce `inputs` (a list of one part per rank, or one tensor split evenly) and keep this rank's part."""
        return self._collective("reduce_scatter", inputs, [output], reduce=_reduce(op), **call)

    def all_to_all(self, outputs: Any, inputs: Any, **call: Any) -> Work | None:
        """Send part i of `inputs` to rank i, and receive part i of `outputs` from it."""
        return self._collective("all_to_all", inputs, outputs, **call)

    all_gather_into_tensor, reduce_scatter_tensor, all_to_all_single = all_gather, reduce_scatter, all_to_all

    def barrier(self, **call: Any) -> Work | None:
        """Make the host wait until every rank of the group has arrived."""
        return self._collective("barrier", [], [], **call)

    def _message(self, op: str, tensor: RankTensor, peer: int, *, name: str, async_op: bool = False) -> Work | None:
        other = whole_number(peer)
        if other is None or not 0 <= other < self.world_size or other == self.rank:
            raise VirtualClusterError(
                f"rank {self.rank} cannot {op} with rank {shown(peer)}",
                why=f"the peer must be another rank, from 0 to {self.world_size - 1}",
                next="compute the neighbour's rank modulo get_world_size()",
            )
        side = "reads" if op == "send" else "writes"
        entry = {"op": op, "peer": other, "stream": self.current, side: self.parts(tensor, "what travels")}
        return self._issued(entry, name, async_op=async_op)

    def _collective(
        self, kind: str, reads: Any, writes: Any, *, group: ClusterGroup | None = None, async_op: bool = False,
        algorithm: str = AUTO, name: str = "", **more: Any,
    ) -> Work | None:  # fmt: skip
        joined = self._group(group)
        if self.rank not in joined.ranks:
            raise VirtualClusterError(
                f"rank {self.rank} calls {kind} in a group to which this rank does not belong: "
                f"{str(list(joined.ranks))[:60]}",
                why="only members of a group may call its collectives",
                next="make this call only if get_rank(group) is not -1",
            )
        if "root" in more:
            if more["root"] not in joined.ranks:
                raise VirtualClusterError(
                    f"{kind} names rank {shown(more['root'])}, which is not in the group",
                    why="the root must be a member of the group",
                    next=f"use one of {str(list(joined.ranks))[:60]}",
                )
            more["root"] = joined.ranks.index(more["root"])
        touched = [*several(reads), *several(writes)]
        entry = {"op": kind, "group": joined.number, "stream": self.current, "algorithm": algorithm, **more}
        entry |= {"reads": self.parts(reads, "the input"), "writes": self.parts(writes, "the output")}
        check_collective(entry, joined.ranks.index(self.rank), joined.size(), {part.dtype for part in touched})
        return self._issued(entry, name, async_op=async_op)

    def _issued(self, entry: Entry, name: str, *, async_op: bool) -> Work | None:
        entry |= {"name": name} if name != "" else {}
        if not async_op:
            self.note(entry)
            return None
        self.note({**entry, "async": True})
        return Work(self, self._number("work"))

    def _group(self, group: ClusterGroup | None) -> ClusterGroup:
        if group is None:
            return self._groups[0]
        if not isinstance(group, ClusterGroup) or group not in self._groups:
            raise VirtualClusterError(
                f"{type(group).__name__} is not a group of rank {self.rank}",
                why="each rank must create its own handle for every group",
                next="create a group with new_group(ranks) on this rank, or omit group= to use all ranks",
            )
        return group


def _reduce(op: object) -> str:
    plain = str(op).rsplit(".", 1)[-1].lower()
    if plain not in REDUCES:
        raise VirtualClusterError(
            f"{shown(op)} is not a reduction",
            why=f"the reductions are {', '.join(REDUCES)}",
            next='use one of these, as in all_reduce(x, "sum")',
        )
    return plain
