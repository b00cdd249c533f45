# exercise: tile_choice
# told: per_sm is left out
def product_s(m, n, k, tile, split, chip):
    """One block an SM, at its whole rate."""
    blocks = -(-m // tile["m"]) * -(-n // tile["n"]) * split
    waves = -(-blocks // chip["sm_count"])
    flop = 2 * tile["m"] * tile["n"] * -(-k // split)
    rate = chip["sm_flop_per_s"] * tile["efficiency"]
    spent_s = waves * flop / rate
    if split > 1:
        moved = (2 * 4 * split + 2) * m * n
        spent_s += moved / chip["byte_per_s"] + chip["launch_s"]
    return spent_s
