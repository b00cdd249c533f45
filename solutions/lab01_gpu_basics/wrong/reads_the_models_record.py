# exercise: honest_timer
# told: no two readings explain the number
# like: times_for_show.py


def time_device(fn, gpu):
    fn()
    return max(gpu.machine.launch_overhead_s, gpu.core.recorded[-1]["duration_s"])
