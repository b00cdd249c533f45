# exercise: finish_times
# told: the host waited for a launch


def finish_times(program, *, launch_s):
    now_s = device_s = 0.0
    for name, duration_s in program:
        now_s += duration_s if name in ("host", "sync") else launch_s + duration_s
        device_s = device_s if name in ("host", "sync") else now_s
    return now_s, device_s
