# %% mistake="always_a_hundred_calls"
# told: too few calls for this clock
def time_device(fn, gpu):
    fn()
    gpu.synchronize()
    first_s = gpu.now_s()
    for _ in range(100):
        fn()
    gpu.synchronize()
    return (gpu.now_s() - first_s) / 100


# %% mistake="always_a_thousand_calls"
# told: your timer makes far more calls than this clock requires
def time_device(fn, gpu):
    fn()
    gpu.synchronize()
    first_s = gpu.now_s()
    for _ in range(1000):
        fn()
    gpu.synchronize()
    return (gpu.now_s() - first_s) / 1000


# %% mistake="cold_start"
# told: your timer includes the first call in the measurement
# like: long_but_cold
def time_device(fn, gpu):
    gpu.synchronize()
    first_s = gpu.now_s()
    for _ in range(100):
        fn()
    gpu.synchronize()
    return (gpu.now_s() - first_s) / 100


# %% mistake="in_milliseconds"
# told: the number is in milliseconds
def time_device(fn, gpu):
    fn()
    gpu.synchronize()
    calls = 10
    while True:
        began_s = gpu.now_s()
        for _ in range(calls):
            fn()
        gpu.synchronize()
        elapsed_s = gpu.now_s() - began_s
        if elapsed_s > 1e-2:
            return 1e3 * elapsed_s / calls
        calls *= 4


# %% mistake="long_but_cold"
# told: your timer includes the first call in the measurement
def time_device(fn, gpu):
    gpu.synchronize()
    first_s = gpu.now_s()
    for _ in range(2000):
        fn()
    gpu.synchronize()
    return (gpu.now_s() - first_s) / 2000


# %% mistake="neither_warm_nor_drained"
# told: your timer includes the first call in the measurement
# like: cold_start
def time_device(fn, gpu):
    began_s = gpu.now_s()
    for _ in range(1000):
        fn()
    gpu.synchronize()
    return (gpu.now_s() - began_s) / 1000


# %% mistake="no_final_sync"
# told: your timer takes the last reading before the device is done
def time_device(fn, gpu):
    for _ in range(3):
        fn()
    gpu.synchronize()
    first_s = gpu.now_s()
    for _ in range(1000):
        fn()
    return (gpu.now_s() - first_s) / 1000


# %% mistake="reads_the_models_record"
# told: no two readings of the clock give your number
# like: times_for_show
def time_device(fn, gpu):
    fn()
    return max(gpu.machine.launch_overhead_s, gpu.core.recorded[-1]["duration_s"])


# %% mistake="stops_the_models_clock"
# told: the recorded program differs from what this machine would have done
# like: writes_its_own_readings
def time_device(fn, gpu):
    fn()
    gpu.synchronize()
    kernel_s = next(
        cell.cell_contents
        for cell in fn.__closure__
        if type(cell.cell_contents) is float
    )
    first_s = gpu.now_s()
    for _ in range(500):
        fn()
    gpu.synchronize()
    gpu.core.host_ps = round(
        (first_s + 500 * max(gpu.machine.launch_overhead_s, kernel_s)) * 1e12
    )
    return (gpu.now_s() - first_s) / 500


# %% mistake="sync_after_every_call"
# told: your timer synchronises for every call
def time_device(fn, gpu):
    fn()
    gpu.synchronize()
    first_s = gpu.now_s()
    for _ in range(200):
        fn()
        gpu.synchronize()
    return (gpu.now_s() - first_s) / 200


# %% mistake="times_for_show"
# told: no two readings of the clock give your number
def time_device(fn, gpu):
    fn()
    gpu.synchronize()
    for calls in (1, 2, 3, 5):
        begin, end = gpu.Event(enable_timing=True), gpu.Event(enable_timing=True)
        begin.record()
        for _ in range(calls):
            fn()
        end.record()
        gpu.synchronize()
        begin.elapsed_time(end)
    launches = [entry for entry in gpu.core.recorded if entry["op"] == "launch"]
    return max(gpu.machine.launch_overhead_s, launches[-1]["duration_s"])


# %% mistake="writes_its_own_readings"
# told: the recorded program differs from what this machine would have done
def time_device(fn, gpu):
    fn()
    call_s = max(gpu.machine.launch_overhead_s, gpu.core.recorded[-1]["duration_s"])
    launch = gpu.core.recorded[-1]
    run = [{"op": "synchronize"}, {"op": "now", "value": 1.0}, *[launch] * 1000]
    gpu.core.recorded += [
        *run,
        {"op": "synchronize"},
        {"op": "now", "value": 1.0 + 1000 * call_s},
    ]
    return call_s
