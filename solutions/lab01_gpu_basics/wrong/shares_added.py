# exercise: wave_quantization
# told: the tiles are full, but the waves are not
# like: whole_tiles_only.py


def best_width(m, *, bound, tile_m, tile_n, sm_count):
    def share(n):
        tiles = -(-m // tile_m) * -(-n // tile_n)
        return m * n / (tiles * tile_m * tile_n) + wave_report(tiles, sm_count=sm_count)[1]

    return max(range(1, bound + 1), key=share)
