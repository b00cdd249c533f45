# exercise: finish_times
# told: a sync did not wait for the device


def finish_times(program, *, launch_s):
    host_s = device_s = 0.0
    for name, duration_s in program:
        if name == "host":
            host_s += duration_s
        elif name == "sync":
            host_s += launch_s
        else:
            host_s += launch_s
            device_s = max(device_s, host_s) + duration_s
            if name == "blocking copy":
                host_s = device_s
    return host_s, device_s
