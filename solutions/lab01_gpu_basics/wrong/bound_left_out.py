# exercise: wave_quantization
# told: another width fills the machine better


def best_width(m, *, bound, tile_m, tile_n, sm_count):
    def share(n):
        tiles = -(-m // tile_m) * -(-n // tile_n)
        return n / wave_report(tiles, sm_count=sm_count)[0]

    return max(range(1, bound), key=share)
