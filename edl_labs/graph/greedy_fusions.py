"""A good partition of any graph, in the way of inductor's scheduler: join what saves most, while that is possible."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from edl_labs.arguments import checked_arguments
from edl_labs.graph.kernel_groups import ON_CHIP_BYTES, Kernel, Partition, broken_rule, made_by, read_bytes
from edl_labs.graph.operator_graph import Graph

_MOST_NODES = 64  # in a kernel: inductor's limit (max_fusion_size), which keeps kernels from spilling registers


@checked_arguments()
def fusions(graph: Graph, *, epilogues: bool = True, on_chip_bytes: int = ON_CHIP_BYTES) -> Partition:
    """Kernels for a graph, joined two by two, the pair that saves most bytes first. Not always the fewest bytes.

    With `epilogues`, what follows a product may join its kernel, as templates do (TensorRT, inductor's max-autotune);
    without, products are kernels of a library, as inductor leaves them unless asked. Nothing is computed twice, and
    products of one input stay apart: a compiler rarely does either.
    """
    return Partition(graph, _Joining(graph, epilogues, on_chip_bytes).kernels(), on_chip_bytes)


class _Joining:
    """Groups of nodes that grow; a group is known by the place of its first node."""

    def __init__(self, graph: Graph, epilogues: bool, on_chip_bytes: int) -> None:
        self._graph, self._epilogues, self._limit = graph, epilogues, on_chip_bytes
        self._groups = {at: [node.name] for at, node in enumerate(graph.nodes)}
        self._group_of = {node.name: at for at, node in enumerate(graph.nodes)}
        self._products = {at: node.kind == "contraction" for at, node in enumerate(graph.nodes)}
        self._refused: set[tuple[int, int]] = set()

    def kernels(self) -> tuple[Kernel, ...]:
        """The groups once nothing more can be joined, in an order in which they can run."""
        while True:
            joined = False
            for one, other in self._pairs():
                if one in self._groups and other in self._groups and self._may_join(one, other):
                    self._join(one, other)
                    joined = True
            if not joined:
                break
        return tuple(Kernel(tuple(self._groups[at])) for at in self._order())

    def _pairs(self) -> list[tuple[int, int]]:
        """Pairs of groups that share memory, the most shared bytes first."""
        shared: dict[tuple[int, int], int] = defaultdict(int)
        readers: dict[str, list[int]] = defaultdict(list)
        for at, names in self._groups.items():
            for base in read_bytes(self._graph, names):
                readers[base].append(at)
        for base, groups in readers.items():
            maker = self._graph.maker.get(base)
            users = ([self._group_of[maker.name]] if maker is not None else []) + groups[:_MOST_NODES]
            size = self._graph.tensors[base].bytes
            for i, one in enumerate(users):
                for other in users[i + 1 :]:
                    if one != other:
                        shared[min(one, other), max(one, other)] += size
        fresh = {pair: size for pair, size in shared.items() if pair not in self._refused}
        return sorted(fresh, key=lambda pair: (-fresh[pair], pair))

    def _may_join(self, one: int, other: int) -> bool:
        if (one, other) in self._refused:
            return False
        products = [self._products[at] for at in (one, other)]
        names = sorted(self._groups[one] + self._groups[other], key=self._graph.place.__getitem__)
        fits = (
            len(names) <= _MOST_NODES
            and not all(products)
            and (self._epilogues or not any(products))
            and broken_rule(self._graph, names, on_chip_bytes=self._limit) is None
            and not self._is_circle(one, other)
        )
        if not fits:
            self._refused.add((one, other))
        return fits

    def _join(self, one: int, other: int) -> None:
        names = self._groups.pop(one) + self._groups.pop(other)
        at = min(one, other)
        self._groups[at] = sorted(names, key=self._graph.place.__getitem__)
        self._products[at] = self._products[one] or self._products[other]
        self._group_of.update(dict.fromkeys(names, at))
        # A group that has grown may be joined where it could not, once a circle is gone.
        self._refused = {pair for pair in self._refused if at not in pair}

    def _after(self, at: int) -> set[int]:
        """Groups that read what a group makes."""
        users = (node for base in made_by(self._graph, self._groups[at]) for node in self._graph.users[base])
        return {self._group_of[node.name] for node in users} - {at}

    def _is_circle(self, one: int, other: int) -> bool:
        """Whether a way leads from one group to the other through a third."""
        return any(
            self._reaches([next_ for next_ in self._after(start) if next_ != end], end)
            for start, end in ((one, other), (other, one))
        )

    def _reaches(self, starts: Iterable[int], end: int) -> bool:
        last = max(self._graph.place[name] for name in self._groups[end])
        seen, waiting = set(), list(starts)
        while waiting:
            at = waiting.pop()
            if at == end:
                return True
            if at in seen or min(self._graph.place[name] for name in self._groups[at]) > last:
                continue
            seen.add(at)
            waiting += self._after(at)
        return False

    def _order(self) -> list[int]:
        from graphlib import TopologicalSorter

        before: dict[int, set[int]] = {at: set() for at in sorted(self._groups)}
        for at in self._groups:
            for user in self._after(at):
                before[user].add(at)
        return list(TopologicalSorter(before).static_order())
