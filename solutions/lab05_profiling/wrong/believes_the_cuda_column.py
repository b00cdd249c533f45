# exercise: self_times
# told: every operator was put on the GPU


def ran_on(entry, *, cpu_flop_per_s):
    return "gpu" if entry["cuda_s"] > 0 else "cpu"
