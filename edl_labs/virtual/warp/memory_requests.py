"""What a warp's access asks of memory: 32-byte sectors and 128-byte lines of global memory, banks of shared memory.

Global memory answers an access of a warp (a *request*) with whole sectors: each that an active lane touches counts
once. Shared memory has 32 banks of four bytes; different words of one bank take one *wavefront* each, a word that
several lanes read takes one. Elements of 8 bytes go in two half-warps, those of 16 in four quarters, each counted
separately; that hardware sometimes merges such parts where their lanes read equal words is left out.

Sources: CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory" and "Shared Memory and Memory Banks"; Nsight
Compute's documentation, "Memory Tables", for the words request, sector and wavefront.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from edl_labs.values import Value

LANES = 32  # threads of a warp, on every GPU with CUDA so far
SECTOR_BYTES, LINE_BYTES = 32, 128  # what memory and what L1 move at least (Best Practices Guide)
BANKS, BANK_BYTES = 32, 4  # of shared memory, compute capability 5.0 and later


def sectors_of(addresses: Iterable[int], itemsize: int) -> set[int]:
    """The numbers of the 32-byte sectors that elements of `itemsize` bytes at these addresses touch.

    >>> [len(sectors_of(range(*lanes), 4)) for lanes in ((0, 128, 4), (0, 4096, 128), (4, 132, 4))]
    [4, 32, 5]
    """
    found: set[int] = set()
    for address in addresses:
        found.update(range(address // SECTOR_BYTES, (address + itemsize - 1) // SECTOR_BYTES + 1))
    return found


def wavefronts_of(addresses: Mapping[int, int], itemsize: int) -> int:
    """How many accesses to shared memory {lane: address} takes: the fullest bank's words, part by part of the warp.

    >>> [wavefronts_of({lane: 4 * width * lane for lane in range(32)}, 4) for width in (32, 33)]
    [32, 1]
    """
    per_part = LANES * BANK_BYTES // max(itemsize, BANK_BYTES)
    parts: dict[int, list[set[int]]] = {}
    for lane, address in addresses.items():
        banks = parts.setdefault(lane // per_part, [set() for _ in range(BANKS)])
        for word in range(address // BANK_BYTES, (address + itemsize - 1) // BANK_BYTES + 1):
            banks[word % BANKS].add(word)
    return sum(max(map(len, banks)) for banks in parts.values())


def least_wavefronts(addresses: Mapping[int, int], itemsize: int) -> int:
    """The wavefronts of the same lanes without a conflict: one for each part of the warp that takes part."""
    per_part = LANES * BANK_BYTES // max(itemsize, BANK_BYTES)
    return len({lane // per_part for lane in addresses})


@dataclass(frozen=True, repr=False)
class WarpRequest(Value):
    """One access of a warp: which lanes, and the byte address of each; `array` is what the kernel calls the memory.

    `pc` orders the places in a kernel's text where memory is touched, `line` counts the kernel's lines from its `def`.
    """

    launch: int
    block: int
    warp: int
    pc: int
    line: int
    op: str
    array: str
    is_shared: bool
    itemsize: int
    lanes: tuple[int, ...]
    addresses: tuple[int, ...]

    @property
    def sectors(self) -> int:
        """32-byte sectors touched; 0 for shared memory."""
        return 0 if self.is_shared else len(sectors_of(self.addresses, self.itemsize))

    @property
    def least_sectors(self) -> int:
        """Sectors that as many bytes fill when they lie side by side."""
        return 0 if self.is_shared else -(-len(set(self.addresses)) * self.itemsize // SECTOR_BYTES)

    @property
    def lines(self) -> int:
        """128-byte lines touched; 0 for shared memory."""
        touched = () if self.is_shared else sectors_of(self.addresses, self.itemsize)
        return len({sector * SECTOR_BYTES // LINE_BYTES for sector in touched})

    @property
    def wavefronts(self) -> int:
        """Turns of shared memory; 0 for global memory."""
        return wavefronts_of(self._by_lane, self.itemsize) if self.is_shared else 0

    @property
    def least_wavefronts(self) -> int:
        """Turns without a bank conflict."""
        return least_wavefronts(self._by_lane, self.itemsize) if self.is_shared else 0

    @property
    def _by_lane(self) -> dict[int, int]:
        return dict(zip(self.lanes, self.addresses, strict=True))
