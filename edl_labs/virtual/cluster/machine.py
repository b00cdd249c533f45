"""The machine of a VirtualCluster: ranks, each with a GPU, and links in levels, within nodes and between them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from edl_labs.hardware import topology
from edl_labs.virtual.errors import VirtualClusterError, shown
from edl_labs.virtual.gpu.machine import VirtualMachine
from edl_labs.virtual.gpu.machine import machine as gpu_machine
from edl_labs.virtual.quantities import MAX_SECONDS, is_number

MAX_RANKS = 1024  # twice what the issue asks for; an all_to_all of as many has a million messages
_FASTEST = 1e18  # bytes per second: far beyond any link
MAX_STREAMS = 128  # of a rank, as on a VirtualGPU
# Time inside is whole attoseconds: sums are exact, and rounding a message of a nanosecond stays below 1e-9 of it.
ATTOSECONDS = 10**18


@dataclass(frozen=True)
class LinkLevel:
    """Links that join each `span` neighbouring ranks: a message takes `alpha_s` + bytes / `byte_per_s`.

    Each rank has a lane each way, busy for all of that; each `ranks_per_port` neighbours share a port each way, which
    carries one message at a time, at `byte_per_s`.
    """

    name: str
    span: int
    alpha_s: float
    byte_per_s: float
    ranks_per_port: int = 1

    def __post_init__(self) -> None:
        if type(self.name) is not str or not 0 < len(self.name) <= 100:
            raise _refused("a level's name", self.name, "a string of 1 to 100 characters", 'name="network"')
        for part in ("span", "ranks_per_port"):
            value = getattr(self, part)
            if type(value) is not int or not 1 <= value <= MAX_RANKS:
                raise _refused(f"{part} of {self.name}", value, f"a whole number from 1 to {MAX_RANKS}", f"{part}=8")
        if not is_number(self.alpha_s, 0, MAX_SECONDS):
            raise _refused(f"alpha_s of {self.name}", self.alpha_s, "0 seconds or more", "alpha_s=5e-6")
        if not is_number(self.byte_per_s, 1, _FASTEST):
            raise _refused(f"byte_per_s of {self.name}", self.byte_per_s, "a rate of at least 1 B/s", "byte_per_s=50e9")


@dataclass(frozen=True)
class ClusterMachine:
    """`ranks` GPUs of one kind, and `levels` of links from the innermost to one that joins all ranks.

    Two ranks talk over the first level that joins them. `call_overhead_s` is what each call costs the host of a rank.

    >>> machine = ClusterMachine.of("8xH100", nodes=2)
    >>> machine.ranks, machine.level_between(0, 7), machine.level_between(7, 8)
    (16, 0, 1)
    """

    ranks: int
    levels: tuple[LinkLevel, ...]
    gpu: VirtualMachine = field(default_factory=VirtualMachine)
    call_overhead_s: float = 0.0
    name: str = "a cluster"

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", tuple(self.levels))
        if type(self.ranks) is not int or not 1 <= self.ranks <= MAX_RANKS:
            raise _refused("ranks", self.ranks, f"a whole number from 1 to {MAX_RANKS}", "ranks=8")
        if not self.levels or not all(type(level) is LinkLevel for level in self.levels):
            raise _refused("levels", self.levels, "at least one LinkLevel", 'LinkLevel("network", 8, 5e-6, 50e9)')
        if type(self.gpu) is not VirtualMachine:
            raise _refused("gpu", self.gpu, "a VirtualMachine", 'gpu=VirtualMachine.of("H100")')
        if not is_number(self.call_overhead_s, 0, MAX_SECONDS):
            raise _refused("call_overhead_s", self.call_overhead_s, "0 seconds or more", "call_overhead_s=5e-6")
        if type(self.name) is not str or len(self.name) > 100:
            raise _refused("name", self.name, "a string of at most 100 characters", 'name="two nodes"')
        spans = [level.span for level in self.levels]
        if any(outer % inner for inner, outer in pairwise(spans)) or spans[-1] < self.ranks:
            why = "each level connects whole groups of the previous level, and the last level connects all ranks"
            raise VirtualClusterError(
                f"levels that span {', '.join(map(str, spans))} ranks do not form a cluster of {self.ranks}",
                why=why,
                next="choose spans that each divide the next one; the last span must be at least the number of ranks",
            )

    @classmethod
    def of(
        cls, key: str, *, nodes: int = 1, nodes_per_rack: int = 0, oversubscription: float = 1.0, **overrides: Any
    ) -> ClusterMachine:
        """`nodes` nodes of the hardware table; with `nodes_per_rack`, racks share uplinks so many times too slow.

        A rack's uplink carries the rates of all its nodes' ports together, divided by `oversubscription`.
        """
        node = topology(key)
        if type(nodes) is not int or not 1 <= nodes * node.ranks <= MAX_RANKS:
            raise _refused("nodes", nodes, f"a whole number from 1, with at most {MAX_RANKS} ranks in total", "nodes=2")
        ranks = nodes * node.ranks
        inside, outside = node.inside, node.outside
        levels = [LinkLevel(inside.key, node.ranks, inside.alpha_s, inside.byte_per_s)]
        rack = nodes_per_rack if type(nodes_per_rack) is int else -1
        if rack < 0 or not is_number(oversubscription, 1e-3, 1e6) or (rack and nodes > rack and nodes % rack):
            raise _refused("nodes_per_rack", nodes_per_rack, "a divisor of nodes, or 0", "nodes=8, nodes_per_rack=4")
        racked = 0 < rack < nodes
        if nodes > 1 and not (racked and rack == 1):
            span = node.ranks * (rack if racked else nodes)
            levels.append(LinkLevel(outside.key, span, outside.alpha_s, outside.byte_per_s, node.ranks_per_port))
        if racked:
            shared = node.ranks * rack
            rate = outside.byte_per_s * (shared // node.ranks_per_port) / oversubscription
            levels.append(LinkLevel("between racks", ranks, outside.alpha_s, rate, shared))
        gpu = VirtualMachine.of(node.accelerator)
        name = f"{nodes} x {node.key}" if nodes > 1 else node.key
        return cls(ranks, tuple(levels), gpu, name=name).replace(**overrides)

    @classmethod
    def flat(cls, ranks: int, *, alpha_s: float = 20e-6, byte_per_s: float = 6e9, **overrides: Any) -> ClusterMachine:
        """`ranks` GPUs joined by links of one kind; without figures those of deck [004]: 20 us and 6 GB/s."""
        span = ranks if type(ranks) is int and ranks >= 1 else 1
        return cls(
            ranks, (LinkLevel("link", min(span, MAX_RANKS), alpha_s, byte_per_s),), name=f"{shown(ranks)} ranks"
        ).replace(**overrides)

    def replace(self, **overrides: Any) -> ClusterMachine:
        """The same machine with some parameters set; `gpu` may be a key of the hardware table."""
        known = [parameter.name for parameter in dataclasses.fields(self)]
        strange = sorted(set(overrides) - set(known))
        if strange:
            raise VirtualClusterError(
                f"a cluster has no parameter {strange[0]!r}",
                why=f"its parameters are {', '.join(known)}",
                next="use one of these parameters",
            )
        if "gpu" in overrides:
            overrides["gpu"] = gpu_machine(overrides["gpu"])
        return dataclasses.replace(self, **overrides)

    def level_between(self, first: int, second: int) -> int:
        """The number of the level over which two ranks communicate."""
        for number, level in enumerate(self.levels):
            if first // level.span == second // level.span:
                return number
        return len(self.levels) - 1

    def to_dict(self) -> dict[str, Any]:
        """The machine as plain data."""
        levels = [dict(vars(level)) for level in self.levels]
        return {**vars(self), "levels": levels, "gpu": self.gpu.to_dict()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ClusterMachine:
        """The machine from what `to_dict` returned."""
        try:
            parts = dict(data)
            levels = tuple(LinkLevel(**level) for level in parts.pop("levels"))
            return cls(levels=levels, gpu=VirtualMachine.from_dict(parts.pop("gpu")), **parts)
        except (TypeError, KeyError, ValueError, AttributeError):
            raise VirtualClusterError(
                "this does not describe a cluster",
                why="this value is not a dictionary with the fields of a ClusterMachine",
                next="pass the dictionary that ClusterMachine.to_dict() returned",
            ) from None


@dataclass(frozen=True)
class Faults:
    """Faults of a cluster.

    `slow_ranks`: kernels of a rank take so many times as long. `slow_links`: so do the bytes of a rank's lanes at a
    level, {("network", 3): 4.0}. `lost`: a rank stops at a time in seconds; nothing of it that ends later happens.
    `skipped`: (rank, operation) pairs of a program that the rank leaves out.
    """

    slow_ranks: Mapping[int, float] = field(default_factory=dict)
    slow_links: Mapping[tuple[str, int], float] = field(default_factory=dict)
    lost: Mapping[int, float] = field(default_factory=dict)
    skipped: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        try:
            numbers = [*self.slow_ranks.values(), *self.slow_links.values()]
            ranks = [*self.slow_ranks, *self.lost, *(rank for _, rank in self.slow_links)]
            good = all(type(rank) is int for rank in [*ranks, *(part for pair in self.skipped for part in pair)])
            good = good and all(is_number(value, 1e-6, 1e6) for value in numbers) and all(map(_pair, self.skipped))
            good = good and all(is_number(value, 0, MAX_SECONDS) for value in self.lost.values())
        except (TypeError, ValueError, AttributeError):
            good = False
        if not good:
            raise VirtualClusterError(
                "these faults are not valid",
                why="ranks are whole numbers, factors are between 1e-6 and 1e6, and times are at least 0 s",
                next='use Faults(slow_ranks={3: 1.5}, slow_links={("NDR", 3): 4.0}, lost={5: 0.2}, skipped=((2, 7),))',
            )


def _pair(value: object) -> bool:
    return type(value) is tuple and len(value) == 2


def cluster_machine(value: object, **overrides: Any) -> ClusterMachine:
    """A machine from itself, a key of the hardware table, or plain data; `overrides` set parameters."""
    if isinstance(value, ClusterMachine):
        return value.replace(**overrides)
    if isinstance(value, Mapping):
        return ClusterMachine.from_dict(value).replace(**overrides)
    return ClusterMachine.of(value, **overrides)  # type: ignore[arg-type]


def _refused(what: str, value: object, want: str, example: str) -> VirtualClusterError:
    return VirtualClusterError(
        f"{what} is {shown(value)}", why=f"it must be {want}", next=f"use, for example, {example}"
    )
