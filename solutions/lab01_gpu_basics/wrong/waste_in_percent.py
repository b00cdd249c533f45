# exercise: tile_quantization
# told: the wasted share is a percentage
import math


def tile_report(m, n, *, tile_m, tile_n):
    count = math.ceil(m / tile_m) * math.ceil(n / tile_n)
    return count, 100 * (1 - m * n / (count * tile_m * tile_n)), count - (m // tile_m) * (n // tile_n)
