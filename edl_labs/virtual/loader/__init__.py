"""VirtualWorkers: a data loader with its disks, page cache and cores on virtual time, recorded and replayed."""

from __future__ import annotations

from edl_labs.virtual.loader.machine import HDD, NVME, Disk, LoaderMachine
from edl_labs.virtual.loader.replay import WorkersReplay, replay_workers
from edl_labs.virtual.loader.virtual_workers import VirtualFile, VirtualLoader, VirtualWorkers

__all__ = [
    "HDD",
    "NVME",
    "Disk",
    "LoaderMachine",
    "VirtualFile",
    "VirtualLoader",
    "VirtualWorkers",
    "WorkersReplay",
    "replay_workers",
]
