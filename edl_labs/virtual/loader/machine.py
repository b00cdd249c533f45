"""The parameters of a VirtualWorkers, as one frozen value: cores, disks, page cache and what calls cost."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from edl_labs.virtual.errors import VirtualWorkersError, shown
from edl_labs.virtual.quantities import MAX_BYTES, MAX_SECONDS, is_number

_MAX_RATE = 1e18  # an exabyte a second: beyond any machine
_WHOLE = {"cores": (1, 4096), "channels": (1, 4096), "cache_bytes": (0, MAX_BYTES), "page_bytes": (512, 2**30)}


@dataclass(frozen=True)
class Disk:
    """A disk: a request that does not continue where its channel stopped pays `seek_s`; bytes follow at the rate.

    A disk serves `channels` requests at a time, each at its share of the rate: one for a spinning disk, many for NVMe.

    >>> Disk("hdd", seek_s=8e-3, read_byte_per_s=150e6).read_s(150_000_000, seeks=1)
    1.008
    """

    name: str = "disk"
    seek_s: float = 8e-3
    read_byte_per_s: float = 150e6
    channels: int = 1

    def __post_init__(self) -> None:
        _check_fields(self)

    def read_s(self, nbytes: int, *, seeks: int) -> float:
        """What reading takes on one channel: the seeks, then the bytes at the channel's rate."""
        return seeks * self.seek_s + nbytes / (self.read_byte_per_s / self.channels)


@dataclass(frozen=True)
class LoaderMachine:
    """A machine that feeds a model, in SI. The defaults are ideal: what you do not set costs nothing.

    Processes share `cores` evenly; `contention` is what each further busy core costs all of them (memory, caches):
    n busy cores run at 1 / (1 + contention * (n - 1)) of their speed. `worker_start_s` is the main process's time to
    start one worker (fork: little, spawn: an interpreter and its imports), `collect_s` its time to take over a batch.

    >>> LoaderMachine(cores=8, disks=(Disk("nvme", seek_s=80e-6, read_byte_per_s=3e9, channels=16),)).disks[0].name
    'nvme'
    """

    name: str = "ideal"
    cores: int = 8
    contention: float = 0.0
    disks: tuple[Disk, ...] = field(default_factory=lambda: (Disk(seek_s=0.0, read_byte_per_s=1e12),))
    cache_bytes: int = 0
    page_bytes: int = 4096
    memory_byte_per_s: float = 1e15
    open_s: float = 0.0
    worker_start_s: float = 0.0
    collect_s: float = 0.0
    clock_resolution_s: float = 1e-12
    clock_read_cost_s: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "disks", _disks(self.disks))
        _check_fields(self)

    def to_dict(self) -> dict[str, Any]:
        """The parameters as plain data; `loader_machine` reads them back."""
        return {**dataclasses.asdict(self), "disks": [dataclasses.asdict(disk) for disk in self.disks]}


def loader_machine(model: LoaderMachine | Mapping[str, Any] | None = None, **parameters: Any) -> LoaderMachine:
    """The machine that `model` or its plain form says, with `parameters` instead of its own.

    >>> loader_machine(cores=2).cores
    2
    """
    if model is None:
        model = LoaderMachine()
    try:
        base = model if isinstance(model, LoaderMachine) else LoaderMachine(**dict(model))
        return dataclasses.replace(base, **parameters) if parameters else base
    except (TypeError, ValueError) as error:
        raise VirtualWorkersError(
            "these are not the parameters of a loader's machine",
            why=str(error),
            next=f"use only these parameters: {', '.join(field.name for field in dataclasses.fields(LoaderMachine))}",
        ) from None


def _disks(disks: Any) -> tuple[Disk, ...]:
    found = tuple(disk if isinstance(disk, Disk) else Disk(**disk) for disk in disks)
    names = [disk.name for disk in found]
    if not 0 < len(set(names)) == len(names):
        raise VirtualWorkersError(
            f"the names of the disks are {', '.join(names) or 'missing'}",
            why="a machine needs at least one disk, and each disk needs a name of its own",
            next="give each disk a different name",
        )
    return found


def _check_fields(value: Any) -> None:
    for name, given in vars(value).items():
        if name == "disks":
            continue
        if not _fits(name, given):
            raise VirtualWorkersError(
                f"{name} is {shown(given)}",
                why=f"in a {type(value).__name__}, it must be {_range(name)}",
                next="use SI units: seconds, bytes, bytes per second",
            )


def _fits(name: str, given: Any) -> bool:
    if name == "name":
        return type(given) is str and 0 < len(given) <= 200
    if name in _WHOLE:
        return type(given) is int and _WHOLE[name][0] <= given <= _WHOLE[name][1]
    if name.endswith("_per_s"):
        return is_number(given, 0, _MAX_RATE) and given > 0
    if name == "clock_resolution_s":
        return is_number(given, 1e-12, 1.0)
    return is_number(given, 0, 10 if name == "contention" else MAX_SECONDS)


def _range(name: str) -> str:
    if name == "name":
        return "a string of 1 to 200 characters"
    if name in _WHOLE:
        return f"a whole number from {_WHOLE[name][0]} to {_WHOLE[name][1]}"
    return "a finite number, positive for a rate and not negative for a time"


# Round numbers to reckon with, of the kind of the lectures: about 150 MB/s for a disk, 3000 MB/s for NVMe.
HDD = Disk("hdd", seek_s=8e-3, read_byte_per_s=150e6)
NVME = Disk("nvme", seek_s=80e-6, read_byte_per_s=3e9, channels=8)
