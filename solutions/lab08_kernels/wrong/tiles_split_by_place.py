# exercise: tile_choice
# told: a split is given as it is, not by its place in the list
def best_tile(m, n, k, chip):
    """(number of the tile, split) of the quickest product."""

    def took(choice):
        return product_s(m, n, k, chip["tiles"][choice[0]], choice[1], chip)

    tiles = range(len(chip["tiles"]))
    tile, split = min(((tile, split) for tile in tiles for split in chip["splits"]), key=took)
    return tile, chip["splits"].index(split)
