# exercise: tile_choice
# told: that is no tile and split of this chip
def best_tile(m, n, k, chip):
    """Tries the splits of the lab's own chip."""
    return min(
        ((tile, split) for tile in range(len(chip["tiles"])) for split in (1, 2, 4, 8, 16)),
        key=lambda one: product_s(m, n, k, chip["tiles"][one[0]], one[1], chip),
    )
