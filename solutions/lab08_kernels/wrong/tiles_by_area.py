# exercise: tile_choice
# told: a ragged tile is a whole block
from math import ceil


def product_s(m, n, k, tile, split, chip):
    """Divides areas."""
    blocks = m * n / (tile["m"] * tile["n"]) * split
    waves = ceil(blocks / (chip["sm_count"] * tile["per_sm"]))
    flop = 2 * tile["m"] * tile["n"] * -(-k // split)
    rate = chip["sm_flop_per_s"] * tile["efficiency"] / tile["per_sm"]
    spent_s = waves * flop / rate
    if split > 1:
        moved = (2 * 4 * split + 2) * m * n
        spent_s += moved / chip["byte_per_s"] + chip["launch_s"]
    return spent_s
