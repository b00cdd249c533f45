# exercise: faster_than_light
# told: the two bounds were added


def fraction_of_light(time_s, *, moved_bytes, flop, bandwidth_byte_per_s, peak_flop_per_s):
    light_s = moved_bytes / bandwidth_byte_per_s + flop / peak_flop_per_s
    if time_s < light_s or time_s <= 0:
        raise ValueError("impossible")
    return light_s / time_s
