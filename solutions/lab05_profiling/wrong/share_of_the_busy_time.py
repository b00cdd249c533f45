# exercise: utilisation_lies
# told: the SMs' share is of the busy time, not of the window


def utilisation(kernels, *, sm_count, window_s):
    busy_s = end_s = sm_s = 0.0
    for kernel in sorted(kernels, key=lambda kernel: kernel["start_s"]):
        busy_s += max(0.0, kernel["end_s"] - max(end_s, kernel["start_s"]))
        end_s = max(end_s, kernel["end_s"])
        sm_s += (kernel["end_s"] - kernel["start_s"]) * kernel["blocks"] / -(-kernel["blocks"] // sm_count)
    return busy_s / window_s, sm_s / sm_count / busy_s
