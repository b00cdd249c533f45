# exercise: tile_quantization
# told: part of the matrix is covered by no tile


def tile_report(m, n, *, tile_m, tile_n):
    count = max(m // tile_m, 0) * max(n // tile_n, 0)
    return count, abs(1 - m * n / (count * tile_m * tile_n)) if count else 0.0, 0
