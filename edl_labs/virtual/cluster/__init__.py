"""VirtualCluster: many ranks on virtual time; torch.distributed's calls recorded as plain data and replayed."""

from __future__ import annotations

from edl_labs.virtual.cluster.cluster_contents import ClusterPart, ClusterTerm
from edl_labs.virtual.cluster.cluster_hangs import ClusterWait, Hang
from edl_labs.virtual.cluster.cluster_races import ClusterRace
from edl_labs.virtual.cluster.cluster_timeline import ClusterSpan, ClusterTimeline
from edl_labs.virtual.cluster.collective_costs import CollectiveCosts, CollectivePlan
from edl_labs.virtual.cluster.machine import ClusterMachine, Faults, LinkLevel
from edl_labs.virtual.cluster.pipeline_stage import PipelineStage
from edl_labs.virtual.cluster.rank import ClusterGroup, Rank, Work
from edl_labs.virtual.cluster.rank_device import ClusterEvent, ClusterStream, RankTensor
from edl_labs.virtual.cluster.real_processes import RealRun
from edl_labs.virtual.cluster.replay import ClusterReplay, LinkUse, replay_cluster
from edl_labs.virtual.cluster.sharded_layers import ShardedLayers
from edl_labs.virtual.cluster.virtual_cluster import VirtualCluster

__all__ = [
    "ClusterEvent",
    "ClusterGroup",
    "ClusterMachine",
    "ClusterPart",
    "ClusterRace",
    "ClusterReplay",
    "ClusterSpan",
    "ClusterStream",
    "ClusterTerm",
    "ClusterTimeline",
    "ClusterWait",
    "CollectiveCosts",
    "CollectivePlan",
    "Faults",
    "Hang",
    "LinkLevel",
    "LinkUse",
    "PipelineStage",
    "Rank",
    "RankTensor",
    "RealRun",
    "ShardedLayers",
    "VirtualCluster",
    "Work",
    "replay_cluster",
]
