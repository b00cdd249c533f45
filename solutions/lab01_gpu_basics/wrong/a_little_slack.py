# exercise: faster_than_light
# told: a time just below the bound went through


def fraction_of_light(time_s, *, moved_bytes, flop, bandwidth_byte_per_s, peak_flop_per_s):
    light_s = max(flop / peak_flop_per_s, moved_bytes / bandwidth_byte_per_s)
    if time_s < 0.999 * light_s or time_s <= 0:
        raise ValueError("impossible")
    return min(1.0, light_s / time_s)
