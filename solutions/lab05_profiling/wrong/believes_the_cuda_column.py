# exercise: self_times
# told: an operator that never left the CPU was put on the GPU


def ran_on(entry, *, cpu_flop_per_s):
    return "gpu" if entry["cuda_s"] > 0 else "cpu"
