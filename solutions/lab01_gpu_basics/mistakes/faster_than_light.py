# %% mistake="a_little_slack"
# told: your code accepted a time just below the bound
def fraction_of_light(
    time_s, *, moved_bytes, flop, bandwidth_byte_per_s, peak_flop_per_s
):
    light_s = max(flop / peak_flop_per_s, moved_bytes / bandwidth_byte_per_s)
    if time_s < 0.999 * light_s or time_s <= 0:
        raise ValueError("impossible")
    return min(1.0, light_s / time_s)


# %% mistake="any_exception"
# told: your code raised Exception instead of ValueError
def fraction_of_light(
    time_s, *, moved_bytes, flop, bandwidth_byte_per_s, peak_flop_per_s
):
    light_s = max(flop / peak_flop_per_s, moved_bytes / bandwidth_byte_per_s)
    if time_s <= 0 or time_s < light_s:
        raise Exception("faster than light")
    return light_s / time_s


# %% mistake="bounds_added"
# told: your code adds the two bounds
def fraction_of_light(
    time_s, *, moved_bytes, flop, bandwidth_byte_per_s, peak_flop_per_s
):
    light_s = moved_bytes / bandwidth_byte_per_s + flop / peak_flop_per_s
    if time_s < light_s or time_s <= 0:
        raise ValueError("impossible")
    return light_s / time_s


# %% mistake="hands_the_error_back"
# told: your function returned an exception
def fraction_of_light(
    time_s, *, moved_bytes, flop, bandwidth_byte_per_s, peak_flop_per_s
):
    light_s = max(flop / peak_flop_per_s, moved_bytes / bandwidth_byte_per_s)
    if time_s <= 0 or time_s < light_s:
        return ValueError("faster than light")
    return light_s / time_s


# %% mistake="memory_only"
# told: your code looks only at the memory's bound
def fraction_of_light(
    time_s, *, moved_bytes, flop, bandwidth_byte_per_s, peak_flop_per_s
):
    light_s = moved_bytes / bandwidth_byte_per_s
    if time_s < light_s or time_s <= 0:
        raise ValueError("impossible")
    return light_s / time_s


# %% mistake="never_refuses"
# told: your code accepted a time below the memory's bound
def fraction_of_light(
    time_s, *, moved_bytes, flop, bandwidth_byte_per_s, peak_flop_per_s
):
    light_s = max(flop / peak_flop_per_s, moved_bytes / bandwidth_byte_per_s)
    return light_s / time_s if time_s else 0.0


# %% mistake="no_time_for_no_work"
# told: your code accepted a time of zero or less
def fraction_of_light(
    time_s, *, moved_bytes, flop, bandwidth_byte_per_s, peak_flop_per_s
):
    light_s = max(flop / peak_flop_per_s, moved_bytes / bandwidth_byte_per_s)
    if time_s < light_s:
        raise ValueError("impossible")
    return light_s / time_s if light_s else 0.0


# %% mistake="times_slower"
# told: your answer is a slow-down factor, not a fraction
def fraction_of_light(
    time_s, *, moved_bytes, flop, bandwidth_byte_per_s, peak_flop_per_s
):
    light_s = max(flop / peak_flop_per_s, moved_bytes / bandwidth_byte_per_s)
    if time_s < light_s or time_s <= 0:
        raise ValueError("impossible")
    return time_s / light_s if light_s else 0.0
