# exercise: tile_quantization
# told: a matrix that fits exactly got an extra row of tiles


def tile_report(m, n, *, tile_m, tile_n):
    count = (m // tile_m + 1) * (n // tile_n + 1)
    return count, 1 - m * n / (count * tile_m * tile_n), count - (m // tile_m) * (n // tile_n)
