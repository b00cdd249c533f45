# exercise: tile_choice
# told: a block of a split sums a part of k alone
def product_s(m, n, k, tile, split, chip):
    """Every block sums all of k."""
    blocks = -(-m // tile["m"]) * -(-n // tile["n"]) * split
    waves = -(-blocks // (chip["sm_count"] * tile["per_sm"]))
    flop = 2 * tile["m"] * tile["n"] * k
    rate = chip["sm_flop_per_s"] * tile["efficiency"] / tile["per_sm"]
    spent_s = waves * flop / rate
    if split > 1:
        moved = (2 * 4 * split + 2) * m * n
        spent_s += moved / chip["byte_per_s"] + chip["launch_s"]
    return spent_s
