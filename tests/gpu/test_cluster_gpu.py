"""A VirtualCluster's program on real GPUs over NCCL: what every tensor holds is what the replay says."""

from __future__ import annotations

import pytest
import torch

from edl_labs.virtual.cluster import VirtualCluster

GPUS = torch.cuda.device_count() if torch.cuda.is_available() else 0
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(GPUS < 2, reason=f"NCCL needs a GPU for each rank, two at least; torch sees {GPUS}"),
]


def collectives(dist) -> None:
    ranks = dist.get_world_size()
    for dtype in ("fp32", "bf16", "int32"):
        dist.all_reduce(dist.tensor(1001, dtype=dtype))
        dist.all_gather(dist.empty(3 * ranks, dtype=dtype), dist.tensor(3, dtype=dtype))
        dist.reduce_scatter(dist.empty(3, dtype=dtype), dist.tensor(3 * ranks, dtype=dtype))
        dist.broadcast(dist.tensor(6, dtype=dtype), 1)


def ring_of_messages(dist) -> None:
    rank, ranks = dist.get_rank(), dist.get_world_size()
    part, got = dist.tensor(8, name="part"), dist.empty(8, name="got")
    sent, came = dist.isend(part, (rank + 1) % ranks), dist.irecv(got, (rank - 1) % ranks)
    sent.wait()
    came.wait()
    dist.add(part, got)


@pytest.mark.parametrize("program", [collectives, ring_of_messages])
def test_nccl_leaves_what_the_replay_says(program) -> None:
    ranks = min(GPUS, 4)
    real = VirtualCluster.flat(ranks).run(program, backend="nccl", ranks=ranks).real

    assert (ranks, "nccl") == (real.ranks, real.backend)
    assert real.elements > 0
