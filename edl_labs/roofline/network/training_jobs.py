"""What is trained and where: a transformer, a cluster of GPUs, and the links that join a group of its ranks."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field

from edl_labs.errors import UsageError
from edl_labs.hardware import accelerator, topology
from edl_labs.roofline.network.alpha_beta import GroupLinks
from edl_labs.roofline.network.sharded_training import StateBytes
from edl_labs.roofline.sizes import check_rate, check_sizes

# Of the peak, in products of matrices: 163 of 312 TFLOP/s for a trillion parameters (Narayanan et al. 2021, table 1).
REACHED = 0.52


@dataclass(frozen=True)
class Transformer:
    """A decoder: blocks with an MLP four times as wide as `hidden`, and a vocabulary tied to the output."""

    layers: int
    hidden: int
    heads: int
    sequence: int
    vocabulary: int = 50_304
    state: StateBytes = field(default_factory=StateBytes)

    def __post_init__(self) -> None:
        sizes = dataclasses.asdict(self)
        del sizes["state"]
        check_sizes(**sizes)

    @property
    def block_parameters(self) -> int:
        """Weights, biases and norms of one block: 12 h^2 + 13 h (Narayanan et al. 2021, equation 2)."""
        return 12 * self.hidden**2 + 13 * self.hidden

    @property
    def embedding_parameters(self) -> int:
        """Words and positions."""
        return (self.vocabulary + self.sequence) * self.hidden

    @property
    def parameters(self) -> int:
        """All parameters.

        >>> round(Transformer(layers=96, hidden=12288, heads=96, sequence=2048).parameters / 1e9)
        175
        """
        return self.layers * self.block_parameters + self.embedding_parameters

    def flops(self, sequences: float, *, recompute: bool = False) -> float:
        """FLOPs of a step, the backward pass twice the forward (Narayanan et al. 2021, equation 3)."""
        h, s = self.hidden, self.sequence
        blocks = self.layers * (24 * s * h**2 + 4 * s**2 * h)
        return sequences * ((4 if recompute else 3) * blocks + 6 * s * h * self.vocabulary)


@dataclass(frozen=True)
class GPUCluster:
    """Equal GPUs: FLOP/s that products reach, memory, and the levels of links that join them, the innermost first."""

    gpu_flop_per_s: float
    gpu_memory_bytes: float
    levels: tuple[GroupLinks, ...]

    def __post_init__(self) -> None:
        check_rate("gpu_flop_per_s", self.gpu_flop_per_s)
        check_rate("gpu_memory_bytes", self.gpu_memory_bytes)
        if not self.levels:
            raise UsageError(
                "a cluster without links", why="its GPUs are joined by some", next="give levels=(GroupLinks(8, ...),)"
            )

    @property
    def ranks(self) -> int:
        """GPUs in all."""
        return math.prod(level.ranks for level in self.levels)

    @classmethod
    def of(cls, node: str, *, nodes: int = 1, dtype: object = "bf16", reached: float = REACHED) -> GPUCluster:
        """Nodes of the hardware table, at the share of the peak that training reaches.

        >>> GPUCluster.of("8xH100", nodes=4).ranks
        32
        """
        check_sizes(nodes=nodes)
        check_rate("reached", reached)
        found = topology(node)
        chip = accelerator(found.accelerator)
        inside, outside = (
            GroupLinks(ranks, link.alpha_s, link.byte_per_s, ports, link.key)
            for ranks, link, ports in ((found.ranks, found.inside, 1), (nodes, found.outside, found.ranks_per_port))
        )
        return cls(reached * chip.peak_flop_per_s(dtype), chip.memory_bytes, (inside, outside))


def group_levels(levels: tuple[GroupLinks, ...], *, stride: int, size: int) -> tuple[GroupLinks, ...]:
    """The levels that join `size` ranks which lie `stride` apart: all inside a node, all between nodes, or some each.

    >>> levels = (GroupLinks(8, 3e-6, 450e9), GroupLinks(4, 14e-6, 50e9))
    >>> [level.ranks for level in group_levels(levels, stride=2, size=16)]
    [4, 4]
    """
    found, left = [], size
    for at, level in enumerate(levels):
        last = at == len(levels) - 1
        here = max(1, level.ranks // stride)
        # Groups that lie across the border of a node in an odd way go by the links between nodes alone.
        even = level.ranks % stride == 0 and (left % here == 0 or here % left == 0)
        here = left if last else (min(left, here) if even else 1)
        found.append(dataclasses.replace(level, ranks=here))
        left, stride = left // here, max(1, -(-stride // level.ranks))
    return tuple(found)
