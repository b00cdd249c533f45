# exercise: tile_quantization
# told: tiles were counted by area
import math


def tile_report(m, n, *, tile_m, tile_n):
    count = math.ceil(m * n / (tile_m * tile_n))
    return count, 1 - m * n / (count * tile_m * tile_n), count - (m // tile_m) * (n // tile_n)
