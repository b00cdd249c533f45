# exercise: tile_choice
# told: the largest tile is not always the quickest
def best_tile(m, n, k, chip):
    """The largest tile."""

    def took(choice):
        return product_s(m, n, k, chip["tiles"][choice[0]], choice[1], chip)

    sizes = [one["m"] * one["n"] for one in chip["tiles"]]
    tiles = [sizes.index(max(sizes))]
    return min(((tile, split) for tile in tiles for split in chip["splits"]), key=took)
