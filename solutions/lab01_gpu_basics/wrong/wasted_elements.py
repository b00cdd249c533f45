# exercise: tile_quantization
# told: that is how many elements are wasted
import math


def tile_report(m, n, *, tile_m, tile_n):
    count = math.ceil(m / tile_m) * math.ceil(n / tile_n)
    return count, count * tile_m * tile_n - m * n, count - (m // tile_m) * (n // tile_n)
