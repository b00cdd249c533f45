# exercise: tile_choice
# told: another tile or split is quicker
def best_tile(m, n, k, chip):
    """The fullest last wave."""

    def full(choice):
        tile, split = chip["tiles"][choice[0]], choice[1]
        slots = chip["sm_count"] * tile["per_sm"]
        blocks = -(-m // tile["m"]) * -(-n // tile["n"]) * split
        return blocks / (slots * -(-blocks // slots))

    tiles = range(len(chip["tiles"]))
    return max(((tile, split) for tile in tiles for split in chip["splits"]), key=full)
