# exercise: honest_timer
# told: the recorded program is not what this machine would have done


def time_device(fn, gpu):
    fn()
    call_s = max(gpu.machine.launch_overhead_s, gpu.core.recorded[-1]["duration_s"])
    launch = gpu.core.recorded[-1]
    run = [{"op": "synchronize"}, {"op": "now", "value": 1.0}, *[launch] * 1000]
    gpu.core.recorded += [*run, {"op": "synchronize"}, {"op": "now", "value": 1.0 + 1000 * call_s}]
    return call_s
