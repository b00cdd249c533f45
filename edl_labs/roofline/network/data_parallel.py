"""The network's roofline: what data-parallel training may expect of several nodes (deck [004]).

Each node holds the whole model and a part of the minibatch. After its share of the backward pass every node needs the
sum of all gradients: a ring all-reduce sends 2(P-1)/P of the gradient's bytes through each node's link.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from dataclasses import dataclass

from edl_labs.errors import UsageError
from edl_labs.roofline.sizes import check_amount, check_rate, check_size, check_sizes
from edl_labs.roofline.work import item_bytes
from edl_labs.values import Value

# FLOPs per parameter and sample that run while gradients travel: the products for the weights' gradients alone, or also
# those for the activations' gradients (the whole backward pass of a fully connected layer).
OVERLAPS = {"update": 2, "backward": 4}
FLOPS_PER_PARAMETER = 6  # a multiply-add forward, and two backward (deck [004])


@dataclass(frozen=True)
class Cluster:
    """`nodes` equal nodes, each with a peak rate, joined by links of so many bytes per second in each direction."""

    nodes: int
    node_flop_per_s: float
    link_byte_per_s: float
    link_latency_s: float = 0.0

    def __post_init__(self) -> None:
        check_sizes(nodes=self.nodes)
        check_rate("node_flop_per_s", self.node_flop_per_s)
        check_rate("link_byte_per_s", self.link_byte_per_s)
        check_amount("link_latency_s", self.link_latency_s)

    @property
    def ridge_flop_per_byte(self) -> float:
        """FLOPs that a node does while its link sends a byte.

        >>> Cluster(2, 6e12, 6e9).ridge_flop_per_byte
        1000.0
        """
        return self.node_flop_per_s / self.link_byte_per_s

    def of(self, nodes: int) -> Cluster:
        """The same nodes and links, another number of them."""
        return dataclasses.replace(self, nodes=nodes)


@dataclass(frozen=True)
class Training:
    """A training step: parameters, and FLOPs per sample (unless given 6 per parameter: fully connected layers)."""

    parameters: float
    dtype: str = "fp32"
    flops_per_sample: float | None = None

    def __post_init__(self) -> None:
        check_rate("parameters", self.parameters)
        item_bytes(self.dtype)
        if self.flops_per_sample is not None:
            check_rate("flops_per_sample", self.flops_per_sample)

    @property
    def sample_flops(self) -> float:
        """FLOPs of one sample, forward and backward."""
        return FLOPS_PER_PARAMETER * self.parameters if self.flops_per_sample is None else self.flops_per_sample

    @property
    def gradient_bytes(self) -> float:
        """Bytes of all gradients."""
        return self.parameters * item_bytes(self.dtype)


@dataclass(frozen=True, repr=False)
class Step(Value):
    """One step on some nodes: arithmetic, communication, and both together if they overlap (max) or not (sum).

    `hidden_s` is how much of the step's arithmetic gradients can hide behind.
    """

    KIND = "network_step"
    DERIVED = ("serial_s", "overlapped_s", "roofline_s", "limiter")

    nodes: int
    minibatch: float
    compute_s: float
    communicate_s: float
    hidden_s: float

    @property
    def serial_s(self) -> float:
        """First all arithmetic, then all communication: the sum."""
        return self.compute_s + self.communicate_s

    @property
    def overlapped_s(self) -> float:
        """Communication under the arithmetic that it can hide behind: what is left over comes after it."""
        return self.compute_s + max(0.0, self.communicate_s - self.hidden_s)

    @property
    def roofline_s(self) -> float:
        """The bound: max() of both, as if all arithmetic could hide all communication."""
        return max(self.compute_s, self.communicate_s)

    @property
    def limiter(self) -> str:
        """'compute' or 'network', whichever takes longer."""
        return "network" if self.communicate_s > self.compute_s else "compute"

    @property
    def samples_per_s(self) -> float:
        """Samples per second at the bound."""
        return self.minibatch / self.roofline_s


@dataclass(frozen=True, repr=False)
class ScalingPoint(Value):
    """One point of a scaling curve: a step, its speed-up in samples per second over one node, and that per node."""

    nodes: int
    step: Step
    speedup: float
    efficiency: float


def intensity_flop_per_byte(
    minibatch: float, *, nodes: int = 2, overlap: str = "update", dtype: object = "fp32"
) -> float:
    """FLOPs that each node does for each byte it sends, for a global `minibatch`, in fully connected layers.

    With the update's products alone: 2·w·N/P FLOPs against 2(P-1)/P·w·4 bytes, N/(4(P-1)), which is deck [004]'s N/4
    for two nodes; with the whole backward pass overlapped, twice that. inf for one node, which sends nothing.

    >>> intensity_flop_per_byte(4000), intensity_flop_per_byte(4000, nodes=5)
    (1000.0, 250.0)
    >>> intensity_flop_per_byte(4000, overlap="backward")
    2000.0
    """
    check_rate("minibatch", minibatch)
    check_sizes(nodes=nodes)
    if nodes == 1:
        return math.inf
    return _overlap(overlap) * minibatch / (2 * (nodes - 1) * item_bytes(dtype))


def smallest_minibatch(cluster: Cluster, *, overlap: str = "update", dtype: object = "fp32") -> int:
    """The smallest global minibatch whose communication hides: intensity at least the network's ridge.

    >>> smallest_minibatch(Cluster(2, 6e12, 6e9))
    4000
    """
    if cluster.nodes == 1:
        return 1
    exact = cluster.ridge_flop_per_byte / intensity_flop_per_byte(1, nodes=cluster.nodes, overlap=overlap, dtype=dtype)
    # Rounding in the division must not cost a sample.
    return max(1, math.ceil(exact * (1 - 1e-12)))


def ring_bytes(gradient_bytes: float, *, nodes: int) -> float:
    """Bytes that each node sends in a ring all-reduce: 2(P-1)/P of the gradients.

    >>> ring_bytes(100e6, nodes=4)
    150000000.0
    """
    check_amount("gradient_bytes", gradient_bytes)
    check_sizes(nodes=nodes)
    return 2 * (nodes - 1) / nodes * gradient_bytes


def step(cluster: Cluster, training: Training, *, minibatch: float, overlap: str = "backward") -> Step:
    """One step with a global `minibatch` spread over the cluster.

    Of the step's FLOPs, gradients may hide behind two thirds (the backward pass) or one third (`overlap="update"`).
    """
    check_rate("minibatch", minibatch)
    compute = training.sample_flops * minibatch / cluster.nodes / cluster.node_flop_per_s
    sent = ring_bytes(training.gradient_bytes, nodes=cluster.nodes) / cluster.link_byte_per_s
    communicate = sent + 2 * (cluster.nodes - 1) * cluster.link_latency_s
    hidden = compute * _overlap(overlap) / FLOPS_PER_PARAMETER
    return Step(cluster.nodes, minibatch, compute, communicate, hidden)


def strong_scaling(
    cluster: Cluster,
    training: Training,
    *,
    minibatch: float,
    nodes: Iterable[int],
    overlapped: bool = True,
    overlap: str = "backward",
) -> tuple[ScalingPoint, ...]:
    """The same job on more nodes: the global minibatch stays, each node's share shrinks."""
    counts = _counts(nodes)
    alone = step(cluster.of(1), training, minibatch=minibatch)
    return tuple(
        _point(step(cluster.of(count), training, minibatch=minibatch, overlap=overlap), alone, overlapped=overlapped)
        for count in counts
    )


def weak_scaling(
    cluster: Cluster,
    training: Training,
    *,
    minibatch_per_node: float,
    nodes: Iterable[int],
    overlapped: bool = True,
    overlap: str = "backward",
) -> tuple[ScalingPoint, ...]:
    """A larger job on more nodes: each node keeps its minibatch, the global one grows."""
    counts = _counts(nodes)
    alone = step(cluster.of(1), training, minibatch=minibatch_per_node)
    return tuple(
        _point(
            step(cluster.of(count), training, minibatch=minibatch_per_node * count, overlap=overlap),
            alone,
            overlapped=overlapped,
        )
        for count in counts
    )


def _point(there: Step, alone: Step, *, overlapped: bool) -> ScalingPoint:
    took_s = there.overlapped_s if overlapped else there.serial_s
    speedup = (there.minibatch / took_s) / (alone.minibatch / alone.compute_s)
    return ScalingPoint(there.nodes, there, speedup, speedup / there.nodes)


def _counts(nodes: Iterable[int]) -> list[int]:
    counts = list(nodes)
    for count in counts:
        check_size("nodes", count)
    if not counts:
        raise UsageError(
            "a curve without numbers of nodes", why="it has a point for each", next="give nodes=[1, 2, 4, 8]"
        )
    return counts


def _overlap(overlap: str) -> int:
    if overlap not in OVERLAPS:
        raise UsageError(
            f"gradients cannot overlap with {overlap!r}",
            why="they can travel during the products for the update, or during the whole backward pass",
            next="say overlap='update' or overlap='backward'",
        )
    return OVERLAPS[overlap]
