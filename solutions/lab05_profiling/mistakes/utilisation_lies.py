# %% mistake="a_kernel_inside_ends_the_stretch"
# told: in your function, a short kernel inside a longer one ends the busy stretch
# %% replace
reached_s = max(reached_s, kernel["end_s"])
# %% by
reached_s = kernel["end_s"]


# %% mistake="kernels_added_up"
# told: your utilisation counts time twice when two kernels run at once
def utilisation(kernels, *, sm_count, window_s):
    busy_s = sum(kernel["end_s"] - kernel["start_s"] for kernel in kernels)
    sm_s = 0.0
    for kernel in kernels:
        waves = -(-kernel["blocks"] // sm_count)
        sm_s += (kernel["end_s"] - kernel["start_s"]) * kernel["blocks"] / waves
    return busy_s / window_s, sm_s / sm_count / window_s


# %% mistake="last_wave_is_full"
# told: your function counts a last wave that is not full as full
def utilisation(kernels, *, sm_count, window_s):
    busy_s = end_s = sm_s = 0.0
    for kernel in sorted(kernels, key=lambda kernel: kernel["start_s"]):
        busy_s += max(0.0, kernel["end_s"] - max(end_s, kernel["start_s"]))
        end_s = max(end_s, kernel["end_s"])
        sm_s += (kernel["end_s"] - kernel["start_s"]) * min(kernel["blocks"], sm_count)
    return busy_s / window_s, sm_s / sm_count / window_s


# %% mistake="one_wave_too_many"
# told: your function adds an empty wave after blocks that fill their last wave exactly
def utilisation(kernels, *, sm_count, window_s):
    busy_s = end_s = sm_s = 0.0
    for kernel in sorted(kernels, key=lambda kernel: kernel["start_s"]):
        busy_s += max(0.0, kernel["end_s"] - max(end_s, kernel["start_s"]))
        end_s = max(end_s, kernel["end_s"])
        waves = kernel["blocks"] // sm_count + 1
        sm_s += (kernel["end_s"] - kernel["start_s"]) / waves * kernel["blocks"]
    return busy_s / window_s, sm_s / (sm_count * window_s)


# %% mistake="share_of_the_busy_time"
# told: your function divides the SMs' share by the busy time, not by the window
def utilisation(kernels, *, sm_count, window_s):
    busy_s = end_s = sm_s = 0.0
    for kernel in sorted(kernels, key=lambda kernel: kernel["start_s"]):
        busy_s += max(0.0, kernel["end_s"] - max(end_s, kernel["start_s"]))
        end_s = max(end_s, kernel["end_s"])
        sm_s += (
            (kernel["end_s"] - kernel["start_s"])
            * kernel["blocks"]
            / -(-kernel["blocks"] // sm_count)
        )
    return busy_s / window_s, sm_s / sm_count / busy_s
