# exercise: self_times
# told: the columns agree within 5 % of the other one


def ran_on(entry, *, cpu_flop_per_s):
    if entry["flop"] > cpu_flop_per_s * entry["cuda_s"]:
        return "gpu"
    return "cpu" if abs(entry["cuda_s"] - entry["cpu_s"]) <= 0.05 * entry["cuda_s"] else "gpu"
