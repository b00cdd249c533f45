# exercise: tile_choice
# told: ragged tiles at the edges are left out
def product_s(m, n, k, tile, split, chip):
    """Rounds down."""
    blocks = (m // tile["m"]) * (n // tile["n"]) * split
    waves = -(-blocks // (chip["sm_count"] * tile["per_sm"]))
    flop = 2 * tile["m"] * tile["n"] * -(-k // split)
    rate = chip["sm_flop_per_s"] * tile["efficiency"] / tile["per_sm"]
    spent_s = waves * flop / rate
    if split > 1:
        moved = (2 * 4 * split + 2) * m * n
        spent_s += moved / chip["byte_per_s"] + chip["launch_s"]
    return spent_s
