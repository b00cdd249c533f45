# exercise: ridge_and_bound
# told: names were compared, or only the arithmetic was looked at


def ridge_point(machine, dtype, level):
    return machine["peak_flop_per_s"][dtype] / machine["bandwidth_byte_per_s"][level]


def lower_bound(machine, work):
    times = {level: moved / machine["bandwidth_byte_per_s"][level] for level, moved in work["moved_bytes"].items()}
    times["compute"] = work["flop"] / machine["peak_flop_per_s"][work["dtype"]]
    limiter = max(times)
    return times[limiter], limiter
