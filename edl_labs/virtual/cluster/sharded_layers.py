"""Layers whose weights, gradients and optimizer state are spread over all ranks, as FSDP and ZeRO 3 keep them."""

from __future__ import annotations

from collections.abc import Sequence

from edl_labs.virtual.cluster.rank import Rank, Work
from edl_labs.virtual.cluster.rank_device import RankTensor
from edl_labs.virtual.errors import VirtualClusterError

STATE = 4  # tensors of a shard in fp32: weights, gradients and Adam's two averages, 16 B for each parameter


class ShardedLayers:
    """The layers of a model on one rank: of each it holds a shard, the `world_size`-th part.

    `elements` are the parameters of each layer, a multiple of the ranks; a pass through layer `i` takes
    `forward_s[i]` or `backward_s[i]`, and an update of the shards nearly nothing.
    """

    def __init__(
        self, dist: Rank, *, elements: Sequence[int], forward_s: Sequence[float], backward_s: Sequence[float]
    ) -> None:
        self.count, self._dist = len(elements), dist
        self._elements, self._forward_s, self._backward_s = tuple(elements), tuple(forward_s), tuple(backward_s)
        self._batch = dist.tensor(1, name=f"batch of rank {dist.rank}")
        size = dist.world_size
        self._shards = [dist.tensor(n // size, name=f"weights {i}") for i, n in enumerate(elements)]
        self._shard_gradients = [dist.empty(n // size, name=f"gradients {i}") for i, n in enumerate(elements)]
        self._state = [dist.tensor(2 * n // size, name=f"state {i}") for i, n in enumerate(elements)]
        self._weights: dict[int, RankTensor] = {}
        self._gradients: dict[int, RankTensor] = {}

    def all_gather(self, i: int) -> Work:
        """Start to gather the weights of layer `i`: memory for all of them is taken at once."""
        if i in self._weights:
            raise VirtualClusterError(
                f"the weights of layer {i} are already in memory",
                why="they have been gathered and not freed since",
                next="gather them once before the forward pass, and again only after you have freed them",
            )
        self._weights[i] = self._dist.empty(self._elements[i], name=f"whole weights {i}")
        work = self._dist.all_gather(self._weights[i], self._shards[i], async_op=True, name=f"weights {i}")
        assert work is not None
        return work

    def forward(self, i: int) -> None:
        """The forward pass through layer `i`, which reads all its weights."""
        reads = [self._batch, self._needed(self._weights, i, "forward", "all_gather")]
        self._dist.launch(f"forward {i}", duration_s=self._forward_s[i], reads=reads)

    def free(self, i: int) -> None:
        """Give the gathered weights of layer `i` back."""
        self._dist.free(self._needed(self._weights, i, "free", "all_gather"))
        del self._weights[i]

    def backward(self, i: int) -> None:
        """The backward pass through layer `i`: it reads all its weights, and makes this rank's gradients of all."""
        reads = [self._batch, self._needed(self._weights, i, "backward", "all_gather")]
        self._gradients[i] = self._dist.empty(self._elements[i], name=f"whole gradients {i}")
        self._dist.launch(f"backward {i}", duration_s=self._backward_s[i], reads=reads, writes=self._gradients[i])

    def reduce_scatter(self, i: int) -> Work:
        """Start to sum the gradients of layer `i` over the ranks; each rank gets its shard of the sum."""
        gradients = self._needed(self._gradients, i, "reduce_scatter", "backward")
        work = self._dist.reduce_scatter(self._shard_gradients[i], gradients, async_op=True, name=f"gradients {i}")
        assert work is not None
        return work

    def update(self, i: int) -> None:
        """Update this rank's shard of layer `i`, and give this rank's gradients of the whole layer back."""
        gradients = self._needed(self._gradients, i, "update", "backward")
        reads = [self._shard_gradients[i], self._state[i]]
        self._dist.launch(f"update {i}", duration_s=1e-6, reads=reads, writes=[self._shards[i], self._state[i]])
        self._dist.free(gradients)
        del self._gradients[i]

    def _needed(self, held: dict[int, RankTensor], i: int, call: str, before: str) -> RankTensor:
        if i in held:
            return held[i]
        raise VirtualClusterError(
            f"{call}({i}) has no data to work on",
            why=f"{before}({i}) has not run, or its result has been freed",
            next=f"call {before}({i}) first",
        )


__all__ = ["STATE", "ShardedLayers"]
