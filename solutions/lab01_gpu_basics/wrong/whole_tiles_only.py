# exercise: wave_quantization
# told: the tiles are full, but the waves are not


def best_width(m, *, bound, tile_m, tile_n, sm_count):
    return bound // tile_n * tile_n
