# exercise: faster_than_light
# told: a time of zero or less went through


def fraction_of_light(time_s, *, moved_bytes, flop, bandwidth_byte_per_s, peak_flop_per_s):
    light_s = max(flop / peak_flop_per_s, moved_bytes / bandwidth_byte_per_s)
    if time_s < light_s:
        raise ValueError("impossible")
    return light_s / time_s if light_s else 0.0
