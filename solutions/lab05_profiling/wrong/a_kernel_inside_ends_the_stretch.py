# exercise: utilisation_lies
# told: a short kernel inside a longer one ended the busy stretch


def utilisation(kernels, *, sm_count, window_s):
    any_s = sm_s = reached_s = 0.0
    for kernel in sorted(kernels, key=lambda kernel: kernel["start_s"]):
        any_s += max(0.0, kernel["end_s"] - max(kernel["start_s"], reached_s))
        reached_s = kernel["end_s"]
        waves = -(-kernel["blocks"] // sm_count)
        sm_s += (kernel["end_s"] - kernel["start_s"]) * kernel["blocks"] / waves
    return any_s / window_s, sm_s / (sm_count * window_s)
