# exercise: self_times
# told: the columns alone decided


def ran_on(entry, *, cpu_flop_per_s):
    return "cpu" if abs(entry["cuda_s"] - entry["cpu_s"]) <= 0.05 * entry["cpu_s"] else "gpu"
