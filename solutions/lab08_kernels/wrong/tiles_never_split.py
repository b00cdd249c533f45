# exercise: tile_choice
# told: a split is never chosen
def best_tile(m, n, k, chip):
    """One part, always."""

    def took(choice):
        return product_s(m, n, k, chip["tiles"][choice[0]], choice[1], chip)

    tiles = range(len(chip["tiles"]))
    return min(((tile, split) for tile in tiles for split in (1,)), key=took)
