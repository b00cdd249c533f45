# exercise: tile_quantization
# told: the tile in the corner was counted twice


def tile_report(m, n, *, tile_m, tile_n, rightly=tile_report):  # noqa: F821
    tiles, wasted, _ = rightly(m, n, tile_m=tile_m, tile_n=tile_n)
    rows, columns = -(-m // tile_m), -(-n // tile_n)
    return tiles, wasted, (columns if m % tile_m else 0) + (rows if n % tile_n else 0)
