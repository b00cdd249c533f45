# exercise: faster_than_light
# told: that says how many times slower it was


def fraction_of_light(time_s, *, moved_bytes, flop, bandwidth_byte_per_s, peak_flop_per_s):
    light_s = max(flop / peak_flop_per_s, moved_bytes / bandwidth_byte_per_s)
    if time_s < light_s or time_s <= 0:
        raise ValueError("impossible")
    return time_s / light_s if light_s else 0.0
