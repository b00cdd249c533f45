# exercise: tile_choice
# told: a split makes more blocks
def product_s(m, n, k, tile, split, chip):
    """The blocks of one part."""
    blocks = -(-m // tile["m"]) * -(-n // tile["n"])
    waves = -(-blocks // (chip["sm_count"] * tile["per_sm"]))
    flop = 2 * tile["m"] * tile["n"] * -(-k // split)
    rate = chip["sm_flop_per_s"] * tile["efficiency"] / tile["per_sm"]
    spent_s = waves * flop / rate
    if split > 1:
        moved = (2 * 4 * split + 2) * m * n
        spent_s += moved / chip["byte_per_s"] + chip["launch_s"]
    return spent_s
