# exercise: faster_than_light
# told: an exception came back as the answer


def fraction_of_light(time_s, *, moved_bytes, flop, bandwidth_byte_per_s, peak_flop_per_s):
    light_s = max(flop / peak_flop_per_s, moved_bytes / bandwidth_byte_per_s)
    if time_s <= 0 or time_s < light_s:
        return ValueError("faster than light")
    return light_s / time_s
