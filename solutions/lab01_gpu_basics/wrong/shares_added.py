# exercise: wave_quantization
# told: the tiles are full, but the waves are not
# like: whole_tiles_only.py


def best_width(m, *, bound, tile_m, tile_n, sm_count):
    def share(n):
        tiles, wasted, _ = tile_report(m, n, tile_m=tile_m, tile_n=tile_n)
        return 1 - wasted + wave_report(tiles, sm_count=sm_count)[1]

    return max(range(1, bound + 1), key=share)
