# exercise: utilisation_lies
# told: a last wave that is not full counts as a full one


def utilisation(kernels, *, sm_count, window_s):
    busy_s = end_s = sm_s = 0.0
    for kernel in sorted(kernels, key=lambda kernel: kernel["start_s"]):
        busy_s += max(0.0, kernel["end_s"] - max(end_s, kernel["start_s"]))
        end_s = max(end_s, kernel["end_s"])
        sm_s += (kernel["end_s"] - kernel["start_s"]) * min(kernel["blocks"], sm_count)
    return busy_s / window_s, sm_s / sm_count / window_s
