"""The tensors of a launch: bounds, values, and what is recorded of each access."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from edl_labs.virtual.tiles import tile_arithmetic as arithmetic
from edl_labs.virtual.tiles.launch_record import TensorTraffic, TileRace
from edl_labs.virtual.tiles.tile_types import Scalar

SECTOR_BYTES = 32  # of global memory: the CUDA C++ Best Practices Guide, "Coalesced Access"
_MOST_FLAGS = 1 << 22  # beyond this sorting is cheaper than a flag for each sector of each program
Array = Any


@dataclass
class Storage:
    """The elements of one tensor, flat, and its records."""

    name: str
    flat: Array
    scalar: Scalar
    is_written: bool
    records: bool = True
    read: int = 0
    written: int = 0
    read_sectors: int = 0
    written_sectors: int = 0
    marks: dict[str, Array] = field(default_factory=dict)
    shapes: dict[tuple[int, ...], int] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Elements of the tensor."""
        return int(self.flat.size)

    def mark(self, name: str, kind: Any = bool, fill: int = 0) -> Array:
        """A flag for each element, and one more for lanes outside of the mask."""
        if name not in self.marks:
            self.marks[name] = np.full(self.size + 1, fill, kind)
        return self.marks[name]

    def values_at(self, index: Array) -> Array:
        """Values; lanes outside of the mask have any."""
        if not self.size:
            return np.zeros(index.shape, self.scalar.array)
        return arithmetic.decoded(self.flat.take(index, mode="clip"), self.scalar)

    def put(self, index: Array, values: Array) -> None:
        """Write values; `index` has the lanes inside of the mask alone."""
        self.flat[index] = arithmetic.encoded(values, self.scalar)

    def note(self, kind: str, index: Array, programs: Array, count: int) -> None:
        """Record an access: `index` with the program first, `size` where a lane is masked."""
        if not self.records:
            return
        lanes = index.reshape(len(index), -1)
        repeats = count // len(lanes)
        active = int(np.count_nonzero(lanes != self.size)) * repeats
        sectors = self._sectors(lanes) * repeats
        if kind != "write":
            self.read += active
            self.read_sectors += sectors
            self.mark("read")[lanes] = True
        if kind != "read":
            self.written += active
            self.written_sectors += sectors
        if self.is_written:
            full = np.broadcast_to(lanes, (count, lanes.shape[1]))
            self._note_order(kind, full, programs, index.shape[1:])

    def _sectors_once(self, name: str) -> int:
        """Sectors in which an element has the mark."""
        starts = range(0, self.size, self._per_sector)
        return int(np.count_nonzero(np.logical_or.reduceat(self.mark(name)[: self.size], starts))) if starts else 0

    @property
    def _per_sector(self) -> int:
        return max(1, SECTOR_BYTES // self.scalar.item_bytes)

    def _sectors(self, lanes: Array) -> int:
        per = self._per_sector
        masked = -(-self.size // per)
        sectors = np.where(lanes == self.size, masked, lanes // per)
        if len(lanes) * (masked + 1) <= _MOST_FLAGS:
            flags = np.zeros((len(lanes), masked + 1), bool)
            flags[np.arange(len(lanes))[:, None], sectors] = True
            return int(np.count_nonzero(flags[:, :masked]))
        ordered = np.sort(sectors, axis=1)
        new = np.ones(ordered.shape, bool)
        new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
        return int(np.count_nonzero(new & (ordered != masked)))

    def _note_order(self, kind: str, lanes: Array, programs: Array, shape: tuple[int, ...]) -> None:
        """Who touches what, for races and reads before a write."""
        first, many = self.mark("first", np.int64, -1), self.mark("many")
        who = np.broadcast_to(programs[:, None], lanes.shape)
        fresh = first[lanes] < 0
        first[lanes[fresh]] = who[fresh]
        many[lanes[first[lanes] != who]] = True
        stored = self.mark("stored")
        if kind != "write":
            early = lanes[~stored[lanes]]
            self.mark("early")[early] = True
        if kind == "atomic":
            self.mark("atomic")[lanes] = stored[lanes] = True
            return
        self.mark("plain")[lanes] = True
        code = self.shapes.setdefault(shape, len(self.shapes)) * (1 << 21) + np.arange(lanes.shape[1])
        code = np.broadcast_to(code, lanes.shape)
        by_lane = self.mark("lane", np.int64, -1)
        if kind == "read":
            known = by_lane[lanes]
            self.mark("crossed")[lanes[(known >= 0) & (known != code)]] = True
            return
        place = who * (1 << 21) + np.arange(lanes.shape[1])
        scratch = self.mark("place", np.int64, -1)
        scratch[lanes] = place
        other = scratch[lanes]
        self.mark("twice")[lanes[(other != place) & (other >> 21 == who)]] = True
        by_lane[lanes] = code
        self.mark("store")[lanes] = stored[lanes] = True

    def traffic(self) -> TensorTraffic:
        """What was read and written."""
        read, stored = self._count("read"), self._count("stored")
        early = self._count("early") if self.is_written else read
        return TensorTraffic(
            self.name, self.scalar.item_bytes, self.read, self.written, read, stored, early,
            self.read_sectors, self.written_sectors, self._sectors_once("read"), self._sectors_once("stored"),
        )  # fmt: skip

    def _count(self, name: str) -> int:
        return int(np.count_nonzero(self.mark(name)[: self.size]))

    def races(self) -> list[TileRace]:
        """Elements whose value depends on an order that is not guaranteed."""
        if not self.is_written:
            return []
        many = self.mark("many")
        mixed = self.mark("atomic") & self.mark("plain")
        kinds = {
            "programs": many & (self.mark("store") | mixed),
            "store": self.mark("twice") & ~many,
            "lanes": self.mark("crossed") & ~many & ~self.mark("twice"),
        }
        found = {kind: np.flatnonzero(flags[: self.size]) for kind, flags in kinds.items()}
        return [TileRace(self.name, kind, int(at[0]), at.size) for kind, at in found.items() if at.size]
