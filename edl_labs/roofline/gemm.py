"""How much of a matrix product's work is rounding up: to whole tiles, and to whole waves of tiles."""

from __future__ import annotations

from dataclasses import dataclass

from edl_labs.errors import UsageError
from edl_labs.roofline.sizes import check_sizes
from edl_labs.values import Value


@dataclass(frozen=True, repr=False)
class Quantization(Value):
    """Tiles and waves of one product: `efficiency` is useful work over work paid for."""

    DERIVED = ("efficiency",)

    tiles: int
    waves: int
    tile_efficiency: float
    wave_efficiency: float

    @property
    def efficiency(self) -> float:
        """The share of the processor's arithmetic that is useful: both losses together."""
        return self.tile_efficiency * self.wave_efficiency


def quantization(m: int, n: int, k: int, *, tile: tuple[int, ...], sms: int, tiles_per_sm: int = 1) -> Quantization:
    """What an m × n × k product loses to whole tiles of `tile` (m, n and, if given, k) on `sms` SMs.

    A wave is one tile on each place of each SM; the last one may be nearly empty and takes as long as a full one
    (deck [000]/[002], tile and wave quantization).

    >>> q = quantization(256 * 109, 128, 4096, tile=(256, 128), sms=108)
    >>> q.tiles, q.waves, round(q.efficiency, 3)
    (109, 2, 0.505)
    """
    check_sizes(m=m, n=n, k=k, sms=sms, tiles_per_sm=tiles_per_sm)
    if len(tile) not in (2, 3):
        raise UsageError(
            f"a tile cannot have {len(tile)} sizes",
            why="a tile has a size in m and in n, and optionally in k",
            next="pass tile=(256, 128)",
        )
    check_sizes(tile_m=tile[0], tile_n=tile[1], tile_k=tile[-1])
    rows, columns = -(-m // tile[0]), -(-n // tile[1])
    depth = -(-k // tile[2]) * tile[2] if len(tile) == 3 else k
    paid = rows * tile[0] * columns * tile[1] * depth
    tiles, places = rows * columns, sms * tiles_per_sm
    waves = -(-tiles // places)
    return Quantization(tiles, waves, m * n * k / paid, tiles / (waves * places))
