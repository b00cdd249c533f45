"""VirtualCluster: programs recorded rank by rank on virtual time, and replayed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from edl_labs.virtual.cluster.machine import ClusterMachine, Faults, cluster_machine
from edl_labs.virtual.cluster.rank import Rank
from edl_labs.virtual.cluster.real_processes import check_backend, run_really
from edl_labs.virtual.cluster.replay import ClusterProgram, ClusterReplay, replay_cluster


class VirtualCluster:
    """Ranks with a GPU each, and links between them, on virtual time: programs of torch.distributed's calls, exactly.

    `run(program)` calls `program(dist)` once for each rank, one after the other, and replays what they recorded. No
    data moves: a tensor is its size, and what is in it is known by its origin.

    >>> def program(dist):
    ...     gradient = dist.tensor(1_000_000, name="gradient")
    ...     dist.all_reduce(gradient, algorithm="ring")
    >>> replay = VirtualCluster.flat(4, alpha_s=20e-6, byte_per_s=6e9).run(program)
    >>> replay.makespan_s, replay.sent_bytes
    (0.00112, {'link': 24000000.0})
    >>> replay.contents(3, "gradient")[0].ranks
    {0: 1.0, 1: 1.0, 2: 1.0, 3: 1.0}
    """

    def __init__(self, machine: str | ClusterMachine | Mapping[str, Any], **overrides: Any) -> None:
        self.machine = cluster_machine(machine, **overrides)

    @classmethod
    def of(cls, key: str, *, nodes: int = 1, **options: Any) -> VirtualCluster:
        """A cluster of nodes of the hardware table: `VirtualCluster.of("8xH100", nodes=2)`."""
        return cls(ClusterMachine.of(key, nodes=nodes, **options))

    @classmethod
    def flat(cls, ranks: int, **options: Any) -> VirtualCluster:
        """`ranks` GPUs joined by equal links: `VirtualCluster.flat(8, alpha_s=20e-6, byte_per_s=6e9)`."""
        return cls(ClusterMachine.flat(ranks, **options))

    def record(self, program: Callable[..., Any], *arguments: Any) -> ClusterProgram:
        """What `program(dist, *arguments)` issues on each rank, as plain data: evidence to replay."""
        recorded = []
        for number in range(self.machine.ranks):
            rank = Rank(number, self.machine)
            program(rank, *arguments)
            recorded.append(rank.program)
        return recorded

    def run(
        self,
        program: Callable[..., Any],
        *arguments: Any,
        faults: Faults | None = None,
        backend: str = "",
        ranks: int | None = None,
        timeout_s: float = 60.0,
    ) -> ClusterReplay:
        """Record a program on every rank and replay it.

        With `backend="gloo"` it also runs on real processes of this machine, one a rank ("nccl": one a GPU), and what
        their tensors hold in the end is checked against the replay: `replay.real` says how much was. `ranks` takes that
        many of the cluster's. VirtualClusterError where the program hangs, a process fails, or contents differ.
        """
        machine = self.machine if ranks is None else self.machine.replace(ranks=ranks)
        programs = VirtualCluster(machine).record(program, *arguments)
        replay = replay_cluster(programs, machine, faults=faults)
        if not backend:
            return replay
        replay.require_finished()
        check_backend(backend, machine.ranks)
        real = run_really(programs, replay.engine, backend=backend, timeout_s=timeout_s)
        return dataclasses.replace(replay, real=real)

    def replay(self, programs: object, *, faults: Faults | None = None) -> ClusterReplay:
        """Replay recorded programs on this cluster."""
        return replay_cluster(programs, self.machine, faults=faults)
