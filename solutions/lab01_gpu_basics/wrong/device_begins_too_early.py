# exercise: finish_times
# told: the device began before it was told to


def finish_times(program, *, launch_s):
    host_s = device_s = 0.0
    for name, duration_s in program:
        if name == "host":
            host_s += duration_s
        elif name == "sync":
            host_s = max(device_s, host_s)
        else:
            host_s += launch_s
            device_s += duration_s if device_s else launch_s + duration_s
            if name == "blocking copy":
                host_s = max(device_s, host_s)
    return host_s, device_s
