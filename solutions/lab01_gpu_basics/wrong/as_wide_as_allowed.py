# exercise: wave_quantization
# told: the widest matrix is not the best filled one


def best_width(m, *, bound, tile_m, tile_n, sm_count):
    return bound
