# exercise: utilisation_lies
# told: blocks that fill their last wave exactly get an empty wave more


def utilisation(kernels, *, sm_count, window_s):
    busy_s = end_s = sm_s = 0.0
    for kernel in sorted(kernels, key=lambda kernel: kernel["start_s"]):
        busy_s += max(0.0, kernel["end_s"] - max(end_s, kernel["start_s"]))
        end_s = max(end_s, kernel["end_s"])
        waves = kernel["blocks"] // sm_count + 1
        sm_s += (kernel["end_s"] - kernel["start_s"]) / waves * kernel["blocks"]
    return busy_s / window_s, sm_s / (sm_count * window_s)
