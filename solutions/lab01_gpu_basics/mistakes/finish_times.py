# %% mistake="copies_never_block"
# told: in your answer, the host does not wait for a blocking copy to end
# %% replace
host_s = max(host_s, device_s)
# %% by
host_s = max(device_s, host_s)
# %% replace
device_s = max(host_s, device_s) + duration_s
host_s = device_s if name == "blocking copy" else host_s
# %% by
device_s = max(device_s, host_s) + duration_s


# %% mistake="device_begins_too_early"
# told: in your answer, an operation begins before it was launched
# %% replace
host_s = max(host_s, device_s)
# %% by
host_s = max(device_s, host_s)
# %% replace
device_s = max(host_s, device_s) + duration_s
host_s = device_s if name == "blocking copy" else host_s
# %% by
device_s += duration_s if device_s else launch_s + duration_s
if name == "blocking copy":
    host_s = max(device_s, host_s)


# %% mistake="host_waits"
# told: in your answer, the host waits for a launch
def finish_times(program, *, launch_s):
    now_s = device_s = 0.0
    for name, duration_s in program:
        now_s += duration_s if name in ("host", "sync") else launch_s + duration_s
        device_s = device_s if name in ("host", "sync") else now_s
    return now_s, device_s


# %% mistake="sync_costs_a_launch"
# told: in your answer, the host does not wait for the device at a sync
# %% replace
host_s = max(host_s, device_s)
# %% by
host_s += launch_s
# %% replace
device_s = max(host_s, device_s) + duration_s
host_s = device_s if name == "blocking copy" else host_s
# %% by
device_s = max(device_s, host_s) + duration_s
if name == "blocking copy":
    host_s = device_s


# %% mistake="sync_turns_back"
# told: your code moves the host's clock back at a sync
# %% replace
host_s = max(host_s, device_s)
# %% by
host_s = device_s
# %% replace
device_s = max(host_s, device_s) + duration_s
host_s = device_s if name == "blocking copy" else host_s
# %% by
device_s = max(device_s, host_s) + duration_s
if name == "blocking copy":
    host_s = device_s


# %% mistake="takes_no_launch_time"
# told: your code raised TypeError
def finish_times(program):
    return 0.0, sum(duration_s for _, duration_s in program)
