# exercise: utilisation_lies
# told: kernels that run at the same time are counted twice


def utilisation(kernels, *, sm_count, window_s):
    busy_s = sum(kernel["end_s"] - kernel["start_s"] for kernel in kernels)
    sm_s = 0.0
    for kernel in kernels:
        waves = -(-kernel["blocks"] // sm_count)
        sm_s += (kernel["end_s"] - kernel["start_s"]) * kernel["blocks"] / waves
    return busy_s / window_s, sm_s / sm_count / window_s
