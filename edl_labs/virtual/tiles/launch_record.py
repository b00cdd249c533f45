"""What a launch did: bytes, races, FLOPs and live memory, as frozen values."""

from __future__ import annotations

from dataclasses import dataclass

from edl_labs.units import byte_count, counted, si
from edl_labs.values import Value


@dataclass(frozen=True, repr=False)
class TensorTraffic(Value):
    """What all programs of a launch read and wrote of one tensor: elements in total, and each counted once.

    `read_sectors` and `written_sectors` sum, over each load or store of each program, the distinct sectors of 32 bytes;
    `read_once_sectors` and `written_once_sectors` are those of the whole launch.
    """

    name: str
    item_bytes: int
    read_elements: int = 0
    written_elements: int = 0
    read_once_elements: int = 0
    written_once_elements: int = 0
    read_before_write_elements: int = 0
    read_sectors: int = 0
    written_sectors: int = 0
    read_once_sectors: int = 0
    written_once_sectors: int = 0

    @property
    def moved_bytes(self) -> int:
        """Bytes read and written together."""
        return self.item_bytes * (self.read_elements + self.written_elements)


@dataclass(frozen=True, repr=False)
class TileRace(Value):
    """Elements of a tensor whose value depends on the order of programs, or of the lanes of one program.

    `kind` is "programs" (two programs, one writes), "store" (two lanes of a store have one address) or "lanes" (a
    program loads what another of its lanes stored); the first of these that fits an element.
    """

    tensor: str
    kind: str
    first_element: int
    elements: int


@dataclass(frozen=True, repr=False)
class LaunchRecord(Value):
    """What one launch moved and computed.

    `other_flops` counts one FLOP for each element of floating-point arithmetic, functions included. `live_bytes` is the
    largest sum of block values that one program still needs, where a loop may end after any iteration. `tf32_lines` are
    lines with a product of fp32 blocks that a GPU rounds to TF32. `dtype` is that of the blocks that are multiplied;
    without a product, that of the tensors. Where they differ, it is fp32. `dots` counts
    the products of all programs, `most_dots` those of the program with the most.
    """

    kernel: str
    grid: tuple[int, int, int]
    tensors: tuple[TensorTraffic, ...]
    races: tuple[TileRace, ...]
    dot_flops: int
    other_flops: int
    live_bytes: int
    tf32_lines: tuple[int, ...] = ()
    dtype: str = "fp32"
    dots: int = 0
    most_dots: int = 0

    @property
    def programs(self) -> int:
        """Programs of the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def moved_bytes(self) -> int:
        """Bytes read and written, each access counted."""
        return sum(one.moved_bytes for one in self.tensors)

    @property
    def moved_bytes_by_tensor(self) -> dict[str, int]:
        """Bytes read and written, by tensor."""
        return {one.name: one.moved_bytes for one in self.tensors}

    @property
    def read(self) -> dict[str, int]:
        """Elements read, by tensor."""
        return {one.name: one.read_elements for one in self.tensors}

    @property
    def written(self) -> dict[str, int]:
        """Elements written, by tensor."""
        return {one.name: one.written_elements for one in self.tensors}

    @property
    def written_once(self) -> dict[str, int]:
        """Elements written, each counted once, by tensor."""
        return {one.name: one.written_once_elements for one in self.tensors}

    def waves(self, multiprocessors: int, *, programs_each: int = 1) -> int:
        """How often a GPU with so many multiprocessors is filled, with `programs_each` programs on each."""
        return -(-self.programs // (multiprocessors * programs_each))

    def __str__(self) -> str:
        flops = si(self.dot_flops + self.other_flops, "FLOP")
        moved = ", ".join(f"{name} {byte_count(size)}" for name, size in self.moved_bytes_by_tensor.items())
        races = f", {counted(len(self.races), 'race')}" if self.races else ""
        return f"{self.kernel}: {counted(self.programs, 'program')}, {flops}, {moved or 'no bytes'}{races}"
