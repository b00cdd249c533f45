"""The IR: operators with the tensors that they read and write, lifetimes and guards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from edl_labs.errors import UsageError
from edl_labs.graph.graph_parts import KINDS, Node, TensorFacts
from edl_labs.presenters import Plottable
from edl_labs.units import byte_count
from edl_labs.values import Value


@dataclass(frozen=True)
class Lifetime:
    """A tensor's memory, by places in the order of nodes: from `first` (-1: before all) to `last` (past all: kept)."""

    first: int
    last: int
    bytes: int


@dataclass(frozen=True, repr=False)
class Graph(Value, Plottable):
    """The operators of a model on example inputs, in an order in which they can run.

    >>> import torch
    >>> graph = Graph.of(torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU()), torch.empty(2, 8))
    >>> [(node.operator, node.kind) for node in graph.nodes]
    [('addmm', 'contraction'), ('relu', 'pointwise')]
    >>> graph.moved_bytes == 4 * ((2 * 8 + 4 * 8 + 4 + 2 * 4) + (2 * 4 + 2 * 4))
    True
    """

    ROWS = "nodes"
    DERIVED = ("moved_bytes", "peak_live_bytes")

    name: str
    source: str
    nodes: tuple[Node, ...]
    tensors: Mapping[str, TensorFacts] = field(hash=False)
    outputs: tuple[str, ...]
    guards: tuple[str, ...] = ()
    """The conditions under which the graph is valid: shapes, dtypes, ranges of dynamic sizes."""

    @classmethod
    def of(
        cls,
        model: Any,
        *example: Any,
        training: bool = False,
        dynamic: Mapping[int, tuple[int, ...]] | None = None,
        **keywords: Any,
    ) -> Graph:
        """The graph of `model(*example, **keywords)`, traced on fake tensors: nothing is computed, meta is welcome.

        By torch.export; where that fails (data decide what runs, say), by make_fx. The graph is functional: an operator
        in place is one that makes a new tensor, and what changes a buffer is an output. `training=True` traces the
        backward pass too, by make_fx, with a gradient of every output as input. `dynamic={0: (0,)}` leaves the sizes of
        dimension 0 of the example's argument 0 open. EdlError where neither can trace it.
        """
        from edl_labs.graph.traced_models import traced

        found = traced(model, example, keywords, training=training, dynamic=dynamic or {})
        return cls(found.name, found.source, found.nodes, found.tensors, found.outputs, found.guards)

    @cached_property
    def by_name(self) -> dict[str, Node]:
        """The nodes by name."""
        return {node.name: node for node in self.nodes}

    @cached_property
    def place(self) -> dict[str, int]:
        """Each node's place in the order."""
        return {node.name: at for at, node in enumerate(self.nodes)}

    @cached_property
    def maker(self) -> dict[str, Node]:
        """Which node makes each tensor that one makes; views belong to who made their memory."""
        made = {name: node for node in self.nodes for name in node.makes}
        return {name: made[one.base] for name, one in self.tensors.items() if one.base in made}

    @cached_property
    def users(self) -> dict[str, tuple[Node, ...]]:
        """Which nodes read the memory of each tensor that has its own."""
        found: dict[str, dict[str, Node]] = {name: {} for name in self.tensors}
        for node in self.nodes:
            for name in node.reads:
                found[self.tensors[name].base][node.name] = node
        return {name: tuple(nodes.values()) for name, nodes in found.items()}

    @cached_property
    def kept(self) -> frozenset[str]:
        """Memory that the caller gets: outputs, gradients and what buffers become."""
        return frozenset(self.tensors[name].base for name in self.outputs)

    @cached_property
    def saved(self) -> frozenset[str]:
        """Memory made in the forward pass that the backward pass reads."""
        return frozenset(
            base
            for base, nodes in self.users.items()
            if base in self.maker
            and self.maker[base].direction == "forward"
            and any(node.direction == "backward" for node in nodes)
        )

    @property
    def moved_bytes(self) -> int:
        """Bytes of all operators, each in a kernel of its own."""
        return sum(node.moved_bytes for node in self.nodes)

    @property
    def contraction_flops(self) -> int:
        """FLOPs of products and convolutions."""
        return sum(node.contraction_flops for node in self.nodes)

    @cached_property
    def lifetimes(self) -> dict[str, Lifetime]:
        """For each tensor with memory of its own, from where to where in `nodes` it is needed."""
        place, found = self.place, {}
        for name, one in self.tensors.items():
            if one.is_view:
                continue
            first = place[self.maker[name].name] if name in self.maker else -1
            last = max([first, *(place[node.name] for node in self.users[name])])
            # Inputs and parameters are the caller's: they are there before and after.
            stays = name in self.kept or first < 0
            found[name] = Lifetime(first, len(self.nodes) if stays else last, one.bytes)
        return found

    @cached_property
    def live_bytes(self) -> tuple[int, ...]:
        """Bytes that are live while each node runs, inputs and parameters included."""
        changes = [0] * (len(self.nodes) + 2)
        for one in self.lifetimes.values():
            changes[max(one.first, 0)] += one.bytes
            changes[min(one.last, len(self.nodes)) + 1] -= one.bytes
        live, now = [], 0
        for change in changes[: len(self.nodes)]:
            now += change
            live.append(now)
        return tuple(live)

    @property
    def peak_live_bytes(self) -> int:
        """The most bytes that are live at once, if memory is freed after its last use."""
        return max(self.live_bytes, default=0)

    def node(self, name: str) -> Node:
        """The node of that name; UsageError where there is none."""
        if name not in self.by_name:
            known = ", ".join(list(self.by_name)[:5])
            raise UsageError(
                f"{self.name} has no node {name!r}", why=f"its first nodes are {known}", next="see graph.nodes"
            )
        return self.by_name[name]

    def __str__(self) -> str:
        kinds = Counter(node.kind for node in self.nodes)
        parts = ", ".join(f"{kinds[kind]} {kind}" for kind in KINDS if kinds[kind])
        return (
            f"{self.name}: {len(self.nodes)} operators ({parts}), {byte_count(self.moved_bytes)} moved, "
            f"{byte_count(self.peak_live_bytes)} live at the peak, in {self.source}"
        )
