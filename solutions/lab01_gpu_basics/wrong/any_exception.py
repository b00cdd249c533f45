# exercise: faster_than_light
# told: Exception was raised where ValueError is asked for


def fraction_of_light(time_s, *, moved_bytes, flop, bandwidth_byte_per_s, peak_flop_per_s):
    light_s = max(flop / peak_flop_per_s, moved_bytes / bandwidth_byte_per_s)
    if time_s <= 0 or time_s < light_s:
        raise Exception("faster than light")
    return light_s / time_s
