# exercise: ridge_and_bound
# told: times were added up


def lower_bound(machine, work):
    times_s = {level: n / machine["bandwidth_byte_per_s"][level] for level, n in work["moved_bytes"].items()}
    times_s["compute"] = work["flop"] / machine["peak_flop_per_s"][work["dtype"]]
    return sum(times_s.values()), max(times_s, key=times_s.get)
