# exercise: tile_choice
# told: a split has a price
def product_s(m, n, k, tile, split, chip):
    """No reduction."""
    blocks = -(-m // tile["m"]) * -(-n // tile["n"]) * split
    waves = -(-blocks // (chip["sm_count"] * tile["per_sm"]))
    flop = 2 * tile["m"] * tile["n"] * -(-k // split)
    rate = chip["sm_flop_per_s"] * tile["efficiency"] / tile["per_sm"]
    spent_s = waves * flop / rate

    return spent_s
